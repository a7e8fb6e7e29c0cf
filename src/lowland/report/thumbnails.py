"""Small pictures of the rows, many in one sheet, so that a page can hold thousands."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from lowland.report.payload import display_rows, pack_array, some_rows
from lowland.report.summary import Images

MOST_BYTES = 6_000_000  # of all sheets
TALLEST, WIDEST = 32, 64  # pixels of a thumbnail
MOST_PIXELS = 24_000_000  # more would not fit into the bytes
SHEET = 1024  # pixels along a side
QUALITY = 80
JPEG_BLOCK = 8  # cells of whole blocks do not bleed into one another


def thumbnail_shape(height: int, width: int) -> tuple[int, int]:
    """Height and width of the thumbnail of such an image; small images stay as they are.

    >>> thumbnail_shape(28, 28), thumbnail_shape(240, 320)
    ((28, 28), (32, 43))
    """
    factor = min(1.0, TALLEST / height, WIDEST / width)
    return max(1, round(factor * height)), max(1, round(factor * width))


def image_rows(n: int, height: int, width: int) -> np.ndarray:
    """The rows of a summary whose images are worth preparing, ascending: a random sample."""
    rows = display_rows(n)
    most = max(1, MOST_PIXELS // int(np.prod(thumbnail_shape(height, width))))
    return rows[some_rows(len(rows), most)]


def shrunk(pixels: np.ndarray) -> np.ndarray:
    """Images of thumbnail size; images that are small already are returned as they are."""
    from PIL import Image

    height, width = pixels.shape[1:3]
    small = thumbnail_shape(height, width)
    if small == (height, width):
        return pixels
    found = np.empty((len(pixels), *small, *pixels.shape[3:]), dtype=np.uint8)
    for image, one in zip(pixels, found, strict=True):
        one[:] = Image.fromarray(image).resize(small[::-1], Image.Resampling.LANCZOS)
    return found


def pack_images(images: Images | None, rows: np.ndarray, n: int) -> dict[str, Any] | None:
    """Sheets of thumbnails of shown rows, in the order of ``points``, within the budget.

    Sheets are PNG; if these were too large JPEG, and if these are too large a random part of the
    rows has a thumbnail.
    """
    if images is None:
        return None
    pixels = np.asarray(images["pixels"])
    given = images.get("rows")
    place = np.full(n, -1)  # of a row among the images
    place[slice(None) if given is None else np.asarray(given)] = np.arange(len(pixels))
    points = np.flatnonzero(place[rows] >= 0)
    if not points.size:
        return None
    sheets, layout = _sheets(pixels, place[rows[points]], "PNG")
    if layout["pictured"] < points.size:  # too large
        points = points[np.random.default_rng(0).permutation(points.size)]
        sheets, layout = _sheets(pixels, place[rows[points]], "JPEG")
    return {
        **layout,
        "pixelated": layout["height"] < TALLEST and layout["width"] < WIDEST,
        "points": pack_array(points[: layout["pictured"]], "<u4"),
        "sheets": sheets,
    }


def _sheets(pixels: np.ndarray, chosen: np.ndarray, kind: str) -> tuple[list[str], dict[str, Any]]:
    """Thumbnails of the chosen images in sheets of one format, as many as fit into the budget."""
    height, width = thumbnail_shape(*pixels.shape[1:3])
    block = JPEG_BLOCK if kind == "JPEG" else 1
    down, right = (-(-side // block) * block for side in (height, width))
    across = max(1, SHEET // right)
    in_sheet = across * max(1, SHEET // down)
    count = -(-len(chosen) // in_sheet)
    layout: dict[str, Any] = {"kind": kind.lower(), "height": height, "width": width}
    layout |= {"down": down, "right": right, "across": across, "in_sheet": in_sheet, "pictured": 0}
    sheets: list[str] = []
    used = 0
    for start in range(0, len(chosen), in_sheet):
        small = shrunk(pixels[chosen[start : start + in_sheet]])
        filling = [(0, 0), (0, down - height), (0, right - width), (0, 0)]
        # Cells are filled up by their last pixels, which suits JPEG.
        encoded = _encoded(np.pad(small, filling[: small.ndim], mode="edge"), across, kind)
        used += len(encoded)
        # Of PNG all sheets have to fit, and the first tells what all will need.
        needed = max(used, len(encoded) * (count - 1)) if kind == "PNG" else used * bool(sheets)
        if needed > MOST_BYTES:
            break
        sheets.append(base64.b64encode(encoded).decode("ascii"))
        layout["pictured"] += len(small)
    return sheets, layout


def _encoded(cells: np.ndarray, across: int, kind: str) -> bytes:
    """One sheet of cells side by side, so many across."""
    from PIL import Image

    lines, (down, right), colors = -(-len(cells) // across), cells.shape[1:3], cells.shape[3:]
    sheet = np.zeros((lines * across, *cells.shape[1:]), dtype=np.uint8)
    sheet[: len(cells)] = cells
    sheet = sheet.reshape(lines, across, down, right, *colors).swapaxes(1, 2)
    sheet = sheet.reshape(lines * down, across * right, *colors)
    out = io.BytesIO()
    how: dict[str, Any] = {"quality": QUALITY} if kind == "JPEG" else {}
    if kind == "JPEG" and colors:
        how["subsampling"] = 0  # else a block of colors would cover several cells
    Image.fromarray(sheet).save(out, kind, **how)
    return out.getvalue()

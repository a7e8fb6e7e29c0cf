"""Small pictures of the rows, many in one sheet, so that a page can hold thousands."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from lowland.report.payload import display_rows, pack_array
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
    if len(rows) <= most:
        return rows
    picked = np.random.default_rng(0).choice(len(rows), most, replace=False, shuffle=False)
    return rows[np.sort(picked)]


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
    place[np.arange(n) if given is None else np.asarray(given)] = np.arange(len(pixels))
    points = np.flatnonzero(place[rows] >= 0)
    if not points.size:
        return None
    order = np.random.default_rng(0).permutation(points.size)
    packed = _Sheets(pixels, place[rows[points]], "PNG").within_budget(None)
    if packed is None:
        points = points[order]
        packed = _Sheets(pixels, place[rows[points]], "JPEG").within_budget(MOST_BYTES)
    assert packed is not None
    sheets, layout = packed
    points = points[: layout["pictured"]]
    return {
        **layout,
        "pixelated": layout["height"] < TALLEST and layout["width"] < WIDEST,
        "points": pack_array(points, "<u4"),
        "sheets": sheets,
    }


class _Sheets:
    """Thumbnails of some images, side by side in sheets of one format."""

    def __init__(self, pixels: np.ndarray, chosen: np.ndarray, kind: str) -> None:
        self.pixels, self.chosen, self.kind = pixels, chosen, kind
        self.height, self.width = thumbnail_shape(*pixels.shape[1:3])
        block = JPEG_BLOCK if kind == "JPEG" else 1
        self.down, self.right = (-(-side // block) * block for side in (self.height, self.width))
        self.across = max(1, SHEET // self.right)
        self.in_sheet = self.across * max(1, SHEET // self.down)

    def within_budget(self, most: int | None) -> tuple[list[str], dict[str, Any]] | None:
        """The sheets that fit into ``most`` bytes; without ``most``, all or None."""
        sheets: list[str] = []
        used = pictured = 0
        count = -(-len(self.chosen) // self.in_sheet)
        for start in range(0, len(self.chosen), self.in_sheet):
            some = self.chosen[start : start + self.in_sheet]
            encoded = self.encoded(some)
            used += len(encoded)
            # The first sheet tells what all will need.
            if most is None and max(used, len(encoded) * (count - 1)) > MOST_BYTES:
                return None
            if most is not None and used > most and sheets:
                break
            sheets.append(base64.b64encode(encoded).decode("ascii"))
            pictured += len(some)
        return sheets, {
            "kind": self.kind.lower(),
            "height": self.height,
            "width": self.width,
            "down": self.down,
            "right": self.right,
            "across": self.across,
            "in_sheet": self.in_sheet,
            "pictured": pictured,
        }

    def encoded(self, some: np.ndarray) -> bytes:
        """One sheet; cells are filled up by their last pixels, which suits JPEG."""
        from PIL import Image

        small = shrunk(self.pixels[some])
        filling = [(0, 0), (0, self.down - self.height), (0, self.right - self.width)]
        cells = np.pad(small, filling + [(0, 0)] * (small.ndim - 3), mode="edge")
        lines = -(-len(some) // self.across)
        sheet = np.zeros((lines * self.across, *cells.shape[1:]), dtype=np.uint8)
        sheet[: len(some)] = cells
        sheet = sheet.reshape(lines, self.across, *cells.shape[1:])
        sheet = sheet.swapaxes(1, 2).reshape(
            lines * self.down, self.across * self.right, *cells.shape[3:]
        )
        out = io.BytesIO()
        how: dict[str, Any] = {"quality": QUALITY} if self.kind == "JPEG" else {}
        if self.kind == "JPEG" and sheet.ndim == 3:
            how["subsampling"] = 0  # else a block of colors would cover several cells
        Image.fromarray(sheet).save(out, self.kind, **how)
        return out.getvalue()

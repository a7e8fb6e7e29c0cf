"""What the viewer of the report shows of a table: its numbers, and its images."""

from __future__ import annotations

import numpy as np

from lowland.report.summary import Images, Values
from lowland.report.thumbnails import image_rows, shrunk
from lowland.report.viewer_data import MOST_COLUMNS, MOST_VALUE_BYTES
from lowland.study._own_units import table_rows
from lowland.study._pixels import Pixels
from lowland.study.tables.preparing import Prepared

BLOCK_VALUES = 4_000_000  # of images that are dense at a time
BYTE = 255


def values_of(prepared: Prepared, pixels: Pixels | None) -> Values | None:
    """The columns of numbers as the user knows them, before any scaling; they are not copied.

    Of images there are all pixels or none: some of them would say nothing.
    """
    table = prepared.table
    n, p = table.shape
    if prepared.distances or not p:
        return None
    if pixels is not None and (p > MOST_COLUMNS or n * p > MOST_VALUE_BYTES):
        return None
    names = table.feature_names or [f"column {number}" for number in range(p)]
    return {"names": names, "numbers": table.features}


def images_of(prepared: Prepared, pixels: Pixels | None) -> Images | None:
    """Thumbnails of the rows of a table of images, of so many rows as a page can hold."""
    if pixels is None:
        return None
    n = prepared.X.shape[0]
    rows = image_rows(n, *pixels.shape[:2])
    step = max(1, BLOCK_VALUES // int(np.prod(pixels.shape)))
    some = table_rows(prepared, np.unique(np.linspace(0, n - 1, min(n, step, 500)).astype(np.intp)))
    low, high = _range(some)
    found = []
    for start in range(0, len(rows), step):
        values = pixels.images(table_rows(prepared, rows[start : start + step]), low)
        shades = np.nan_to_num(BYTE * (values - low) / (high - low))
        images = np.clip(np.round(shades), 0, BYTE).astype(np.uint8)
        found.append(shrunk(images.reshape(len(images), *pixels.shape)))
    return {"pixels": np.concatenate(found), "rows": rows}


def _range(values: np.ndarray) -> tuple[float, float]:
    """The values of black and white: 0 and 255, or 0 and 1, if the numbers are such shades."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    for white in (1.0, float(BYTE)):
        if low >= 0 and white / 2 < high <= white:
            return 0.0, white
    return low, high if high > low else low + 1.0

"""Whether the rows of a table are images, and which pixel each column is.

The reader of a folder of images tells their shape. Of other tables it is found out: the columns
have numbers for names, or no names; there are pixels for whole rows and columns; values share one
range; and neighboring pixels are correlated clearly more than distant ones, in both directions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lowland.study._own_units import table_rows
from lowland.study.tables.preparing import Prepared

SMALLEST_SIDE = 8  # of images that are found out
FEWEST_ROWS, MOST_ROWS = 20, 500  # that correlations are computed of
MOST_VALUES = 10_000_000  # of these rows
LEAST_PRESENT = 0.5  # share of the pixels that have a column
# By how much the correlation of neighbors exceeds that of pixels half an image apart: at least .28
# for digits, MNIST, faces and objects; at most .02 for noise, spectra, random walks, factors.
CLEARLY = 0.15
# Median range of a column, as a share of the range of the table: at least .7 for these images.
SHARED_RANGE = 0.25
ONE_NUMBER = re.compile(r"(\D*)(\d{1,7})")
TWO_NUMBERS = re.compile(r"(\D*)(\d{1,4})(\D+)(\d{1,4})")


class Pixels(NamedTuple):
    """The shape of the images, and the pixel of each column."""

    shape: tuple[int, ...]
    places: np.ndarray

    def images(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Rows of all pixels; those without a column get one value."""
        found = np.full((len(values), math.prod(self.shape)), fill)
        found[:, self.places] = values
        return found


def pixels_of(prepared: Prepared) -> Pixels | None:
    """The pixels of a table of images; None if its rows are no images."""
    n, p = prepared.X.shape
    table, preparation = prepared.table, prepared.preparation
    if prepared.distances or p != table.shape[1]:  # categories became columns
        return None
    if table.image_shape is not None and math.prod(table.image_shape) == p:
        return Pixels(table.image_shape, np.arange(p))
    names = table.feature_names
    if preparation is not None:
        names = tuple(preparation.column_names_out() or names or ())  # in the order of the columns
    found = _by_number(p) if not names else _by_names(names)
    most = min(MOST_ROWS, MOST_VALUES // max(p, 1))
    if found is None or min(n, most) < FEWEST_ROWS:
        return None
    rows = np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
    return found if _look_like_images(table_rows(prepared, rows), found) else None


def _by_number(p: int) -> Pixels | None:
    side = math.isqrt(p)
    if side * side != p or side < SMALLEST_SIDE:
        return None
    return Pixels((side, side), np.arange(p))


def _by_names(names: Sequence[str]) -> Pixels | None:
    """The pixels of columns such as pixel17 of a square image, or pixel_3_5 or 3x5 of any image."""
    for pattern, pixels in ((ONE_NUMBER, _in_a_square), (TWO_NUMBERS, _in_a_rectangle)):
        parts = [pattern.fullmatch(str(name).strip()) for name in names]
        if all(parts):
            groups = [part.groups() for part in parts if part is not None]
            if len({group[::2] for group in groups}) == 1:  # the words around the numbers
                numbers = np.array([[int(number) for number in group[1::2]] for group in groups])
                return pixels(numbers)
    return None


def _in_a_square(numbers: np.ndarray) -> Pixels | None:
    last = int(numbers.max())
    from_one = numbers.min() > 0 and math.isqrt(last) ** 2 == last
    side = math.isqrt(last - 1) + 1 if from_one else math.isqrt(last) + 1
    return _checked((side, side), numbers[:, 0] - from_one)


def _in_a_rectangle(numbers: np.ndarray) -> Pixels | None:
    numbers = numbers - (1 if numbers.min() > 0 else 0)
    height, width = (int(last) + 1 for last in numbers.max(axis=0))
    return _checked((height, width), numbers[:, 0] * width + numbers[:, 1])


def _checked(shape: tuple[int, int], places: np.ndarray) -> Pixels | None:
    whole = len(np.unique(places)) == len(places) >= LEAST_PRESENT * math.prod(shape)
    return Pixels(shape, places) if whole and min(shape) >= SMALLEST_SIDE else None


def _look_like_images(values: np.ndarray, pixels: Pixels) -> bool:
    known = np.isfinite(values)
    if not known.any():
        return False
    low = np.where(known, values, np.inf).min(axis=0)
    high = np.where(known, values, -np.inf).max(axis=0)
    varies = high > low
    with np.errstate(over="ignore"):
        ranges, whole = (high - low)[varies], float(high.max() - low.min())
    if not ranges.size or not np.isfinite(whole) or np.median(ranges) < SHARED_RANGE * whole:
        return False
    scaled = np.where(known & varies, (values - low.min()) / whole, 0.0)
    counts = np.maximum(known.sum(axis=0), 1)
    centered = np.where(known & varies, scaled - scaled.sum(axis=0) / counts, 0.0)
    length = np.sqrt((centered**2).sum(axis=0))
    standard = centered / np.where(length > 0, length, 1.0)
    standard = np.where(length > 0, standard, np.nan)  # a constant pixel has no correlation
    standing = pixels.images(standard, np.nan).reshape(len(values), *pixels.shape)
    height, width = pixels.shape
    near = [_correlation(standing, 0, 1), _correlation(standing, 1, 0)]
    far = [_correlation(standing, 0, width // 2), _correlation(standing, height // 2, 0)]
    return min(near) > max(far) + CLEARLY


def _correlation(images: np.ndarray, down: int, right: int) -> float:
    """The mean correlation of pixels and those so many steps below and to the right of them."""
    _, height, width = images.shape
    first = images[:, : height - down, : width - right]
    products = np.einsum("nij,nij->ij", first, images[:, down:, right:])
    known = products[np.isfinite(products)]
    return float(known.mean()) if known.size else 0.0

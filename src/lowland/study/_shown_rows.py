"""Which rows a picture shows of a table, if it can show some dozen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Shown(NamedTuple):
    """A row, and the word that says why it is shown; empty if it is one of many."""

    row: int
    word: str


def one_per_class(labels: Any, errors: np.ndarray, most: int) -> list[Shown]:
    """The row with the median error of each class; nothing if there are no classes or too many."""
    from lowland.plot.colors import Categories, encode_labels

    if labels is None:
        return []
    coloring = encode_labels(labels, len(labels))
    if not isinstance(coloring, Categories) or not 2 <= len(coloring.names) <= most:
        return []
    if coloring.n_others:
        return []
    found = []
    for code, name in enumerate(coloring.names):
        rows = np.flatnonzero(coloring.codes == code)
        if rows.size:
            found.append(Shown(_median_row(rows, errors), name))
    return found


def spread_out(Y: np.ndarray, n: int) -> list[Shown]:
    """About n rows in all parts of a map: it is cut into strips with equally many rows, these into
    pieces, and the row nearest to the mean of each piece is taken.
    """
    strips = n if Y.shape[1] == 1 else max(1, n // 2)
    found = []
    for strip in np.array_split(np.argsort(Y[:, 0], kind="stable"), strips):
        across = strip[np.argsort(Y[strip, -1], kind="stable")]
        for piece in np.array_split(across, max(1, n // strips)):
            if piece.size:
                offsets = Y[piece] - Y[piece].mean(axis=0)
                scale = np.abs(offsets).max() or 1.0  # squares stay in range
                distances = ((offsets / scale) ** 2).sum(axis=1)
                found.append(Shown(int(piece[np.argmin(distances)]), ""))
    return found


def extremes(errors: np.ndarray, counts: Sequence[int]) -> list[Shown]:
    """Rows with the lowest errors, errors around the median, and the highest, so many of each."""
    order = np.argsort(errors, kind="stable")
    best, middle, worst = counts
    start = (len(order) - middle) // 2
    parts = {
        "best": order[:best],
        "median": order[start : start + middle],
        "worst": order[len(order) - worst :],
    }
    return [Shown(int(row), word) for word, rows in parts.items() for row in rows]


def _median_row(rows: np.ndarray, errors: np.ndarray) -> int:
    return int(rows[np.argsort(errors[rows], kind="stable")[(len(rows) - 1) // 2]])

"""One column or one row that carries nearly all variance of a table: the map shows little else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._core.units import largest
from lowland._core.validation import is_sparse
from lowland._engines.linalg.blocks import row_blocks, rows_within

NEARLY_ALL = 0.9
FEWEST_ROWS = 20  # of fewer rows, one that is alone has a large share anyhow


class Dominant(NamedTuple):
    """A column or a row, and its share of the variance."""

    kind: str  # "column" or "row"
    name: str
    share: float


def dominating(X: Any, names: Sequence[str] | None, ids: Sequence[Any]) -> list[Dominant]:
    """The column and the row that carry nearly all variance of the prepared rows, if there are any.

    Two passes over the rows, in blocks.
    """
    n, p = X.shape
    if n < 2 or p < 2:
        return []
    columns, rows = _squares(X if is_sparse(X) else np.asarray(X))
    total = float(columns.sum())
    if not np.isfinite(total) or total <= 0:
        return []
    found = []
    place = int(np.argmax(columns))
    if columns[place] > NEARLY_ALL * total:
        name = f"column {place}" if names is None else str(names[place])
        found.append(Dominant("column", name, float(columns[place]) / total))
    row = int(np.argmax(rows))
    if n >= FEWEST_ROWS and rows[row] > NEARLY_ALL * total:
        found.append(Dominant("row", str(ids[row]), float(rows[row]) / total))
    return found


def _squares(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sums of squared deviations from the column means, of each column and of each row."""
    n, p = X.shape
    values = X.data if is_sparse(X) else X
    size = largest(values)
    unit = 1.0 / size if np.isfinite(size) and size > 0 else 1.0  # squares stay in range
    if is_sparse(X):
        Z = X.astype(np.float64) * unit
        mean = np.asarray(Z.mean(axis=0)).ravel()
        squares = Z.multiply(Z)
        columns = np.asarray(squares.sum(axis=0)).ravel() - n * mean**2
        rows = np.asarray(squares.sum(axis=1)).ravel() - 2.0 * (Z @ mean) + float(mean @ mean)
        return np.maximum(columns, 0.0), np.maximum(rows, 0.0)
    mean = X.mean(axis=0, dtype=np.float64)
    columns, rows = np.zeros(p), np.empty(n)
    for block in row_blocks(n, rows_within(8 * p, 2**21)):
        Z = (X[block] - mean) * unit
        np.square(Z, out=Z)
        columns += Z.sum(axis=0)
        rows[block] = Z.sum(axis=1)
    return columns, rows


def dominating_note(found: Dominant, scaled: bool, say: Any) -> str:
    """The caution for a person, with what to do; ``say`` spells an option."""
    what = found.name if found.name.startswith("column ") else f"{found.kind} {found.name!r}"
    text = f"{what} carries {found.share:.1%} of the variance: the map shows little else"
    if found.kind == "row":
        return f"{text}; if it is an error or an outlier, leave this row out"
    drop = f", {say('drop', found.name)} leaves it out" if what != found.name else ""
    equal = "" if scaled else f"; {say('scale', 'standard')} gives all columns the same weight"
    return f"{text}{equal}{drop}" if equal else f"{text}{drop}"

"""What is known beforehand: which rows of the tables are one object, and where some rows lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from lowland._core.errors import DataError, DataTypeError
from lowland._core.validation import as_array


class Matches(NamedTuple):
    """Pairs of rows of different tables, in stacked row numbers, with weights above 0.

    ``rows`` belong to the earlier table. A pair occurs once.
    """

    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray


def set_of(rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The table of each stacked row number."""
    return np.searchsorted(starts, rows, side="right") - 1


def check_correspondence(given: Any, starts: np.ndarray, owner: str) -> np.ndarray:
    """Row numbers (m, n_sets) in int64, -1 where a table does not have the object."""
    C, n_sets = as_array(given, "correspondence"), len(starts) - 1
    if C.size == 0:
        raise DataError(
            f"{owner}: correspondence is empty; give None if no correspondence is known."
        )
    if C.dtype.kind not in "iu":
        raise DataTypeError(
            f"{owner}: correspondence holds {C.dtype}, expected integers: row numbers, or -1."
        )
    if C.ndim != 2 or C.shape[1] != n_sets:
        raise DataError(
            f"{owner}: correspondence has shape {C.shape}, expected (m, {n_sets}): one column for "
            "each table."
        )
    for d, size in enumerate(np.diff(starts)):
        wrong = (C[:, d] < -1) | (C[:, d] >= size)
        if wrong.any():
            i = int(wrong.argmax())
            raise DataError(
                f"{owner}: correspondence[{i}, {d}] = {C[i, d]} is no row of Xs[{d}]; expected 0 "
                f"to {size - 1}, or -1 for an object that the table does not have."
            )
    alone = (C >= 0).sum(axis=1) < 2
    if alone.any():
        i = int(alone.argmax())
        raise DataError(
            f"{owner}: correspondence[{i}] names fewer than two tables; leave it out, as it "
            "matches nothing."
        )
    return C.astype(np.int64)


def matches_of(C: np.ndarray, starts: np.ndarray) -> Matches:
    """All pairs of the objects, each once, ordered by their row numbers."""
    found = []
    for a in range(C.shape[1]):
        for b in range(a + 1, C.shape[1]):
            both = (C[:, a] >= 0) & (C[:, b] >= 0)
            found.append(np.column_stack([C[both, a] + starts[a], C[both, b] + starts[b]]))
    pairs = np.unique(np.concatenate(found), axis=0)
    return Matches(pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))


def no_matches() -> Matches:
    none = np.empty(0, np.int64)
    return Matches(none, none, np.empty(0))


def check_one_to_one(matches: Matches, starts: np.ndarray, owner: str) -> np.ndarray:
    """The node of every stacked row if matched rows are merged; refuses two rows of one table."""
    n = int(starts[-1])
    edges = scipy.sparse.csr_matrix(
        (np.ones(len(matches.rows), np.int8), (matches.rows, matches.columns)), shape=(n, n)
    )
    _, label = scipy.sparse.csgraph.connected_components(edges, directed=False)
    order = np.lexsort((np.arange(n), label))
    tables = set_of(order, starts)
    twice = (label[order][1:] == label[order][:-1]) & (tables[1:] == tables[:-1])
    if twice.any():
        i = int(twice.argmax())
        d = int(tables[i])
        first, second = order[i] - starts[d], order[i + 1] - starts[d]
        raise DataError(
            f"{owner}: mu='hard' gives matched rows one place, but correspondence matches the rows "
            f"{first} and {second} of Xs[{d}] with one object; leave one of them out, or give mu "
            "as a number."
        )
    _, first_rows, node = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first_rows), np.int64)
    rank[np.argsort(first_rows)] = np.arange(len(first_rows))
    return rank[node.ravel()]


def check_coordinates(given: Any, starts: np.ndarray, q: int, owner: str) -> np.ndarray:
    """Known places (n, q) of the stacked rows in float64, NaN where they are unknown."""
    n_sets = len(starts) - 1
    if not isinstance(given, list | tuple) or len(given) != n_sets:
        raise DataError(
            f"{owner}: coordinates must be a list of {n_sets} arrays, one for each table; give "
            "None for a table without known places."
        )
    S = np.full((int(starts[-1]), q), np.nan)
    for d, part in enumerate(given):
        if part is None:
            continue
        array = as_array(part, f"coordinates[{d}]")
        shape = (int(starts[d + 1] - starts[d]), q)
        if array.dtype.kind not in "fiu":
            raise DataTypeError(f"{owner}: coordinates[{d}] holds {array.dtype}, expected numbers.")
        if array.shape != shape:
            raise DataError(
                f"{owner}: coordinates[{d}] has shape {array.shape}, expected {shape}: the rows of "
                f"Xs[{d}] and n_components={q} columns."
            )
        unknown = np.isnan(array)
        broken = np.isinf(array).any(axis=1) | (unknown.any(axis=1) & ~unknown.all(axis=1))
        if broken.any():
            raise DataError(
                f"{owner}: coordinates[{d}], row {int(broken.argmax())} is infinite or known in "
                "part; give all of its numbers, or NaN in all."
            )
        S[starts[d] : starts[d + 1]] = array
    if np.isnan(S).all():
        raise DataError(f"{owner}: coordinates holds no known place; give None.")
    return S

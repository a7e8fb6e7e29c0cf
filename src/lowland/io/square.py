"""Checks of a matrix of distances; an error names the first entry that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core.errors import DataError

# d_ij and d_ji may differ by rounding, for example in files with six digits or from float32.
SAME = 1e-5
SELF = (
    "but a row is at distance 0 from itself; if these are similarities, say so "
    "(similarities=True, --similarities)"
)
BLOCK = 1 << 22  # numbers compared at a time: 32 MB


def checked_dense(
    source: str, D: np.ndarray, names: Sequence[str] | None, *, allow_missing: bool
) -> tuple[np.ndarray, int]:
    """The distances, and how many were filled in from the other side of the diagonal."""
    if D.ndim != 2 or D.shape[0] != D.shape[1] or D.shape[0] == 0:
        raise _not_square(source, D.shape)
    place = _Places(source, names)
    D, mirrored = _mirrored(D)
    if not allow_missing:
        place.refuse_first(
            np.isnan(D),
            D,
            "is not known; fill it in, or allow missing distances (mds, nonmetric_mds, sammon)",
        )
    place.refuse_first(np.isinf(D), D, "is infinite")
    place.refuse_first(D < 0, D, "is negative")
    largest = float(np.nanmax(D, initial=0.0))
    diagonal = np.diagonal(D)
    bad = np.flatnonzero(diagonal > SAME * largest)
    if bad.size:
        i = int(bad[0])
        raise place.error(i, i, f"is {diagonal[i]:g}, {SELF}")
    step = max(1, BLOCK // D.shape[0])
    for start in range(0, D.shape[0], step):
        rows = slice(start, start + step)
        here, there = D[rows], D[:, rows].T
        unequal = np.abs(here - there) > SAME * np.maximum(here, there)
        if unequal.any():
            i, j = (int(k[0]) for k in np.nonzero(unequal))
            raise place.unequal(start + i, j, here[i, j], there[i, j])
    return D, mirrored


def _mirrored(D: np.ndarray) -> tuple[np.ndarray, int]:
    """Distances given on one side of the diagonal are copied to the other; the diagonal is 0."""
    missing = np.isnan(D)
    if not missing.any():
        return D, 0
    D = np.where(missing, D.T, D)
    diagonal = np.diagonal(missing).copy()
    D[diagonal, diagonal] = 0.0
    known = ~np.isnan(D) & missing
    return D, int(known.sum() - diagonal.sum())


def checked_sparse(source: str, D: Any, names: Sequence[str] | None, *, allow_missing: bool) -> Any:
    """Checked distances; a pair stored twice has equal values. Dense if every pair is stored."""
    n = D.shape[0]
    if n != D.shape[1]:
        raise _not_square(source, D.shape)
    place = _Places(source, names)
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(D.indptr))
    columns = D.indices.astype(np.int64)
    for bad, what in (
        (np.isnan(D.data) & (not allow_missing), "is not known; leave it out"),
        (np.isinf(D.data), "is infinite"),
        (D.data < 0, "is negative"),
    ):
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise place.error(int(rows[k]), int(columns[k]), f"{what} ({D.data[k]:g})")
    diagonal = np.flatnonzero(D.diagonal() > SAME * D.data.max(initial=0.0))
    if diagonal.size:
        i = int(diagonal[0])
        raise place.error(i, i, f"is {D[i, i]:g}, {SELF}")
    keys, mirror = rows * n + columns, columns * n + rows  # keys ascend: CSR is sorted
    there = np.minimum(np.searchsorted(keys, mirror), max(keys.size - 1, 0))
    both = keys[there] == mirror
    here, back = D.data[both], D.data[there[both]]
    unequal = np.flatnonzero(np.abs(here - back) > SAME * np.maximum(here, back))
    if unequal.size:
        k = np.flatnonzero(both)[unequal[0]]
        raise place.unequal(int(rows[k]), int(columns[k]), D.data[k], D.data[there[k]])
    complete = int((rows != columns).sum()) == n * (n - 1)
    return D.toarray() if complete else D


class _Places:
    """Names of entries in messages."""

    def __init__(self, source: str, names: Sequence[str] | None) -> None:
        self.source, self.names = source, names

    def name(self, i: int) -> str:
        return str(i) if self.names is None else repr(self.names[i])

    def error(self, i: int, j: int, what: str) -> DataError:
        return DataError(
            f"{self.source}: the distance in row {self.name(i)}, column {self.name(j)} {what}."
        )

    def unequal(self, i: int, j: int, here: float, there: float) -> DataError:
        return self.error(
            i, j, f"is {here:g}, but {there:g} the other way round; distances are symmetric"
        )

    def refuse_first(self, bad: np.ndarray, D: np.ndarray, what: str) -> None:
        if bad.any():
            i, j = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            count = int(bad.sum())
            more = f" (the first of {count} such places)" if count > 1 else ""
            value = "" if np.isnan(D[i, j]) else f" ({D[i, j]:g})"
            raise self.error(i, j, f"{what}{value}{more}")


def _not_square(source: str, shape: tuple[int, ...]) -> DataError:
    if len(shape) != 2:
        return DataError(f"{source}: the array has shape {shape}, expected a square of distances.")
    return DataError(
        f"{source}: {shape[0]} rows and {shape[1]} columns; a matrix of distances is square."
    )

"""Sparse tables: well-formed ones in every format, and ones whose index arrays lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

SPARSE: dict[str, Callable[[np.ndarray], Any]] = {
    "csr": scipy.sparse.csr_array,
    "csr matrix": scipy.sparse.csr_matrix,
    "csr float32": lambda X: scipy.sparse.csr_matrix(X.astype(np.float32)),
    "csr int": lambda X: scipy.sparse.csr_matrix(np.nan_to_num(X).clip(-9e18, 9e18).astype(int)),
    "csc": scipy.sparse.csc_matrix,
    "coo": scipy.sparse.coo_array,
    "bsr": scipy.sparse.bsr_matrix,
    "dia": scipy.sparse.dia_matrix,
    "dok": scipy.sparse.dok_matrix,
    "lil": scipy.sparse.lil_matrix,
    "duplicates": lambda X: _with_duplicates(X),
    "stored zeros": lambda X: _with_zeros(X),
    "unsorted": lambda X: _unsorted(X),
    "int64 indices": lambda X: _long(X),
}


def _with_duplicates(X: np.ndarray) -> Any:
    whole = scipy.sparse.coo_matrix(X)
    parts = [np.concatenate([part, part]) for part in (whole.row, whole.col)]
    values = np.concatenate([whole.data / 2, whole.data / 2])
    return scipy.sparse.coo_matrix((values, tuple(parts)), shape=X.shape)


def _with_zeros(X: np.ndarray) -> Any:
    found = scipy.sparse.csr_matrix(np.where(X == 0, 1.0, X))
    found.data[found.data == 1.0] = 0.0
    return found


def _unsorted(X: np.ndarray) -> Any:
    found = scipy.sparse.csr_matrix(X)
    for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        found.indices[start:stop] = found.indices[start:stop][::-1].copy()
        found.data[start:stop] = found.data[start:stop][::-1].copy()
    found.has_sorted_indices = False
    return found


def _long(X: np.ndarray) -> Any:
    found = scipy.sparse.csr_array(X)
    found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
    return found


HOSTILE_NUMBERS = (-1, -7, 10**6, 2**31 - 1, -(2**31))


def _wrong_number(array: np.ndarray, rng: np.random.Generator) -> None:
    if array.size:
        array[rng.integers(array.size)] = HOSTILE_NUMBERS[rng.integers(len(HOSTILE_NUMBERS))]


def malformed(rng: np.random.Generator, X: np.ndarray) -> tuple[str, Any]:
    """A sparse matrix whose parts were changed after it was made, as a program with an error does.

    SciPy checks the parts when a matrix is made, not when they are changed; its flags on the order
    of indices stay what they were.
    """
    form = ("csr", "csc", "coo", "bsr", "dia")[rng.integers(5)]
    found = SPARSE[form](X).copy()
    flagged = bool(rng.random() < 0.5)
    if form == "coo":
        part = ("row", "col")[rng.integers(2)]
        coords = [axis.copy() for axis in found.coords]
        _wrong_number(coords[part == "col"], rng)
        found.coords = tuple(coords)
        return f"malformed coo, {part}", found
    if form == "dia":
        found.offsets = found.offsets.copy()
        _wrong_number(found.offsets, rng)
        return "malformed dia", found
    part = ("indices", "indptr", "data", "lengths")[rng.integers(4)]
    if flagged and form != "bsr":  # known as canonical before it is spoiled
        found.has_sorted_indices = found.has_canonical_format = True
    if part in ("indices", "indptr"):
        _wrong_number(getattr(found, part), rng)
    elif part == "data":
        found.data = found.data[: len(found.data) // 2]
    elif part == "lengths":
        found.indices = found.indices[: len(found.indices) // 2]
    return f"malformed {form}, {part}{', flagged' if flagged else ''}", found

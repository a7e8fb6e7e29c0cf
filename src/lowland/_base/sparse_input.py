"""Sparse input, checked before scipy or a kernel follows one of its indices.

Compiled code trusts the arrays of a sparse matrix, and they can be replaced by anything after the
matrix was made. The flags that scipy keeps about them (sorted, each entry once) are not believed
either. Every sparse matrix that enters the library passes through :func:`compressed_rows`.

Cost: two passes over the column numbers, one that finds all of them inside and one that finds them
ascending. Measured on one core: 14 ms for 70 000 x 784 and for 200 000 x 5 000 with 10 million
stored values each, compared with 7 s and 9 s for two axes of PCA (``benchmarks/checks.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from lowland._base.errors import DataError


def compressed_rows(X: Any, argument: str = "X") -> Any:
    """X, of any sparse format, as CSR with ascending columns and each entry stored once.

    Its arrays are those of X where they are so already. X itself is not modified. ``DataError``
    states which part of a malformed matrix is wrong.
    """
    well_formed(X, argument)
    return as_csr(X)


def as_csr(X: Any) -> Any:
    """:func:`compressed_rows` of a matrix that is :func:`well_formed`."""
    import scipy.sparse

    if X.format == "dia":  # by numpy: scipy's kernel trusts the offsets
        X = X.tocoo()
    if X.format != "csr":
        X = X.tocsr()
    make = (
        scipy.sparse.csr_array if isinstance(X, scipy.sparse.sparray) else scipy.sparse.csr_matrix
    )
    fresh = make((X.data, X.indices, X.indptr), shape=X.shape, copy=False)  # without the flags
    if not fresh.has_canonical_format:
        fresh = fresh.copy()
        fresh.sum_duplicates()
    return fresh


def well_formed(X: Any, argument: str = "X") -> None:
    """Refuse a sparse matrix whose arrays contradict each other or its shape."""
    if len(X.shape) != 2:
        raise DataError(
            f"Expected 2D array, got {len(X.shape)}D array instead: {argument} has shape {X.shape}."
        )
    check = _CHECKS.get(X.format)
    try:
        flaw = None if check is None else check(X)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        flaw = f"its parts cannot be read ({error})"
    if flaw is not None:
        raise DataError(
            f"{argument} is a malformed {X.format.upper()} matrix of shape {X.shape}: {flaw}; "
            "build it again from its entries."
        )


def _compressed(X: Any, side: tuple[int, int] = (1, 1)) -> str | None:
    """CSR, CSC and, in blocks of ``side``, BSR."""
    n_rows, n_columns = X.shape[0] // side[0], X.shape[1] // side[1]
    major, minor = (n_columns, n_rows) if X.format == "csc" else (n_rows, n_columns)
    if flaw := _not_whole(X, "indptr") or _not_whole(X, "indices"):
        return flaw
    indptr, indices = X.indptr, X.indices
    if len(indptr) != major + 1:
        return f"indptr has {len(indptr)} entries instead of {major + 1}"
    if indptr[0] != 0:
        return f"indptr[0] = {indptr[0]}, not 0"
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        place = int(falls.argmax()) + 1
        return f"indptr[{place}] = {indptr[place]} is less than the entry before"
    stored = int(indptr[-1])
    if stored > len(indices):
        return f"indptr ends at {stored}, but indices has {len(indices)} entries"
    if len(X.data) < stored:
        return f"indptr ends at {stored}, but data has {len(X.data)} entries"
    return _outside("indices", indices[:stored], minor, indptr)


def _compressed_numbers(X: Any) -> str | None:
    return _not_numbers(X.data, 1) or _compressed(X)


def _blocks(X: Any) -> str | None:
    if flaw := _not_numbers(X.data, 3):
        return flaw
    side = X.data.shape[1:]
    if min(side) < 1 or X.shape[0] % side[0] or X.shape[1] % side[1]:
        return f"data has blocks of {side[0]} x {side[1]}, which do not fill it"
    return _compressed(X, side)


def _coordinates(X: Any) -> str | None:
    if flaw := _not_numbers(X.data, 1):
        return flaw
    for name, size in zip(("row", "col"), X.shape, strict=True):
        if flaw := _not_whole(X, name):
            return flaw
        found = getattr(X, name)
        if len(found) != len(X.data):
            return f"{name} has {len(found)} entries, but data has {len(X.data)}"
        if flaw := _outside(name, found, size):
            return flaw
    return None


def _diagonals(X: Any) -> str | None:
    if flaw := _not_numbers(X.data, 2) or _not_whole(X, "offsets"):
        return flaw
    if len(X.offsets) != len(X.data):
        return f"offsets has {len(X.offsets)} entries, but data has {len(X.data)} diagonals"
    if len(np.unique(X.offsets)) != len(X.offsets):
        return "offsets has an entry twice"
    return None


def _lists(X: Any) -> str | None:
    for name in ("rows", "data"):
        lists = getattr(X, name)
        if len(lists) != X.shape[0] or not all(isinstance(row, list) for row in lists):
            return f"{name} is not one list for each row"
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            return f"row {i} has {len(columns)} columns, but {len(values)} values"
    columns = np.array(list(chain.from_iterable(X.rows)))
    if columns.size and columns.dtype.kind not in "iu":
        return f"rows has column numbers of type {columns.dtype}"
    return _not_numbers(np.empty(0, X.dtype), 1) or _outside("rows", columns, X.shape[1])


def _pairs(X: Any) -> str | None:
    places = np.array(list(X.keys())).reshape(-1, 2)
    if places.size and places.dtype.kind not in "iu":
        return f"its keys have the type {places.dtype}"
    rows = _outside("keys", places[:, 0], X.shape[0])
    return (
        _not_numbers(np.empty(0, X.dtype), 1) or rows or _outside("keys", places[:, 1], X.shape[1])
    )


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "bsr": _blocks,
    "coo": _coordinates,
    "csc": _compressed_numbers,
    "csr": _compressed_numbers,
    "dia": _diagonals,
    "dok": _pairs,
    "lil": _lists,
}


def _not_numbers(data: Any, dimensions: int) -> str | None:
    if not isinstance(data, np.ndarray) or data.ndim != dimensions:
        return f"data is not an array of {dimensions} dimension{'s' * (dimensions > 1)}"
    if data.dtype.kind not in "biufc":
        return f"data holds {data.dtype}, not numbers"
    return None


def _not_whole(X: Any, name: str) -> str | None:
    found = getattr(X, name)
    if not isinstance(found, np.ndarray) or found.ndim != 1 or found.dtype.kind not in "iu":
        kind = getattr(found, "dtype", type(found).__name__)
        return f"{name} is not an array of whole numbers, but {kind} of shape {np.shape(found)}"
    return None


def _outside(
    name: str, indices: np.ndarray, size: int, indptr: np.ndarray | None = None
) -> str | None:
    """The first index that is not below ``size``; ``indptr`` has the starts of their parts.

    Where the indices of every part ascend, the first and the last of each tell.
    """
    if not indices.size:
        return None
    if indptr is not None and _ascend(indices, indptr):
        filled = indptr[1:] > indptr[:-1]
        first, last = indices[indptr[:-1][filled]], indices[indptr[1:][filled] - 1]
    else:
        first = last = indices
    if first.min() >= 0 and last.max() < size:
        return None
    place = int(np.argmax((indices < 0) | (indices >= size)))
    return f"{name}[{place}] = {indices[place]}, which is not between 0 and {size - 1}"


def _ascend(indices: np.ndarray, indptr: np.ndarray) -> bool:
    """Whether the indices of every part ascend, by one pass of compiled code over valid starts."""
    import scipy.sparse

    if indices.dtype not in (np.int32, np.int64) or indices.dtype != indptr.dtype:
        return False
    n = len(indptr) - 1
    view = scipy.sparse.csr_matrix((n, 1), dtype=np.int8)
    view.indices, view.indptr = indices, indptr
    return bool(view.has_sorted_indices)

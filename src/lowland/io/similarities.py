"""Similarities between rows as distances: d_ij = sqrt(s_ii + s_jj - 2 s_ij).

This is the distance between two points whose inner products are the similarities (Gower 1966). For
correlations, whose diagonal is 1, it is sqrt(2 (1 - r)). Tables of judged similarities often leave
the diagonal empty or 0; if all similarities are at most 1, it is taken to be 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.validation import is_sparse
from lowland.io.files.budget import require_for_table
from lowland.io.square import SAME


def distances_of(source: str, S: Any, names: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    """The distances of a square matrix of similarities, and what is to be said about it.

    In a sparse matrix, absent pairs have the similarity 0.
    """
    if S.ndim != 2 or S.shape[0] != S.shape[1] or S.shape[0] == 0:
        shape = " x ".join(map(str, S.shape))
        raise DataError(f"{source}: is {shape}; a matrix of similarities is square.")
    n = S.shape[0]
    require_for_table(source, n, n, 3 * 8 * n)
    if is_sparse(S):
        S = S.toarray()
    if S.dtype.kind not in "biuf":
        raise DataError(f"{source}: holds {S.dtype}, expected real numbers.")
    S = np.where(np.isnan(S), S.T, S) if S.dtype.kind == "f" else S
    S = S.astype(np.float64)
    notes = ["similarities became distances: sqrt(s_ii + s_jj - 2 s_ij)"]
    diagonal = np.diagonal(S)
    empty = np.isnan(diagonal).all() or not diagonal.any()
    others = np.abs(S[~np.eye(n, dtype=bool)])
    if empty and others.any() and others.max() <= 1:
        np.fill_diagonal(S, 1.0)
        notes.append("the diagonal is empty: the similarity of a row with itself is taken to be 1")

    def refuse(bad: np.ndarray, what: str) -> None:
        if bad.any():
            i, j = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            row, column = (str(k) if names is None else repr(names[k]) for k in (i, j))
            more = f"; this is the first of {int(bad.sum())} such places" if bad.sum() > 1 else ""
            place = f"{source}: the similarity in row {row}, column {column} ({S[i, j]:g})"
            raise DataError(f"{place} {what}{more}.")

    refuse(~np.isfinite(S), "is missing or infinite")
    greatest = float(np.abs(S).max())
    refuse(np.abs(S - S.T) > SAME * greatest, "is another one the other way round")
    diagonal = np.diagonal(S)
    squares = diagonal[:, None] + diagonal - 2.0 * S
    refuse(
        squares < -4.0 * SAME * greatest,
        "is larger than those of the two rows with themselves; distances need no conversion",
    )
    np.maximum(squares, 0.0, out=squares)
    squares = np.maximum(squares, squares.T)  # of two that differ by rounding
    np.fill_diagonal(squares, 0.0)
    return np.sqrt(squares, out=squares), notes

"""Kernel values that the native tiles do not compute: sparse rows, and Python functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist

from lowland._core.errors import DataError, ParameterError
from lowland._core.validation import is_sparse
from lowland._core.wording import shown
from lowland._engines.distances.function_metric import check_arguments, number_of
from lowland._engines.distances.sparse_rows import row_squares, unit_rows
from lowland._engines.linalg.blocks import row_blocks, rows_within

if TYPE_CHECKING:
    from lowland._engines.kernels.kernel_operators import Kernel

DENSE_BYTES = 2**27  # of sparse rows that are made dense at a time


def between(Y: Any, X: Any, kernel: Kernel) -> np.ndarray:
    """k(y, x) of all rows of Y and X in float64; each value depends on its two rows only."""
    if callable(kernel.name):
        return _by_calls(Y, X, kernel.name)
    Y, X = scipy.sparse.csr_array(Y, dtype=np.float64), scipy.sparse.csr_array(X, dtype=np.float64)
    if kernel.name == "laplacian":
        return np.exp(-kernel.gamma * _city_blocks(Y, X))
    if kernel.name == "cosine":
        Y, X = unit_rows(Y), unit_rows(X)
    K = np.asarray((Y @ X.T.tocsr()).toarray())
    if kernel.name == "rbf":
        K *= -2
        K += row_squares(Y)[:, None]
        K += row_squares(X)
        return np.exp(-kernel.gamma * np.maximum(K, 0.0, out=K), out=K)
    return of_product(kernel, K)


def diagonal_of(X: Any, kernel: Kernel) -> np.ndarray:
    """k(x, x) of all rows."""
    if callable(kernel.name):
        rows = (X[i].toarray().ravel() if is_sparse(X) else X[i] for i in range(X.shape[0]))
        return np.array([float(kernel.name(row, row)) for row in rows])
    squares = row_squares(scipy.sparse.csr_array(X, dtype=np.float64))
    if kernel.name == "cosine":
        return np.where(squares > 0, 1.0, 0.0)
    return of_product(kernel, squares)


def check_finite_products(image: np.ndarray) -> np.ndarray:
    """The product K V or the means of K, unless kernel values overflow in it."""
    finite = np.isfinite(image)
    if not finite.all():
        row = int(np.argmin(finite.reshape(len(image), -1).all(axis=1)))
        raise DataError(
            f"kernel: its values overflow, first for row {row}; scale the columns of X, or choose "
            "a smaller gamma or degree."
        )
    return image


def of_product(kernel: Kernel, s: np.ndarray) -> np.ndarray:
    """Values from s = x.y for the kernels of products; 1, as for x = y, from those of distances."""
    if kernel.name == "poly":
        return (kernel.gamma * s + kernel.coef0) ** kernel.degree
    if kernel.name == "sigmoid":
        return np.tanh(kernel.gamma * s + kernel.coef0)
    return np.ones_like(s) if kernel.name in ("rbf", "laplacian") else s


def _by_calls(Y: Any, X: Any, function: Any) -> np.ndarray:
    """One call per pair of rows; half of them where Y is X, because a kernel is symmetric."""
    check_arguments(function, None, "kernel")
    rows = _rows_to_read(Y)
    same = Y is X
    others = rows
    if not same:
        others = _rows_to_read(X)
    K = np.empty((len(rows), len(others)))
    for i, row in enumerate(rows):
        for j in range(i if same else 0, len(others)):
            value = function(row, others[j])
            number = number_of(value)
            if number is None:
                raise ParameterError(
                    f"kernel: the function gave {shown(value, 60)} for rows {i} and {j}; expected "
                    "one real number."
                )
            K[i, j] = number
            if same:
                K[j, i] = K[i, j]
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise DataError(
            f"kernel: the function gave {K[i, j]} for rows {i} and {j}; make it finite."
        )
    return K


def _city_blocks(Y: Any, X: Any) -> np.ndarray:
    """Sums of absolute differences of sparse rows, made dense block by block."""
    out = np.empty((Y.shape[0], X.shape[0]))
    step = rows_within(8 * Y.shape[1], DENSE_BYTES)
    for i in row_blocks(Y.shape[0], step):
        some = Y[i].toarray()
        for j in row_blocks(X.shape[0], step):
            out[i, j] = cdist(some, X[j].toarray(), "cityblock")
    return out


def _rows_to_read(X: Any) -> list[np.ndarray]:
    """The rows, dense; a function sees the data of the caller, and may not change them."""
    rows = [X[i].toarray().ravel() if is_sparse(X) else X[i].view() for i in range(X.shape[0])]
    for row in rows:
        row.flags.writeable = False
    return rows

"""Kernel values that the native tiles do not compute: sparse rows, and Python functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist, pdist

from lowland._base.errors import DataError, ParameterError, shown
from lowland._base.validation import is_sparse
from lowland._engines.distances.distance_rows import row_squares, unit_rows
from lowland._engines.distances.function_metric import check_arguments, number_of
from lowland._engines.linalg.products import row_blocks, rows_within

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


# The scale gamma of a kernel, from the data: what the parameter ``gamma`` means for given rows.
#
#     rbf        2 / s^2    s the median distance between rows: a Gaussian of width s / 2
#     laplacian  2 / s      s the median sum of absolute differences
#     poly       1 / m      m the mean of |x|^2, so that gamma x.x is about 1
#     sigmoid    1 / (4 m)  tanh(gamma x.y + coef0) is curved, but not yet 1 everywhere
#
# A fixed scale such as 1 / n_features suits standardized columns only: of other data all kernel
# values are 0 or 1. A median, unlike a variance, does not follow a few rows far away. Twice as
# wide, two rings with radii 1 and .3 stay mixed in two components; half as wide, maps of ordinary
# tables keep fewer neighbors (``benchmarks/defaults.py``).


BY_COLUMNS = "1/p"  # the value of the parameter that means 1 / n_features

SAMPLE = 1000  # rows whose pairs represent all pairs; fewer of wide rows
LEAST_SAMPLE = 100
PAIR_TERMS = 100_000_000  # differences that are computed for a median

TINY = np.finfo(np.float64).tiny


def kernel_scale(
    rows: Any,
    kernel: Any,
    gamma: float | str | None,
    owner: str,
    size: float | None = None,
) -> float:
    """The number that the parameter ``gamma`` of a kernel method means for these rows.

    Of a larger table, the rows are those of :func:`sample_numbers`, and ``size`` is the mean of
    |x|^2 over all rows.
    """
    if gamma == BY_COLUMNS or kernel in ("precomputed", "linear", "cosine") or callable(kernel):
        return 1.0 / rows.shape[1]
    if gamma is not None and gamma != "median":
        return float(gamma)
    if kernel == "rbf":
        width = median_distance(rows, "euclidean") / (1.0 if gamma == "median" else 2.0)
        return 0.5 / max(width**2, TINY)
    if kernel == "laplacian":
        return (1.0 if gamma == "median" else 2.0) / median_distance(rows, "cityblock")
    if gamma == "median":
        raise ParameterError(
            f"{owner}: gamma='median' is for kernel='rbf' and 'laplacian', not {kernel!r}; "
            "give a number or None."
        )
    size = mean_square(rows) if size is None else size
    return (0.25 if kernel == "sigmoid" else 1.0) / (size if size > TINY else 1.0)


def median_distance(X: Any, metric: str) -> float:
    """The median distance of pairs of rows ("euclidean" or "cityblock"), from a sample of rows.

    Where most pairs are equal, the median of the others; 1 where all rows are equal.
    """
    distances = sample_distances(X, metric)
    median = float(np.median(distances)) if distances.size else 0.0
    if median == 0.0:
        distances = distances[distances > 0]
        median = float(np.median(distances)) if distances.size else 1.0
    return median


def sample_distances(X: Any, metric: str) -> np.ndarray:
    """Distances of the pairs of up to ``SAMPLE`` of the rows.

    The rows are drawn: every tenth row would meet one group only where groups take turns.
    """
    numbers = sample_numbers(*X.shape)
    sample = X if len(numbers) == X.shape[0] else X[numbers]
    if is_sparse(sample):
        sample = sample[:, np.flatnonzero(np.diff(sample.tocsc().indptr))].toarray()
    return pdist(np.asarray(sample, dtype=np.float64), metric)


def sample_numbers(n: int, p: int) -> np.ndarray:
    """Row numbers, ascending, of the rows whose pairs represent all pairs."""
    most = int(min(SAMPLE, max(LEAST_SAMPLE, np.sqrt(2 * PAIR_TERMS / p))))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def mean_square(rows: Any) -> float:
    """The mean of |x|^2."""
    with np.errstate(over="ignore"):  # values whose squares overflow are refused by their size
        if is_sparse(rows):
            return float(row_squares(rows).mean())
        return float(np.einsum("ij,ij->i", rows, rows, dtype=np.float64).mean())

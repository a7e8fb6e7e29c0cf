"""Kernel functions, and the matrix of their values as an operator.

    rbf        exp(-gamma |x - y|^2)          linear    x.y
    laplacian  exp(-gamma sum |x_k - y_k|)    cosine    x.y / |x| |y|
    poly       (gamma x.y + coef0)^degree     sigmoid   tanh(gamma x.y + coef0)

:func:`kernel_matrix` holds the points and computes products K V, rows of K for new points, and K
itself if it fits in memory. Dense points use native tiles, computed for every product or kept in
half the memory of K; sparse points, functions and given matrices are processed by blocks of rows. A
row of K depends on its own point only, not on the other rows of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.spatial.distance import cdist, pdist

from lowland import _native
from lowland._base.errors import DataError, ParameterError, shown
from lowland._base.memory import available_memory
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse, largest_value
from lowland._engines.distances.distance_rows import row_squares, unit_rows
from lowland._engines.distances.filter_space import packed
from lowland._engines.distances.metrics import check_arguments, number_of
from lowland._engines.linalg import products
from lowland._engines.linalg.moments import column_moments
from lowland._engines.linalg.products import row_blocks, rows_within

KERNELS = ("rbf", "laplacian", "poly", "sigmoid", "cosine", "linear", "precomputed")
KINDS = {"linear": 0, "cosine": 0, "rbf": 1, "laplacian": 2, "poly": 3, "sigmoid": 4}

KEPT_BYTES = 1_200_000_000  # largest K that is kept between products
ROW_BYTES = 2**25  # of the rows of K that are computed at a time where K is not kept


class Kernel(NamedTuple):
    """A kernel's name, or a function of two rows, with its parameters."""

    name: str | Callable[..., float]
    gamma: float = 1.0
    coef0: float = 1.0
    degree: int = 3


def checked_values(K: np.ndarray, *, owner: str) -> np.ndarray:
    """A precomputed matrix of kernel values, refused if it is not square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise DataError(
            f"{owner}: kernel='precomputed' needs the square matrix of all pairs of rows; "
            f"X has shape {K.shape}."
        )
    gap = max(np.abs(K[at] - K[:, at].T).max() for at in panel_blocks(len(K), len(K)))
    if gap > 1e-5 * np.abs(K).max():
        raise DataError(
            f"{owner}: kernel='precomputed' needs a symmetric matrix; X and its transpose "
            f"differ by up to {gap:.3g}."
        )
    return K


def kernel_matrix(
    points: Any, kernel: Kernel, threads: int, dtype: Any = np.float64
) -> KernelMatrix:
    """K of the points, in ``dtype`` where they are dense; no value is computed yet."""
    if kernel.name == "precomputed":
        return GivenKernel(points, threads)
    if callable(kernel.name) or is_sparse(points):
        return RowKernel(points, kernel, threads)
    return DenseKernel(points, kernel, threads, dtype)


def kernel_product_cost(n: int, p: int, n_products: int = 1) -> Estimate:
    """Of products K V of dense points with 16 vectors at a time, the first of which computes K.

    Where K is too large to be kept, each product computes it.
    """
    kept = 4 * n * n <= KEPT_BYTES
    first = Estimate(n * n * (2.5e-9 + 1e-11 * p), 4 * n * n if kept else 8 * n * p)
    later = Estimate(7e-10 * n * n, 0.0) if kept else first
    return first + (n_products - 1) * later


def kernel_matrix_cost(n: int, p: int) -> Estimate:
    """Of the whole matrix of dense points."""
    return Estimate(n * n * (4e-9 + 3e-11 * p), 8 * n * n)


def affordable(n_bytes: int) -> bool:
    """Whether a matrix may be kept: it is not large, and takes at most a third of free memory."""
    return n_bytes <= KEPT_BYTES and n_bytes <= available_memory() // 3


def panel_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Blocks of rows of a float64 matrix, in whole panels of the native kernels."""
    return row_blocks(n_rows, rows_within(8 * n_columns, ROW_BYTES, multiple=24))


class KernelMatrix:
    """K of n points: the interface of all three kinds."""

    n: int
    threads: int

    def rows(self, Y: Any) -> np.ndarray:
        """k(y, point) for the rows of Y and all points, a fresh array."""
        raise NotImplementedError

    def matrix(self) -> np.ndarray:
        """K itself, a fresh array."""
        raise NotImplementedError

    def diagonal(self, Y: Any = None) -> np.ndarray:
        """k(x, x) of the points, or of the rows of Y as :meth:`rows` sees them."""
        raise NotImplementedError

    def times(self, V: np.ndarray) -> np.ndarray:
        """K V in float64."""
        raise NotImplementedError

    def rows_times(self, Y: Any, V: np.ndarray) -> np.ndarray:
        """sum_j k(y, point_j) V_j for the rows of Y, in float64, each independent of the others."""
        out = np.empty((Y.shape[0], V.shape[1]))
        nothing = np.zeros(self.n)
        for block in panel_blocks(Y.shape[0], self.n):
            out[block] = products.times(self.rows(Y[block]), nothing, V, self.threads)
        if not np.isfinite(out).all():
            row = int(np.argmin(np.isfinite(out).all(axis=1)))
            raise DataError(
                f"kernel: its values for new row {row} overflow; the "
                f"largest value of X is {largest_value(Y):g}."
            )
        return out


class DenseKernel(KernelMatrix):
    """K of dense points by native tiles.

    Points are scaled so that the tiles need no gamma, and shifted where that changes nothing after
    centering, because shifted points lose fewer digits. So the values of "linear" are those of the
    shifted points.
    """

    def __init__(self, points: np.ndarray, kernel: Kernel, threads: int, dtype: Any) -> None:
        self.n, self.threads, self.dtype = len(points), threads, np.dtype(dtype)
        self.points, self.kernel = points, kernel
        self.function = (KINDS[kernel.name], float(kernel.coef0), int(kernel.degree))  # type: ignore[index]
        movable = kernel.name in ("rbf", "laplacian", "linear")
        self.shift = column_moments(points)[0] if movable else np.zeros(points.shape[1])
        self.scale = {
            "rbf": np.sqrt(2 * kernel.gamma),
            "laplacian": kernel.gamma,
            "poly": np.sqrt(kernel.gamma),
            "sigmoid": np.sqrt(kernel.gamma),
        }.get(str(kernel.name), 1.0)
        self._panels: np.ndarray | None = None
        self._tiles: np.ndarray | None = None
        self._filled = False

    def _scaled(self, Y: Any) -> np.ndarray:
        """Rows in the form that the tiles take, in float64."""
        Y = Y.toarray() if is_sparse(Y) else Y
        Z = np.array(Y, dtype=np.float64, order="C")
        if self.kernel.name == "cosine":
            size = np.abs(Z).max(axis=1, keepdims=True)
            Z /= np.where(
                size > 0, size, 1.0
            )  # squares of tiny or huge rows would underflow or overflow
            length = np.linalg.norm(Z, axis=1, keepdims=True)
            Z /= np.where(length > 0, length, 1.0)
        else:
            Z -= self.shift
            Z *= self.scale
        return Z

    def _packed(self, Y: Any) -> np.ndarray:
        return packed(self._scaled(Y).astype(self.dtype, copy=False), self.threads)

    @property
    def panels(self) -> np.ndarray:
        if self._panels is None:
            self._panels = self._packed(self.points)
        return self._panels

    def rows(self, Y: Any) -> np.ndarray:
        out = np.empty((Y.shape[0], self.n), self.dtype)
        _native.kernel_rows(self._packed(Y), self.panels, *self.function, out, self.threads)
        return out

    def matrix(self) -> np.ndarray:
        out = np.empty((self.n, self.n), self.dtype)
        _native.kernel_rows(self.panels, self.panels, *self.function, out, self.threads)
        return out

    def diagonal(self, Y: Any = None) -> np.ndarray:
        points = self.points if Y is None else Y
        squares = np.empty(points.shape[0])
        for block in panel_blocks(points.shape[0], points.shape[1]):
            Z = self._scaled(points[block])
            squares[block] = np.einsum("ij,ij->i", Z, Z)
        return of_product(self.kernel._replace(gamma=1.0), squares)  # gamma is in the points

    def times(self, V: np.ndarray) -> np.ndarray:
        """K V; the first product computes the tiles, later ones reuse them if they were kept."""
        single = self.dtype == np.float32
        side = _native.TILE_SIDE_FLOAT32 if single else _native.TILE_SIDE_FLOAT64
        if self._tiles is None:
            groups = -(-self.n // side)
            n_tiles = groups * (groups + 1) // 2
            kept = affordable(n_tiles * side * side * self.dtype.itemsize)
            self._tiles = np.empty((n_tiles if kept else 0, side, side), self.dtype)
        out = np.empty(V.shape)
        V = np.ascontiguousarray(V, dtype=self.dtype)
        _native.kernel_times(
            self.panels, *self.function, self._tiles, self._filled, V, out, self.threads
        )
        self._filled = True
        return out


class RowKernel(KernelMatrix):
    """K of sparse points, or of a Python function, by blocks of rows in float64."""

    def __init__(self, points: Any, kernel: Kernel, threads: int) -> None:
        self.n, self.threads = points.shape[0], threads
        self.points, self.kernel = points, kernel
        self._kept: np.ndarray | None = None

    def rows(self, Y: Any) -> np.ndarray:
        return between(Y, self.points, self.kernel)

    def matrix(self) -> np.ndarray:
        return between(self.points, self.points, self.kernel)

    def diagonal(self, Y: Any = None) -> np.ndarray:
        return diagonal_of(self.points if Y is None else Y, self.kernel)

    def times(self, V: np.ndarray) -> np.ndarray:
        if self._kept is None and affordable(8 * self.n * self.n):
            self._kept = self.matrix()
        if self._kept is not None:
            return products.times(self._kept, np.zeros(self.n), V, self.threads)
        return self.rows_times(self.points, V)


class GivenKernel(KernelMatrix):
    """A precomputed kernel matrix; new rows are given by their kernel values."""

    def __init__(self, K: np.ndarray, threads: int) -> None:
        self.n, self.threads, self.K = K.shape[1], threads, K

    def rows(self, Y: Any) -> np.ndarray:
        Y = Y.toarray() if is_sparse(Y) else Y
        return np.array(Y, dtype=np.float64, order="C")

    def matrix(self) -> np.ndarray:
        return self.rows(self.K)

    def diagonal(self, Y: Any = None) -> np.ndarray:
        return np.diag(self.K if Y is None else Y).astype(np.float64)

    def times(self, V: np.ndarray) -> np.ndarray:
        return products.times(self.K, np.zeros(self.n), V, self.threads).astype(np.float64)


# Kernel values that the native tiles do not compute: sparse rows, and Python functions.


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
    rows: Any, kernel: Any, gamma: float | str | None, owner: str, size: float | None = None
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

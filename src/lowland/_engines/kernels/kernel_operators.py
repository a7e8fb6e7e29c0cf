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

from lowland import _native
from lowland._base.errors import DataError
from lowland._base.memory import available_memory
from lowland._base.traits import Estimate
from lowland._base.validation import is_sparse, largest_value
from lowland._engines.distances.filter_space import packed
from lowland._engines.kernels.kernel_values import between, diagonal_of, of_product
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

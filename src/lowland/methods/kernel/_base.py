"""The base of kernel methods: the kernel and its scale, given kernel values, out-of-sample rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from lowland._base.base import Reducer
from lowland._base.constraints import Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.models.checks import above, count
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Reading
from lowland._base.validation import dense_if_small, is_sparse, is_usual, largest_value
from lowland._engines.kernels.kernel_operators import (
    BY_COLUMNS,
    KERNELS,
    Kernel,
    KernelMatrix,
    checked_values,
    kernel_matrix,
    kernel_scale,
    median_distance,
    panel_blocks,
    sample_distances,
)
from lowland._engines.linalg import products

if TYPE_CHECKING:
    from lowland._engines.kernels.kernel_operators import Kernel

# The check that kernel values differ: at extreme scales all are equal.


# Up to rounding, exp(-x) is 1 below the first and 0 above the second, and tanh(x) is x and 1.
NONE, ALL = 1e-14, 745.0
LARGEST = 1e150  # value of a kernel: its square is a number


def check_scale(X: Any, kernel: Kernel, owner: str, greatest: float | None = None) -> None:
    """Refuse rows of extreme values whose kernel values are all equal or overflow.

    X may be a sample of the rows; then ``greatest`` is the largest absolute value of all.
    """
    name = kernel.name
    if callable(name) or name in ("cosine", "precomputed"):
        return
    if greatest is None:
        greatest = largest_value(X)
    if is_usual(greatest) or name == "linear":
        return
    if name in ("rbf", "laplacian"):
        nearest, farthest = _arguments(X, kernel)
        if farthest > NONE and nearest < ALL:
            return
        reason = "0" if nearest >= ALL else "1"
    else:
        s = greatest * greatest * X.shape[1] * kernel.gamma
        least = NONE if name == "sigmoid" else NONE * abs(kernel.coef0)
        most = 1 / NONE if name == "sigmoid" else LARGEST ** (1 / kernel.degree)
        if least < s < most:
            return
        reason = "the same" if s <= least else "so large that their squares overflow"
        if name == "sigmoid":
            reason = "-1 or 1"
    hint = ", or leave gamma at None" if name in ("rbf", "laplacian") else ""
    raise DataError(
        f"{owner}: the largest value of X is {greatest:g}, and all values of kernel={name!r} with "
        f"gamma={kernel.gamma:g} are {reason}; divide X by {greatest:.0e}{hint}."
    )


def _arguments(X: Any, kernel: Kernel) -> tuple[float, float]:
    """The exponent, such as gamma |x - y|^2, of the nearest and the farthest pair of a sample."""
    squared = kernel.name == "rbf"
    distances = sample_distances(X, "euclidean" if squared else "cityblock")
    distances = distances[distances > 0]
    if not len(distances):  # all rows are equal, at any scale
        return 1.0, 1.0
    ends = np.array([distances.min(), distances.max()])
    with np.errstate(over="ignore"):
        least, most = kernel.gamma * (ends**2 if squared else ends)
    return float(least), float(most)


# Pre-images: rows whose images in feature space are near given points of the map.
#
# rbf      z = sum_j g_j k(z, x_j) x_j / sum_j g_j k(z, x_j), iterated (Mika et al. 1999)
# linear   linear regression of the fitted rows on their coordinates in the map
# others   kernel ridge regression of the fitted rows on their coordinates in the map


MAX_STEPS = 200
GAIN = 1e-10  # a smaller relative gain ends the iteration
RIDGE_ROWS = 2000  # the regression uses at most so many rows, because it costs their number cubed


class Axes(NamedTuple):
    """Kept rows x_j, their coordinates in the map, and the weights A and b.

    The axes are sum_j A_jk phi(x_j), and the mean of the images is sum_j b_j phi(x_j).
    """

    rows: Any
    places: np.ndarray
    duals: np.ndarray
    mean_weights: np.ndarray


def preimages(Y: np.ndarray, axes: Axes, kernel: Kernel, ridge: float, threads: int) -> np.ndarray:
    """Rows for the points Y of the map; ``ridge`` is for kernels other than rbf and linear."""
    if kernel.name == "linear":
        return by_least_squares(Y, axes.places, axes.rows, threads)
    if kernel.name == "rbf":
        return by_fixed_point(Y, axes, kernel, threads)
    return by_ridge(Y, axes.places, axes.rows, ridge, threads)


def by_fixed_point(Y: np.ndarray, axes: Axes, kernel: Kernel, threads: int) -> np.ndarray:
    """Rows z that minimize |phi(z) - P|^2 for the points P = sum_j g_j phi(x_j) of the map.

    g = b + A y. Up to constants this maximizes sum_j g_j k(z, x_j), starting from the kept row that
    is nearest in the map. Steps never lower the sum while the weights g_j of near rows are
    positive. A step that would lower it is not taken and ends the iteration of that row.
    """
    X = np.empty((len(Y), axes.rows.shape[1]))
    matrix = kernel_matrix(axes.rows, kernel, threads)
    zero = np.zeros(Y.shape[1])
    for block in panel_blocks(len(Y), matrix.n):
        start = axes.rows[nearest_rows(Y[block], axes.places)]
        weights = products.times(Y[block], zero, axes.duals.T, threads) + axes.mean_weights
        start = start.toarray() if is_sparse(start) else start
        X[block] = _climb(start, weights, axes.rows, matrix, threads)
    return X


def _climb(
    start: np.ndarray, weights: np.ndarray, rows: Any, matrix: KernelMatrix, threads: int
) -> np.ndarray:
    """Iterate z = sum_j g_j k(z, x_j) x_j / sum_j g_j k(z, x_j) for each row g of the weights."""
    zero = np.zeros(matrix.n)
    best, reached = np.array(start, dtype=np.float64), np.zeros(len(start))
    Z, active = best.copy(), np.arange(len(best))
    for _ in range(MAX_STEPS):
        shares = matrix.rows(Z[active])
        shares *= weights[active]
        value = shares.sum(axis=1)
        better = value > reached[active] * (1 + GAIN)
        active, shares, value = active[better], shares[better], value[better]
        if not len(active):
            break
        best[active], reached[active] = Z[active], value
        if is_sparse(rows):
            moved = np.asarray(shares @ rows)
        else:
            moved = products.times(shares, zero, rows, threads)
        Z[active] = moved / value[:, None]
    return best


def nearest_rows(Y: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The index of the nearest of ``places`` for each point of the map."""
    nearest = np.empty(len(Y), dtype=np.int64)
    for block in panel_blocks(len(Y), len(places)):
        nearest[block] = cdist(Y[block], places).argmin(axis=1)
    return nearest


def by_ridge(
    Y: np.ndarray, places: np.ndarray, rows: Any, ridge: float, threads: int
) -> np.ndarray:
    """Kernel ridge regression of the rows on their coordinates; the rbf kernel has median width."""
    some = slice(None, None, -(-len(places) // RIDGE_ROWS))
    centers = np.ascontiguousarray(places[some])
    targets = rows[some].toarray() if is_sparse(rows) else np.asarray(rows[some], np.float64)
    mean = targets.mean(axis=0)
    kernel = Kernel("rbf", 0.5 / median_distance(centers, "euclidean") ** 2)
    matrix = kernel_matrix(centers, kernel, threads)
    K = matrix.matrix()
    K[np.diag_indices_from(K)] += ridge
    if not (np.isfinite(K).all() and np.isfinite(targets - mean).all()):
        return np.full((len(Y), targets.shape[1]), np.nan)  # of extreme rows; refused by the caller
    with limit_blas(1):
        coefficients = scipy.linalg.solve(K, targets - mean, assume_a="pos")
    return matrix.rows_times(Y, coefficients) + mean


def by_least_squares(Y: np.ndarray, places: np.ndarray, rows: Any, threads: int) -> np.ndarray:
    """Linear regression of the rows on their coordinates, for maps that are linear themselves."""
    mean = np.asarray(rows.mean(axis=0, dtype=np.float64)).ravel()
    center = places.mean(axis=0)
    square = products.transpose_times(places, center, places - center, threads)
    if is_sparse(rows):
        cross = np.asarray((places - center).T @ rows)
    else:
        cross = products.transpose_times(places, center, rows, threads)
    with limit_blas(1):
        axes = np.linalg.pinv(square, hermitian=True) @ cross
    return products.times(Y, center, axes, threads) + mean


MOST_DEGREE = 10_000  # powers beyond it are 0 or infinite for all but values next to 1


class KernelReducer(Reducer):
    """The map y = A^T k(x, fitted rows) - c. A method writes ``_fit``, which calls ``_keep_map``.

    Parameters
    ----------
    kernel : str or function, default="rbf"
        Similarity of two rows: a name, a function of two rows, or "precomputed". "rbf" is
        exp(-gamma |x-y|^2), "laplacian" exp(-gamma sum |x-y|), "poly" (gamma x.y + coef0)^degree,
        "sigmoid" tanh(gamma x.y + coef0), "cosine" x.y / (|x| |y|) and "linear" x.y. With
        "precomputed", X holds the n x n kernel values of the fitted rows, and new rows are given
        by their kernel values with the fitted rows. A function is slow.
    gamma : float, "median", "1/p" or None, default=None
        Scale of the kernel; None takes it from the data. With s the median distance between rows
        (of a sample), None is 2 / s^2 for "rbf", a Gaussian of width s / 2, and 2 / s for
        "laplacian" with sums of absolute differences; it is 1 / m for "poly" and 1 / (4 m) for
        "sigmoid" with m the mean of |x|^2. "median" is 1 / (2 s^2) or 1 / s, twice as wide,
        "1/p" is 1 / n_features, which suits standardized columns only.
    coef0 : float, default=1.0
        Constant of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly".

    Attributes
    ----------
    dual_vectors_ : ndarray of shape (n_fitted, n_components)
        A: each axis as a combination of the images of the fitted rows.
    offsets_ : ndarray of shape (n_components,)
        c, which centers the coordinates, in the order of the axes.
    fitted_rows_ : ndarray or sparse matrix of shape (n_fitted, n_features), or None
        Rows that new rows are compared with: all, or the landmarks. None if kernel values were
        given.
    gamma_ : float
        Scale of the kernel in use.
    """

    kernel: Any = param(OneOf(*KERNELS) | Function(), default="rbf")
    gamma: float | str | None = param(Null() | OneOf("median", BY_COLUMNS) | Real(0), default=None)
    coef0: float = param(Real(), default=1.0)
    degree: int = param(Integer(1, MOST_DEGREE), default=3)

    dual_vectors_: np.ndarray = fitted("n_fitted", "n_components")
    offsets_: np.ndarray = fitted("n_components")
    fitted_rows_: Any = fitted("n_fitted", "n_features", optional=True, sparse=True)
    gamma_: float = fitted(meaning=above(0))
    n_components_: int = fitted(type=int, meaning=count(1))

    accepts_sparse = True
    reading = Reading(
        axes="The axes belong to a curved transformation of the data. Positions along them order "
        "the rows, but have no unit of the original columns.",
        distances="Near means similar in the sense of the kernel. Distances beyond the width of "
        "the kernel all look alike.",
        gaps="Whether groups look separate depends on the kernel and its width. Try another width "
        "before you conclude.",
        sizes="The size of a group depends on the width of the kernel, not only on the data.",
        scale="The kernel sets the scale: the squared coordinates of an axis sum to its "
        "eigenvalue.",
    )
    transform_uses_blas = False

    @property
    def _has_kernel_values(self) -> bool:
        """Whether X holds kernel values."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_, float(self.coef0), int(self.degree))

    def _prepared(self, X: Any) -> Any:
        """X as the engines take it; also sets ``gamma_`` and checks it against the scale of X."""
        if self._has_kernel_values:
            values = X.toarray() if is_sparse(X) else X
            rows = checked_values(values, owner=type(self).__name__)
        else:
            rows = dense_if_small(X)
        self.gamma_ = kernel_scale(rows, self.kernel, self.gamma, type(self).__name__)
        check_scale(rows, self._kernel(), type(self).__name__)
        return rows

    def _keep_map(self, duals: np.ndarray, offsets: np.ndarray, rows: Any) -> None:
        """Set the fitted attributes that define the map; ``rows`` belong to the rows of A."""
        self.dual_vectors_, self.offsets_ = np.ascontiguousarray(duals), offsets
        self.fitted_rows_ = None if self._has_kernel_values else rows.copy()
        self.n_components_ = len(offsets)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: given kernel values stand in place of rows."""
        flaw = self._rows_flaw(len(self.dual_vectors_), self._has_kernel_values)
        return flaw or super().inconsistency()

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._place(X, run).astype(X.dtype, copy=False)

    def _place(self, X: Any, run: FitContext) -> np.ndarray:
        """y = A^T k(x, fitted rows) - c, in float64."""
        points = self.fitted_rows_
        if points is None:  # the kernel values among fitted rows are not needed for new rows
            points = np.empty((0, len(self.dual_vectors_)))
        matrix = kernel_matrix(points, self._kernel(), run.threads)
        return matrix.rows_times(X, self.dual_vectors_) - self.offsets_

    def save(self, path: str | Path) -> None:
        """Write the fitted model to ``path``: a zip of JSON and plain arrays, without pickle.

        Everything that ``transform`` needs is saved. A generator given as ``random_state`` is not;
        it comes back as None. A kernel that is a function cannot be saved. Read the file with
        ``lowland.load``.
        """
        if callable(self.kernel):
            raise ParameterError(
                f"{type(self).__name__}: kernel={self.kernel!r} is a function, which a model file "
                "cannot hold; use a named kernel, or 'precomputed' with its values."
            )
        super().save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._has_kernel_values
        return tags

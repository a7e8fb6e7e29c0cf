"""Kernel principal component analysis (Schoelkopf, Smola & Mueller 1998)."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from lowland._base.base import Invertible
from lowland._base.constraints import Function, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above, at_least, count
from lowland._base.params import fitted, param
from lowland._base.rows.fitting import needs_memory
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import check_size, dense_if_small, is_sparse, is_usual, largest_value
from lowland._engines.kernels import kernel_operators as kernels
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import largest_pairs_cost, operator_pairs_cost
from lowland.methods.kernel import _axes

# The check that kernel values differ: at extreme scales all are equal.


# Up to rounding, exp(-x) is 1 below the first and 0 above the second, and tanh(x) is x and 1.
NONE, ALL = 1e-14, 745.0
LARGEST = 1e150  # value of a kernel: its square is a number


def check_scale(X: Any, kernel: kernels.Kernel, owner: str, greatest: float | None = None) -> None:
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


def _arguments(X: Any, kernel: kernels.Kernel) -> tuple[float, float]:
    """The exponent, such as gamma |x - y|^2, of the nearest and the farthest pair of a sample."""
    squared = kernel.name == "rbf"
    distances = kernels.sample_distances(X, "euclidean" if squared else "cityblock")
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


def by_fixed_point(Y: np.ndarray, axes: Axes, kernel: kernels.Kernel, threads: int) -> np.ndarray:
    """Rows z that minimize |phi(z) - P|^2 for the points P = sum_j g_j phi(x_j) of the map.

    g = b + A y. Up to constants this maximizes sum_j g_j k(z, x_j), starting from the kept row that
    is nearest in the map. Steps never lower the sum while the weights g_j of near rows are
    positive. A step that would lower it is not taken and ends the iteration of that row.
    """
    X = np.empty((len(Y), axes.rows.shape[1]))
    matrix = kernels.kernel_matrix(axes.rows, kernel, threads)
    zero = np.zeros(Y.shape[1])
    for block in kernels.panel_blocks(len(Y), matrix.n):
        start = axes.rows[nearest_rows(Y[block], axes.places)]
        weights = products.times(Y[block], zero, axes.duals.T, threads) + axes.mean_weights
        start = start.toarray() if is_sparse(start) else start
        X[block] = _climb(start, weights, axes.rows, matrix, threads)
    return X


def _climb(
    start: np.ndarray, weights: np.ndarray, rows: Any, matrix: kernels.KernelMatrix, threads: int
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
    for block in kernels.panel_blocks(len(Y), len(places)):
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
    kernel = kernels.Kernel("rbf", 0.5 / kernels.median_distance(centers, "euclidean") ** 2)
    matrix = kernels.kernel_matrix(centers, kernel, threads)
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


DENSE_ROWS = 1000  # up to so many rows the matrix is cheaper than any iteration
DEFAULT_LANDMARKS = 500


class KernelPCA(Invertible):
    """PCA of the images phi(x), phi(x).phi(y) = k(x, y): H K H v = lambda v, H = I - 11^T/n.

    Shows curved gradients and separates groups that no plane separates, if the kernel suits them.
    The width of an rbf kernel matters most. Use it for structure that PCA misses, for data that
    are given as similarities, and to remove noise by ``transform`` and ``inverse_transform``. Do
    not use it for groups of very different widths, because one kernel cannot suit them all. Cost:
    O(n^2 p) for each of about ten products with the n x n kernel matrix, which need not be stored;
    O(n m p + n m^2) with m landmarks, for which rows may be read in chunks, in two passes or
    three.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of axes; None keeps all that have a positive eigenvalue.
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
    solver : {"auto", "dense", "krylov", "nystroem"}, default="auto"
        How the axes are computed; "nystroem" is an approximation. "dense" computes the n x n
        matrix and exact eigenvectors. "krylov" is block Lanczos on tiles of the matrix, which are
        computed when they are needed. "nystroem" represents all rows by a few landmarks. "auto" is
        "dense" for up to 1000 rows and for many components, else "krylov".
    n_landmarks : int or None, default=None
        Number of landmarks of "nystroem"; None is 500, or all rows if there are fewer.
    tol : float, default=1e-6
        Relative residual that "krylov" reaches. It is relative to the largest eigenvalue. The
        solver works in float32 if a measurement on a sample shows that this is accurate enough.
    alpha : float, default=0.001
        Ridge of the regression in ``inverse_transform``, for kernels other than rbf and linear.

    Attributes
    ----------
    dual_vectors_ : ndarray of shape (n_fitted, n_components)
        Axes as combinations of the images of the fitted rows: V lambda^(-1/2).
    offsets_ : ndarray of shape (n_components,)
        c, which centers the coordinates, in the order of the axes.
    fitted_rows_ : ndarray or sparse matrix of shape (n_fitted, n_features), or None
        Rows that new rows are compared with: all, or the landmarks. None if kernel values were
        given.
    gamma_ : float
        Scale of the kernel in use.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centered kernel matrix, largest first: the sum of squares of each
        coordinate. If there are too few positive eigenvalues, the others are 0, and so are their
        coordinates.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each eigenvalue in the trace of the centered kernel matrix, largest first.
    mean_weights_ : ndarray of shape (n_fitted,)
        The mean image as such a combination.
    lowest_eigenvalue_ : float
        The smallest eigenvalue computed. If it is clearly negative, the kernel is indefinite, and
        some of the similarities cannot be shown as inner products.
    residual_ : float or None
        The largest |H K H v - lambda v| / lambda_1; None with landmarks.

    Notes
    -----
    The largest entry of each eigenvector is positive. ``inverse_transform`` is a fixed-point
    iteration for the rbf kernel, started at the fitted row nearest in the map. For the linear
    kernel it is linear regression, which makes it the inverse of PCA. For other kernels it is
    kernel ridge regression from the map to the rows. Axes of indefinite kernels belong to positive
    eigenvalues only.

    References
    ----------
    Schoelkopf, Smola & Mueller (1998), Nonlinear component analysis as a kernel eigenvalue problem,
    Neural Computation 10; Mika et al. (1999), NIPS 11, and Bakir, Weston & Schoelkopf (2004),
    NIPS 16, on pre-images; Williams & Seeger (2001), NIPS 13, on landmarks.

    Examples
    --------
    >>> from lowland.datasets import two_rings
    >>> rings = two_rings(300, random_state=0)
    >>> KernelPCA(2).fit_transform(rings.X).shape
    (300, 2)
    """

    n_components: int | None = param(Integer(1) | Null(), default=2, kw_only=False)
    kernel: Any = param(OneOf(*kernels.KERNELS) | Function(), default="rbf")
    gamma: float | str | None = param(
        Null() | OneOf("median", kernels.BY_COLUMNS) | Real(0), default=None
    )
    coef0: float = param(Real(), default=1.0)
    degree: int = param(Integer(1, MOST_DEGREE), default=3)
    solver: str = param(OneOf("auto", "dense", "krylov", "nystroem"), default="auto")
    n_landmarks: int | None = param(Null() | Integer(1), default=None)
    tol: float = param(Real(0, 1), default=1e-6)
    alpha: float = param(Real(0), default=1e-3)

    dual_vectors_: np.ndarray = fitted("n_fitted", "n_components")
    offsets_: np.ndarray = fitted("n_components")
    fitted_rows_: Any = fitted("n_fitted", "n_features", optional=True, sparse=True)
    gamma_: float = fitted(meaning=above(0))
    n_components_: int = fitted(type=int, meaning=count(1))
    eigenvalues_: np.ndarray = fitted("n_components", meaning=at_least(0))
    explained_variance_ratio_: np.ndarray = fitted("n_components")
    mean_weights_: np.ndarray = fitted("n_fitted")
    lowest_eigenvalue_: float = fitted()
    residual_: float | None = fitted(optional=True)

    card = Card(
        keeps="similarities, as inner products after a curved change of coordinates",
        use="for curved gradients and rings, for data given as similarities, to remove noise",
        avoid="when the scale of the kernel is a guess: look at several; for clusters use t-SNE",
        cost="O(n^2 p) time; O(n^2) memory, or O(n p) if the kernel matrix does not fit",
    )
    reference = "Schoelkopf, Smola & Mueller (1998)"
    aliases = ("kpca",)
    fits_rows = True
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

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: a dense eigenproblem, or ten products with K."""
        if n <= DENSE_ROWS:
            work = kernels.kernel_matrix_cost(n, p) + largest_pairs_cost(n, 2).holding(8 * n * n)
        else:
            solver = operator_pairs_cost(n, 2, Estimate(0, 0))
            work = kernels.kernel_product_cost(n, p, 10) + solver.holding(8 * n * p)
        return (Estimate(0.05, 0) + work).holding(8 * n * p)

    @property
    def _has_kernel_values(self) -> bool:
        """Whether X holds kernel values."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _kernel(self) -> kernels.Kernel:
        return kernels.Kernel(self.kernel, self.gamma_, float(self.coef0), int(self.degree))

    def _prepared(self, X: Any) -> Any:
        """X as the engines take it; also sets ``gamma_`` and checks it against the scale of X."""
        if self._has_kernel_values:
            values = X.toarray() if is_sparse(X) else X
            rows = kernels.checked_values(values, owner=type(self).__name__)
        else:
            rows = dense_if_small(X)
        self.gamma_ = kernels.kernel_scale(rows, self.kernel, self.gamma, type(self).__name__)
        check_scale(rows, self._kernel(), type(self).__name__)
        return rows

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray | None:
        rows = self._prepared(X)
        return self._keep(self._solved(rows, run), rows, X.dtype)

    def _solved(self, rows: Any, run: FitContext) -> _axes.KernelAxes:
        """The axes by the solver that was asked for, if that fits in memory."""
        n, kernel = rows.shape[0], self._kernel()
        q, solver = self._axis_count(n), self.solver
        if solver == "auto":
            solver = "dense" if n <= DENSE_ROWS or q > n // 10 else "krylov"
        if solver == "dense":
            _require(8 * 3 * n * n, f"the kernel matrix of {n} rows", "solver='krylov'")
            return _axes.by_matrix(rows, kernel, q, run)
        if solver == "krylov":
            basis = min(n, 10 * q + 25 * _axes.BLOCK_WIDTH)
            _require(8 * 2 * n * basis, f"a basis of {basis} vectors", "solver='nystroem'")
            return _axes.by_krylov(rows, kernel, q, self.tol, run)
        m = self._landmark_count(n)
        _require(8 * 5 * m * m, f"{m} landmarks", "a smaller n_landmarks")
        return _axes.by_landmarks(rows, kernel, min(q, m), m, run)

    def _axis_count(self, n: int) -> int:
        """The number of axes that ``n_components`` asks for, of n rows."""
        q = n if self.n_components is None else int(self.n_components)
        if q > n:
            raise ParameterError(
                f"KernelPCA: n_components={q} is more than the {n} rows of X; ask for at most {n}."
            )
        return q

    def _landmark_count(self, n: int) -> int:
        """The number of landmarks that the parameters ask for."""
        least = int(self.n_components or 1)
        if self.n_landmarks is None:
            return min(n, max(DEFAULT_LANDMARKS, least))
        m = int(self.n_landmarks)
        if not least <= m <= n:
            raise ParameterError(
                f"KernelPCA: n_landmarks={m} must be between n_components={least} and the {n} "
                "rows of X."
            )
        return m

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        """The landmarks of "nystroem" are read, then all rows once, for their sums."""
        if self._has_kernel_values or self.solver != "nystroem":
            name = "kernel" if self._has_kernel_values else "solver"
            setting = f"{name}={getattr(self, name)!r}"
            raise needs_memory("KernelPCA", setting, "set solver='nystroem', or ")
        q, m = self._axis_count(rows.shape[0]), self._landmark_count(rows.shape[0])
        read = _axes.read_rows(rows, m, run)
        by_size = self.gamma is None and self.kernel in ("poly", "sigmoid")
        size = _axes.mean_square_of(rows, run) if by_size else None
        self.gamma_ = kernels.kernel_scale(read.sample, self.kernel, self.gamma, "KernelPCA", size)
        kernel = self._kernel()
        of_block = partial(_axes.block_sums, read.landmarks, kernel, self.n_jobs)
        sums = rows.total(of_block, _axes.merged_sums, run.monitor, "landmarks")
        check_size(sums.greatest)
        check_scale(read.sample, kernel, "KernelPCA", sums.greatest)
        K = kernels.kernel_matrix(read.landmarks, kernel, run.threads)
        found = _axes.axes_of_landmarks(K, sums, read.numbers, min(q, m), run)
        self._keep(found._replace(kept=None), read.landmarks, rows.dtype)  # all that were read

    def _keep(self, found: _axes.KernelAxes, rows: Any, dtype: Any) -> np.ndarray | None:
        """Set the fitted attributes; returns the map if it is known already."""
        values = found.eigenvalues
        positive, largest = int((values > 0).sum()), float(values[0])
        k = max(1, positive) if self.n_components is None else len(values)
        if positive < k and found.lowest < -1e-6 * max(largest, -found.lowest):
            warnings.warn(
                f"only {positive} of {k} components have a positive eigenvalue, and the others are "
                f"0: the kernel is indefinite (eigenvalues from {found.lowest:.3g} to "
                f"{largest:.3g}).",
                stacklevel=4,
            )
        if self._has_kernel_values:  # new rows are given by their values with all fitted rows
            found = found.over_all_rows(len(rows))
        kept = rows if found.kept is None else rows[found.kept]
        self.dual_vectors_ = np.ascontiguousarray(found.duals[:, :k])
        self.offsets_, self.n_components_ = found.offsets[:k], k
        self.fitted_rows_ = None if self._has_kernel_values else kept.copy()
        self.mean_weights_, self.eigenvalues_ = found.mean_weights, values[:k]
        self.explained_variance_ratio_ = self.eigenvalues_ / (found.total if found.total > 0 else 1)
        self.lowest_eigenvalue_, self.residual_ = found.lowest, found.residual
        return None if found.scores is None else found.scores[:, :k].astype(dtype)

    # --- new rows -----------------------------------------------------------------------------

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
        matrix = kernels.kernel_matrix(points, self._kernel(), run.threads)
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

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        rows, A = self.fitted_rows_, self.dual_vectors_
        if rows is None:
            raise ParameterError(
                "KernelPCA: inverse_transform needs the fitted rows, and kernel='precomputed' has "
                "only their kernel values; give the rows and the kernel instead."
            )
        # without landmarks the coordinates of the fitted rows are V lambda^(1/2) = A lambda
        exact = self.residual_ is not None
        places = A * self.eigenvalues_ if exact else self._place(rows, run)
        points, kernel, threads = Y.astype(np.float64), self._kernel(), run.threads
        if kernel.name == "linear":
            X = by_least_squares(points, places, rows, threads)
        elif kernel.name == "rbf":
            X = by_fixed_point(points, Axes(rows, places, A, self.mean_weights_), kernel, threads)
        else:
            X = by_ridge(points, places, rows, self.alpha, threads)
        return X.astype(Y.dtype, copy=False)


def _require(n_bytes: int, what: str, other: str) -> None:
    require_memory(n_bytes, task=f"KernelPCA with {what}", alternative=f"use {other}")

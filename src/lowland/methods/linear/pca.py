"""Principal component analysis (Pearson 1901; Hotelling 1933)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Boolean, Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import above, at_least
from lowland._base.params import fitted, param
from lowland._base.rows.fitting import needs_memory
from lowland._base.rows.table import Rows
from lowland._base.traits import Card
from lowland._base.validation import check_finite, check_size, is_sparse, is_usual, largest_value
from lowland._engines.linalg import products
from lowland._engines.linalg.moments import Moments, largest_square, sums_of_columns
from lowland._engines.linalg.principal_axes import (
    PrincipalAxes,
    by_covariance,
    by_gram,
    by_krylov,
    by_krylov_in_chunks,
)
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland.methods.linear._component_count import component_count
from lowland.methods.linear._moments import SMALL, MomentsReducer

# How PCA computes its axes: how many of them, by which solver, and whether that fits in memory.


COVARIANCE_COLUMNS = 3000  # up to so many columns the p x p covariance is cheaper than iterations
GRAM_ROWS = 5000  # up to so many rows the n x n inner products are


def choose_solver(solver: str, X: Any, n_components: Any) -> str:
    """The solver for X: "covariance", "gram" or "randomized". Its memory is checked."""
    (n, p), sparse, rule = X.shape, is_sparse(X), not isinstance(n_components, Integral | None)
    chosen = solver
    if solver == "auto" and p <= COVARIANCE_COLUMNS and (p <= n or sparse):
        chosen = "covariance"
    elif solver == "auto" and n <= GRAM_ROWS and not sparse:
        chosen = "gram"
    elif solver == "auto" or (solver == "gram" and sparse):  # inner products of them are dense
        chosen = ("covariance" if p <= n or sparse else "gram") if rule else "randomized"
    if chosen == "randomized":
        if rule:
            raise _needs_spectrum(n_components, "use solver='covariance' or 'gram'")
        return chosen
    order, what = p, f"a covariance matrix of {p} columns"
    if chosen == "gram":
        order, what = n, f"the inner products of {n} rows"
    require_memory(
        8 * 4 * order * order,  # the matrix, its eigenvectors and the solver's copies
        task=f"PCA with {what}",
        alternative="use solver='randomized' with a number of components",
    )
    return chosen


def solver_of_chunks(solver: str, p: int, n_components: Any) -> str:
    """The solver for a table in chunks of p columns: "covariance" or "randomized".

    It does not depend on the memory that is free, so that the result does not either.
    """
    number = isinstance(n_components, Integral)
    if solver == "gram":
        raise needs_memory("PCA", "solver='gram'", "use solver='covariance' or 'randomized', or ")
    if solver == "randomized" and not number:
        raise _needs_spectrum(n_components, "use solver='covariance', or ask for a number")
    if solver != "auto":
        return solver
    return "randomized" if number and p > COVARIANCE_COLUMNS else "covariance"


def _needs_spectrum(n_components: Any, advice: str) -> ParameterError:
    return ParameterError(
        f"PCA: n_components={n_components!r} needs the whole spectrum, which solver='randomized' "
        f"does not compute; {advice}."
    )


BLOCK_BYTES = 2**24  # of the rows whose outlier scores are computed at a time


class OutlierScores(NamedTuple):
    """Two measures of how unusual a row is, with one value per row each."""

    t2: np.ndarray
    residual: np.ndarray


class PCA(MomentsReducer):
    """Directions of largest variance: maximize tr(W^T S W) over W^T W = I, S the covariance.

    The linear map with the smallest squared reconstruction error. Use it for a first look at any
    table, to see the main gradients, to compress data before a nonlinear method, and to find
    outliers. Do not use it when groups differ in directions of small variance, or when the
    structure is curved. Columns in different units need ``scale=True``. Cost: O(n p^2) or O(n^2 p),
    whichever is less; O(n p k) per block of k vectors for large sparse data.

    Parameters
    ----------
    n_components : int, float, "mle", "parallel", "optimal" or None, default=None
        Number of axes, a share of the variance, or a rule that chooses the number. None keeps all
        min(n, p) axes. A share in (0, 1) keeps the fewest axes that reach it. "mle" maximizes
        Minka's evidence. "parallel" is Horn's parallel analysis: axes with more variance than
        those of independent columns. "optimal" is Gavish and Donoho's threshold for data of low
        rank plus noise.
    solver : {"auto", "covariance", "gram", "randomized"}, default="auto"
        How the axes are computed; "auto" takes the cheapest way. "covariance" is for few columns
        and "gram" for few rows. "randomized" is a block Krylov iteration to a relative residual of
        1e-8 (1e-5 in float32), for sparse data or for many rows and columns. Sparse rows have no
        "gram" solver: another one is taken instead. A table in chunks has none either: "auto" is
        "covariance" there, in one pass over the rows, or for a number of axes of more than 3000
        columns "randomized", in some ten passes.
    whiten : bool, default=False
        Divide each coordinate by its standard deviation.
    scale : bool, default=False
        Divide each column by its standard deviation first (PCA of the correlation matrix).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Axes in rows, of unit length, in the space of the (scaled) columns.
    scale_ : ndarray of shape (n_features,) or None
        Standard deviations by which the columns are divided; None unless ``scale=True``.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each axis, largest first, with divisor n - 1.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each axis in the total variance, largest first.
    singular_values_ : ndarray of shape (n_components,)
        Singular values of the centered data, largest first.
    noise_variance_ : float
        Mean variance of the axes left out.

    Notes
    -----
    The largest entry of each axis is positive. All solvers give the same axes. Sparse data stay
    sparse, and no centered copy of the data is made. The exact solvers use no random numbers;
    ``random_state`` matters only for "randomized" and "parallel".

    References
    ----------
    Pearson (1901), Philosophical Magazine 2; Hotelling (1933), J. Educational Psychology 24;
    Minka (2000), NIPS 13; Horn (1965), Psychometrika 30; Gavish & Donoho (2014), IEEE Trans.
    Information Theory 60; Musco & Musco (2015), NIPS 28.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> PCA(2).fit(iris().X).explained_variance_ratio_.round(4)
    array([0.9246, 0.0531])
    """

    n_components: int | float | str | None = param(
        Integer(1) | Real(0, 1) | OneOf("mle", "parallel", "optimal") | Null(),
        default=None,
        kw_only=False,
    )
    solver: str = param(OneOf("auto", "covariance", "gram", "randomized"), default="auto")
    whiten: bool = param(Boolean(), default=False)
    scale: bool = param(Boolean(), default=False)

    scale_: np.ndarray | None = fitted("n_features", optional=True, meaning=above(0))
    explained_variance_: np.ndarray = fitted("n_components", meaning=at_least(0))
    explained_variance_ratio_: np.ndarray = fitted("n_components")
    singular_values_: np.ndarray = fitted("n_components")
    noise_variance_: float = fitted()

    card = Card(
        keeps="the largest share of the variance that a linear map can keep, and so the large "
        "distances",
        use="as the first look at any table, to compress before another method, to find outliers",
        avoid="when structure is curved, or groups differ in directions of small variance",
        cost="O(n p min(n, p)) time, O(n p) memory",
    )
    reference = "Pearson (1901); Hotelling (1933)"
    narrower = "use solver='randomized' with a number of components"
    aliases = ("principal_component_analysis",)

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        n_axes = self._n_axes(*X.shape)
        solver = choose_solver(self.solver, X, self.n_components)
        if solver == "covariance":
            sums = self._sums(X, y, run)
            if largest_square(sums) < SMALL:
                check_size(largest_value(X))
            self._finish(sums, run)
            return
        check_finite(X, getattr(self, "feature_names_in_", None), threads=run.threads)
        if solver == "gram":
            self._keep(by_gram(X, n_axes, self.scale, run.threads), run)
        else:
            self._keep(by_krylov(X, n_axes, self.scale, run), run)

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        n_axes = self._n_axes(*rows.shape)
        if solver_of_chunks(self.solver, rows.shape[1], self.n_components) == "covariance":
            total = self._total(rows, run)
            check_size(float(np.sqrt(largest_square(total))))
            self._finish(total, run)
            return
        sums = sums_of_columns(rows, run.monitor)
        greatest = float(sums.largest.max())
        check_size(greatest)
        rows = self._with_room(rows, greatest)
        self._keep(by_krylov_in_chunks(rows, sums, n_axes, self.scale, run), run)

    def _n_axes(self, n: int, p: int) -> int:
        """The number asked for; all min(n, p) axes where a rule needs the whole spectrum."""
        number = isinstance(self.n_components, Integral)
        return self._check_components(n, p) if number else min(n, p)

    def _finish(self, sums: Moments, run: FitContext) -> None:
        n_axes = self._n_axes(sums.n_rows, len(sums.mean))
        self._keep(by_covariance(sums, n_axes, self.scale), run)

    def _is_enough(self, sums: Moments) -> bool:
        if self.n_components == "mle":
            return sums.n_rows > len(sums.mean)
        wanted = self.n_components if isinstance(self.n_components, Integral) else 2
        return sums.n_rows >= max(2, wanted)

    def _keep(self, found: PrincipalAxes, run: FitContext) -> None:
        """Choose the number of axes and set the fitted attributes."""
        k = component_count(self.n_components, found, run.rng)
        n, variances, total = found.n_rows, found.variances[:k], found.total_variance
        left_out = min(n, len(found.mean)) - k
        rest = max(0.0, total - float(variances.sum()))
        self._keep_map(found.axes[:k], found.mean)
        spread = found.scale**2 if found.scale is not None else found.column_variances
        if not is_usual(float(np.sqrt((found.mean**2 + spread).max()))):
            self.needs_float64_ = True
        self.scale_, self.n_samples_seen_, self.scatter_ = found.scale, n, None
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / (total or 1.0)
        self.singular_values_ = np.sqrt(variances * (n - 1))
        self.noise_variance_ = rest / left_out if left_out else 0.0

    def _encoder(self) -> np.ndarray:
        W = (self.components_ if self.scale_ is None else self.components_ / self.scale_).T
        return W / self._deviations() if self.whiten else W

    def _decoder(self) -> np.ndarray:
        V = self.components_ if self.scale_ is None else self.components_ * self.scale_
        return V * self._deviations()[:, None] if self.whiten else V

    def _deviations(self) -> np.ndarray:
        """Standard deviation along each axis; 1 for axes without variance."""
        deviation = np.sqrt(self.explained_variance_)
        negligible = deviation <= 1e-12 * max(deviation.max(), 1e-300)
        return np.where(negligible, 1.0, deviation)

    def reconstruction_error(self, X: Any) -> np.ndarray:
        """Squared distance of each row from the plane of the map, |x - m - W W^T (x - m)|^2.

        Its sum over the fitted rows is (n - 1) times the sum of the variances left out. With
        ``scale=True`` the distances are those of the scaled columns.
        """
        return self.outlier_scores(X).residual

    def outlier_scores(self, X: Any) -> OutlierScores:
        """Hotelling's T^2 and the squared residual (Q, or SPE) of each row.

        T^2 = sum_j z_j^2 / variance_j is large for a row that is extreme *within* the plane of
        the map. The residual is large for a row *off* the plane, which combines values in a way
        that no fitted row does. A row can be unusual in either way, so look at both.
        """
        checked = self._check_new_rows(X)
        n, p = checked.shape
        t2, residual = np.empty(n), np.empty(n)
        variance = np.where(self.explained_variance_ > 0, self.explained_variance_, np.inf)
        zero = np.zeros(max(p, len(variance)))
        with self._running(bound_blas=False) as run:
            for rows in row_blocks(n, rows_within(8 * p, BLOCK_BYTES)):
                block = checked[rows].toarray() if is_sparse(checked) else checked[rows]
                off = (block - self.mean_) / (1.0 if self.scale_ is None else self.scale_)
                Z = products.times(off, zero[:p], self.components_.T, run.threads)
                off -= products.times(Z, zero[: len(variance)], self.components_, run.threads)
                with np.errstate(over="ignore"):  # the score of an extreme row may be infinite
                    t2[rows] = (Z**2 / variance).sum(axis=1)
                    residual[rows] = (off**2).sum(axis=1)
        return OutlierScores(t2, residual)

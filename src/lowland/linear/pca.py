"""Principal component analysis (Pearson 1901; Hotelling 1933)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from lowland._core.card import Card
from lowland._core.constraints import Boolean, Integer, Null, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._core.validation import check_finite, is_sparse
from lowland._engines.linalg import principal_axes, products
from lowland._engines.linalg.moments import Moments
from lowland.linear import _component_count
from lowland.linear._base import LinearReducer

__all__ = ["PCA", "OutlierScores"]

# Up to this many columns the p x p covariance is cheaper than any iteration.
COVARIANCE_COLUMNS = 3000
GRAM_ROWS = 5000


class OutlierScores(NamedTuple):
    """Two ways for a row to be unusual, one value per row each."""

    t2: np.ndarray
    residual: np.ndarray


class PCA(LinearReducer):
    """Directions of largest variance: maximize tr(W^T S W) over W^T W = I, S the covariance.

    The best linear map in the least-squares sense, and the first look at any table. Use it to see
    the main gradients, to compress before a non-linear method, to find outliers. Not when groups
    differ in directions of small variance, nor when structure is curved. Columns in different
    units need ``scale=True``. Cost: O(n p^2) or O(n^2 p), whichever is less; O(n p k) per block
    for large sparse data.

    Parameters
    ----------
    n_components : int, float, "mle", "parallel", "optimal" or None, default=None
        How many axes to keep. None: all, min(n, p). A share in (0, 1): the fewest that reach it.
        "mle": Minka's evidence. "parallel": Horn's parallel analysis, axes that beat independent
        columns. "optimal": Gavish and Donoho's threshold for low rank plus noise.
    solver : {"auto", "covariance", "gram", "randomized"}, default="auto"
        "covariance" for few columns, "gram" for few rows, "randomized" (block Krylov, iterated
        to a residual of 1e-8, 1e-5 in float32) when both are many or the data are sparse. Sparse
        rows have no "gram": it gives way to the others.
    whiten : bool, default=False
        Divide each coordinate by its standard deviation.
    scale : bool, default=False
        Divide each column by its standard deviation first (the correlation matrix).

    Attributes
    ----------
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each axis, with n - 1.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the total variance.
    singular_values_ : ndarray of shape (n_components,)
        Singular values of the centered data.
    noise_variance_ : float
        Mean variance of the axes left out.
    components_, mean_, scale_, n_components_, n_samples_seen_
        See the family's attributes.

    Notes
    -----
    Signs: the largest entry of each axis is positive. All solvers give the same axes; sparse data
    are never densified and n x p work is done in place of a centered copy. Exact solvers use no
    random numbers; ``random_state`` matters for "randomized" and "parallel" only.

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
        doc="axes to keep: a number, a share of the variance, or a rule; None keeps all",
        kw_only=False,
    )
    solver: str = param(
        OneOf("auto", "covariance", "gram", "randomized"),
        default="auto",
        doc="how the axes are computed; auto takes the cheapest",
    )
    whiten: bool = param(Boolean(), default=False, doc="give every coordinate unit variance")
    scale: bool = param(Boolean(), default=False, doc="give every column unit variance first")

    explained_variance_: np.ndarray = fitted("n_components", doc="variance along each axis (n - 1)")
    explained_variance_ratio_: np.ndarray = fitted("n_components", doc="its share of the total")
    singular_values_: np.ndarray = fitted("n_components", doc="of the centered data")
    noise_variance_: float = fitted(doc="mean variance of the axes left out")

    card = Card(
        keeps="the largest share of the variance that a linear map can keep, and so the large "
        "distances",
        use="as the first look at any table, to compress before another method, to find outliers",
        avoid="when structure is curved, or groups differ in directions of small variance",
        cost="O(n p min(n, p)) time, O(n p) memory",
    )
    reference = "Pearson (1901); Hotelling (1933)"
    aliases = ("principal_component_analysis",)

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        n, p = X.shape
        n_axes = self._axes_to_compute(n, p)
        solver = self._choose_solver(X)
        if solver == "covariance":
            self._require(8 * 4 * p * p, f"a covariance matrix of {p} columns", "'randomized'")
            self._finish(self._moments(X, run), run)
            self.scatter_ = None
            return
        check_finite(X, getattr(self, "feature_names_in_", None), threads=run.threads)
        if solver == "gram":
            self._require(8 * 4 * n * n, f"the inner products of {n} rows", "'randomized'")
            found = principal_axes.by_gram(X, n_axes, self.scale, run.threads)
        else:
            found = principal_axes.by_krylov(
                X, n_axes, self.scale, run.threads, run.rng, run.monitor
            )
        self._check_squares(found.column_variances, X)
        self._keep(found, run)
        self.scatter_ = None

    def _finish(self, sums: Moments, run: FitContext) -> None:
        n_axes = self._axes_to_compute(sums.n_rows, len(sums.mean))
        self._keep(principal_axes.by_covariance(sums, n_axes, self.scale), run)

    def _rows_needed(self, n_features: int) -> int:
        if self.n_components == "mle":
            return n_features + 1
        return max(2, self.n_components) if isinstance(self.n_components, Integral) else 2

    def _axes_to_compute(self, n: int, p: int) -> int:
        """All of them when a rule has to see the whole spectrum."""
        most = min(n, p)
        if not isinstance(self.n_components, Integral):
            return most
        if self.n_components > most:
            raise ParameterError(
                f"PCA: n_components={self.n_components} is more than min(n, p) = {most} of data "
                f"with {n} rows and {p} columns; ask for at most {most}."
            )
        return int(self.n_components)

    def _choose_solver(self, X: Any) -> str:
        n, p = X.shape
        rule = not isinstance(self.n_components, Integral | None)
        wanted = self.solver
        if wanted == "auto":
            if p <= COVARIANCE_COLUMNS and (p <= n or is_sparse(X)):
                wanted = "covariance"
            elif n <= GRAM_ROWS and not is_sparse(X):
                wanted = "gram"
            else:
                wanted = "randomized" if not rule else ("covariance" if p <= n else "gram")
        if wanted == "gram" and is_sparse(X):
            wanted = "randomized" if not rule else "covariance"
        if wanted == "randomized" and rule:
            raise ParameterError(
                f"PCA: n_components={self.n_components!r} needs the whole spectrum, which "
                "solver='randomized' does not compute; use solver='covariance' or 'gram'."
            )
        return wanted

    def _require(self, n_bytes: int, what: str, other: str) -> None:
        require_memory(
            n_bytes,
            task=f"PCA with {what}",
            alternative=f"solver={other} with a number of components",
        )

    def _keep(self, found: principal_axes.PrincipalAxes, run: FitContext) -> None:
        """Choose the number of axes and set the fitted attributes."""
        k = self._number_of_axes(found, run)
        n, p = found.n_rows, len(found.mean)
        variances = found.variances[:k]
        left_over = min(n, p) - k
        self.mean_, self.scale_, self.n_samples_seen_ = found.mean, found.scale, n
        self.components_ = np.ascontiguousarray(found.axes[:k])
        self.n_components_ = k
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / (found.total_variance or 1.0)
        self.singular_values_ = np.sqrt(variances * (n - 1))
        rest = max(0.0, found.total_variance - float(variances.sum()))
        self.noise_variance_ = rest / left_over if left_over else 0.0

    def _number_of_axes(self, found: principal_axes.PrincipalAxes, run: FitContext) -> int:
        n, p, rule = found.n_rows, len(found.mean), self.n_components
        if rule is None or isinstance(rule, Integral):
            return len(found.variances)
        if rule == "mle":
            if n <= p:
                raise ParameterError(
                    f"PCA: n_components='mle' needs more rows than columns, not {n} rows and "
                    f"{p} columns; use 'parallel' or 'optimal'."
                )
            return _component_count.by_likelihood(found.variances, n)
        if rule == "parallel":
            return _component_count.by_parallel_analysis(
                found.variances, found.column_variances, n, run.rng
            )
        if rule == "optimal":
            return _component_count.by_singular_value_threshold(found.variances[: n - 1], n - 1, p)
        return _component_count.by_share(found.variances, rule)

    def _encoder(self) -> np.ndarray:
        W = super()._encoder()
        return W / self._whitening() if self.whiten else W

    def _decoder(self) -> np.ndarray:
        V = super()._decoder()
        return V * self._whitening()[:, None] if self.whiten else V

    def _whitening(self) -> np.ndarray:
        """Standard deviation along each axis; 1 where the data do not vary at all."""
        deviation = np.sqrt(self.explained_variance_)
        negligible = deviation <= 1e-12 * max(deviation.max(), 1e-300)
        return np.where(negligible, 1.0, deviation)

    def reconstruction_error(self, X: Any) -> np.ndarray:
        """Squared distance of each row from the plane of the map, |x - m - W W^T (x - m)|^2.

        Over the fitted rows its sum is (n - 1) times the variances of the axes left out. In
        scaled units if ``scale=True``.
        """
        return self.outlier_scores(X).residual

    def outlier_scores(self, X: Any) -> OutlierScores:
        """Hotelling's T^2 and the squared residual (Q, or SPE) of each row.

        T^2 = sum_j z_j^2 / variance_j is large for a row that is extreme *within* the plane of
        the map, the residual for one that lies *off* it: a combination of values that the fitted
        rows do not show. A row may be unusual in either way, so look at both.
        """
        checked = self._check_new_rows(X)
        t2, residual = np.empty(checked.shape[0]), np.empty(checked.shape[0])
        variance = np.where(self.explained_variance_ > 0, self.explained_variance_, np.inf)
        rows = max(1, 2**21 // checked.shape[1])
        with self._running(bound_blas=False) as run:
            for start in range(0, checked.shape[0], rows):
                at = slice(start, start + rows)
                block = checked[at].toarray() if is_sparse(checked) else checked[at]
                off = (block - self.mean_) / (1.0 if self.scale_ is None else self.scale_)
                zero = np.zeros(off.shape[1])
                scores = products.times(off, zero, self.components_.T, run.threads)
                off -= products.times(scores, zero[: len(variance)], self.components_, run.threads)
                with np.errstate(over="ignore"):  # a row may be infinitely far off
                    t2[at] = (scores**2 / variance).sum(axis=1)
                    residual[at] = (off**2).sum(axis=1)
        return OutlierScores(t2, residual)

"""Principal variables (McCabe 1984): the columns that reconstruct the others best."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import Boolean, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.params import fitted, param
from lowland._base.rows.table import Rows
from lowland._base.threads import limit_blas
from lowland._base.validation import all_finite, beyond, check_matrix
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.linalg.moments import Moments, moments, moments_of_chunks
from lowland._engines.linalg.principal_axes import column_scale
from lowland.selection._base import Selector


class PrincipalVariables(Selector):
    """Columns from which least squares reconstruct the others best: max tr(S_.K S_KK^-1 S_K.).

    It is PCA with original columns in place of weighted sums: a few measurements represent all,
    without a target. Columns are chosen one by one; each explains most of the variance that is
    left. Cost: O(n p^2) for the covariance S, then O(p^2) per column.

    Parameters
    ----------
    n_features : int, float or None, default=None
        Number of columns to keep, or their share of all columns. None keeps as few as explain
        ``variance``.
    variance : float, default=0.9
        Share of the total variance to explain if ``n_features`` is None.
    scale : bool, default=False
        Give all columns the same variance first (correlations instead of covariances).
    rule : {"reconstruction", "loadings"}, default="reconstruction"
        How columns are chosen. "reconstruction" takes the column that explains most of the rest.
        "loadings" takes, for one principal axis after the other, the column with the largest
        loading that is not chosen yet (Jolliffe's B4); it is there for comparison.

    Attributes
    ----------
    explained_variance_ratio_ : ndarray of shape (n_selected,)
        Share of the variance that each kept column adds, in the order of choice.
    reconstruction_ : ndarray of shape (n_selected, n_features)
        Coefficients of all columns on the kept columns: ``inverse_transform`` is
        ``mean_ + (X - mean_[kept]) @ reconstruction_``.
    mean_ : ndarray of shape (n_features,)
        Mean of each column.
    scores_ : ndarray of shape (n_features,)
        Share of the variance that a column added when it was chosen, or would add at the end.
    ranking_ : ndarray of shape (n_features,)
        Rank of each column, in the order of choice; 1 is the best.

    Notes
    -----
    No k columns explain more than k principal components do. A column that is a sum of chosen
    columns adds nothing and ranks behind all that do. Nothing is random.

    References
    ----------
    McCabe (1984), Principal variables, Technometrics 26; Jolliffe (1972), Applied Statistics 21;
    Farahat, Ghodsi & Kamel (2011), Efficient greedy feature selection for unsupervised learning,
    ICDM.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> chosen = PrincipalVariables(2).fit(iris().X)
    >>> chosen.get_support(indices=True), chosen.explained_variance_ratio_.round(3)
    (array([0, 2]), array([0.921, 0.048]))
    """

    variance: float = param(Real(0, 1, closed="right"), default=0.9)
    scale: bool = param(Boolean(), default=False)
    rule: str = param(OneOf("reconstruction", "loadings"), default="reconstruction")

    explained_variance_ratio_: np.ndarray = fitted("n_selected")
    reconstruction_: np.ndarray = fitted("n_selected", "n_features")
    mean_: np.ndarray = fitted("n_features")

    reference = "McCabe (1984); Jolliffe (1972)"
    fits_rows = True

    def _fit(self, X: Any, y: Any, run: FitContext) -> None:
        p = X.shape[1]
        wanted = self._number_wanted(p)
        require_memory(
            32 * p * p,
            task=f"PrincipalVariables with {p} x {p} covariances",
            alternative="drop columns first, for example with VarianceScore",
        )
        self._choose(moments(X, run.threads, run.monitor), wanted, run)

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        wanted = self._number_wanted(rows.shape[1])
        sums = moments_of_chunks(rows, "PrincipalVariables", run.threads, run.monitor)
        self._choose(sums, wanted, run)

    def _choose(self, sums: Moments, wanted: int | None, run: FitContext) -> None:
        """Set the fitted attributes from the covariances."""
        S, p = sums.scatter / sums.n_rows, len(sums.mean)
        constant = np.diag(S) <= 0
        S[constant], S[:, constant] = 0.0, 0.0
        unit = column_scale(np.diag(S), 2) if self.scale else np.ones(p)
        scaled = S / np.outer(unit, unit)
        given = jolliffe_order(scaled, constant) if self.rule == "loadings" else None
        with run.monitor.phase("columns", total=wanted or p) as phase, limit_blas(1):
            total = float(np.trace(scaled)) or 1.0
            chosen, gains, left = [], [], Residual(scaled)
            while len(chosen) < (wanted or p):
                worth = left.gains()
                best = int(np.lexsort((-worth, constant, left.taken))[0])
                best = best if given is None else int(given[len(chosen)])
                chosen.append(best)
                gains.append(worth[best] / total)
                left.take(best)
                phase.advance()
                if wanted is None and sum(gains) >= self.variance * (1 - 1e-12):
                    break
            scores = left.gains() / total
            scores[chosen] = gains
            rest = np.lexsort((-scores, constant, left.taken))[: p - len(chosen)]
            order = np.array([*chosen, *rest.tolist()])
            self._keep(order, len(chosen), scores)
            self.explained_variance_ratio_ = np.array(gains)
            self.mean_, self.reconstruction_ = sums.mean, regression(S, self.support_)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: the kept columns give the others."""
        if len(self.reconstruction_) != self._n_features_out:
            return (
                f"'reconstruction_' of {len(self.reconstruction_)} columns, but 'support_' keeps "
                f"{self._n_features_out}"
            )
        return super().inconsistency()

    def inverse_transform(self, X: Any) -> np.ndarray:
        """All columns from the kept columns, by least squares; the kept columns are unchanged."""
        self._require_fitted()
        kept = check_matrix(X, owner="PrincipalVariables", accept_sparse=True)
        if kept.shape[1] != self._n_features_out:
            raise DataError(
                f"X has {kept.shape[1]} columns, but this PrincipalVariables keeps "
                f"{self._n_features_out}; give the columns that transform returns."
            )
        dense = kept if isinstance(kept, np.ndarray) else kept.toarray()
        mean = self.mean_[self.support_]
        with self._running(bound_blas=False) as run, np.errstate(over="ignore", invalid="ignore"):
            rows = dense.astype(np.float64, copy=False)
            back = products.times(rows, mean, self.reconstruction_, run.threads)
            back = (back + self.mean_).astype(dense.dtype, copy=False)
        back[:, self.support_] = dense
        if not all_finite(back):
            raise beyond("PrincipalVariables", dense, "a column", back.dtype)
        return back


class Residual:
    """The covariance R that the chosen columns do not explain, updated in O(p^2)."""

    def __init__(self, S: np.ndarray) -> None:
        self.R = S.copy()
        self.taken = np.zeros(len(S), dtype=bool)
        self.least = 1e-10 * np.diag(S)  # a smaller residual variance is a rounding error

    def gains(self) -> np.ndarray:
        """Variance that each column would explain: sum_i R_ij^2 / R_jj."""
        diagonal = np.diag(self.R)
        real = diagonal > self.least
        squares = np.einsum("ij,ij->j", self.R, self.R)
        return np.divide(squares, diagonal, out=np.zeros(len(squares)), where=real)

    def take(self, j: int) -> None:
        """R - r_j r_j^T / R_jj."""
        column = self.R[:, j].copy()
        if column[j] > self.least[j]:
            self.R -= np.outer(column, column / column[j])
        self.R[j], self.R[:, j] = 0.0, 0.0
        self.taken[j] = True


def jolliffe_order(S: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Columns by largest loading on one principal axis after the other; constant ones last."""
    axes = all_eigenpairs(S).vectors
    taken, order = constant.copy(), []
    for axis in np.abs(axes).T:
        if taken.all():
            break
        best = int(np.argmax(np.where(taken, -1.0, axis)))
        taken[best] = True
        order.append(best)
    return np.array([*order, *np.flatnonzero(constant)], dtype=np.int64)


def regression(S: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """S_KK^+ S_K., with the identity for the kept columns themselves."""
    coefficients = np.linalg.pinv(S[np.ix_(kept, kept)], hermitian=True) @ S[kept]
    coefficients[:, kept] = np.eye(int(kept.sum()))
    return coefficients

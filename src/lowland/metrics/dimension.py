"""Intrinsic dimension: the number of dimensions of the data, whatever the number of columns."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from lowland._core.constraints import Integer, Real
from lowland._core.errors import DataError, ParameterError, check_name
from lowland._core.validation import is_sparse
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics._options import Keywords, Options

METHODS = ("twonn", "mle", "pca")
GROUPS = 20  # of the jackknife
WIDE = 3000  # with more columns, inner products of rows are used
SPECTRUM_ROWS = 20_000  # for eigenvalues, by default
# Rows share neighbors, so that only this share of the ratios counts as independent (see Notes).
INDEPENDENT = {"twonn": 0.6, "mle": 0.5}


class Dimension(float):
    """An estimated number of dimensions: a float with ``interval`` (95 %) and ``method``.

    >>> estimate = Dimension(2.1, (1.9, 2.3), "twonn", 500)
    >>> estimate, estimate.interval
    (2.1, (1.9, 2.3))
    """

    interval: tuple[float, float]
    method: str
    sample_size: int

    def __new__(
        cls, value: float, interval: tuple[float, float], method: str, sample_size: int
    ) -> Dimension:
        self = super().__new__(cls, value)
        self.interval, self.method = (float(interval[0]), float(interval[1])), method
        self.sample_size = int(sample_size)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.interval, self.method, self.sample_size


def intrinsic_dimension(
    X: Any,
    method: str = "twonn",
    *,
    n_neighbors: int = 20,
    discard: float = 0.1,
    **options: Unpack[Keywords],
) -> Dimension:
    """The number of dimensions that the data fill locally, or globally ("pca").

    "twonn" (Facco et al. 2017): the ratio mu of the distances to the second and the first neighbor
    has log mu ~ Exponential(d), whatever the density. The largest ratios (share ``discard``) are
    only counted as large, and d is the maximum-likelihood estimate for such censored data. It
    looks at the finest scale, where noise is full-dimensional.

    "mle" (Levina & Bickel 2005): log(T_k / T_j), j < k, for the distances T_j to the neighbors, is
    exponential with rate d too; the inverse estimates of the rows are averaged as MacKay &
    Ghahramani (2005) advise: d = n (k - 1) / sum_i sum_j log(T_k / T_j). It averages over k
    neighbors, and underestimates where d is large (beyond 10) and rows are few.

    "pca": the participation ratio (sum l)^2 / sum l^2 of the covariance's eigenvalues l, the number
    of axes that share the variance. A linear count: a curved line fills many.

    Parameters
    ----------
    X : array, data frame, CSR matrix, distances (``metric="precomputed"``) or NeighborGraph
    method : {"twonn", "mle", "pca"}, default="twonn"
    n_neighbors : int, default=20
        k of "mle".
    discard : float, default=0.1
        Share of the largest ratios that "twonn" censors.
    **options
        See :class:`Comparison`.

    Returns
    -------
    Dimension
        A float with ``interval``, ``method`` and ``sample_size``.

    Notes
    -----
    The 95 % intervals are those of independent exponential variables, of which there are fewer
    than ratios, because rows share neighbors: six in ten for "twonn", half for "mle", as seen on
    flat tori. For "pca", a jackknife over 20 groups of rows. No interval covers the bias due to
    edges, curvature and noise. Of equal rows one is kept (of given distances, sparse rows
    and graphs, rows with an equal one are left out).

    The paper of "twonn" fits a line to the ratios that are not discarded; the target is the same.

    References
    ----------
    Facco, d'Errico, Rodriguez & Laio (2017), Estimating the intrinsic dimension of datasets by a
    minimal neighborhood information, Scientific Reports 7; Levina & Bickel (2005), Maximum
    likelihood estimation of intrinsic dimension, NIPS 17; MacKay & Ghahramani (2005), Comments on
    that paper.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> estimate = intrinsic_dimension(swiss_roll(2000, random_state=0).X)
    >>> bool(1.9 < estimate < 2.1), round(estimate.interval[1] - estimate.interval[0], 2)
    (True, 0.24)
    """
    check_name("method", method, METHODS)
    if not Real(0, 1, closed="left").allows(discard):
        raise ParameterError(f"discard={discard!r} is not allowed; give a share in [0, 1).")
    if not Integer(2).allows(n_neighbors):
        raise ParameterError(
            f"n_neighbors={n_neighbors!r} is not allowed; expected an integer >= 2."
        )
    settings = Options(**options)
    if method == "pca":
        return _participation(settings.checked(X, "X"), settings)
    distances = _distances(X, 2 if method == "twonn" else n_neighbors, settings)
    return _twonn(distances, discard) if method == "twonn" else _mle(distances)


def _distances(X: Any, k: int, settings: Options) -> np.ndarray:
    """Distances to the k nearest of the measured rows, none of them 0."""
    X = settings.checked(X, "X")
    near = _search(X, k, settings)
    table = not (isinstance(X, NeighborGraph) or is_sparse(X) or settings.metric == "precomputed")
    if table and not near[:, 0].all():
        once = np.sort(np.unique(X, axis=0, return_index=True)[1])
        near = _search(X[once], k, settings)
    near = near[near[:, 0] > 0]
    if len(near) < 2:
        raise DataError("X: nearly all rows have an equal row, so that no distances are left.")
    return near


def _search(X: Any, k: int, settings: Options) -> np.ndarray:
    n = len(X) if isinstance(X, NeighborGraph) else X.shape[0]
    if n <= k:
        raise DataError(
            f"X has {n} different rows; {k} neighbors need at least {k + 1}: give more rows."
        )
    view = settings.view_from(X, settings.draw(n, settings.work(X).neighborhoods()))
    with settings.working() as monitor:
        return view.nearest(k, monitor).distances.astype(np.float64)


def _rate(count: float, total: float, weight: float) -> tuple[float, tuple[float, float]]:
    """Rate of exponentials whose ``count`` observed ones sum (with the censored) to ``total``.

    2 d total ~ chi^2 with 2 count degrees of freedom gives the interval; ``weight`` is the share
    of the count that is independent.
    """
    from scipy.stats import chi2

    if total <= 0:
        raise DataError("X: neighbors of every row are all equally far; no dimension fits that.")
    value, freedom = count / total, 2 * count * weight
    low, high = chi2.ppf([0.025, 0.975], freedom) / freedom
    return value, (value * low, value * high)


def _twonn(near: np.ndarray, discard: float) -> Dimension:
    ratios = np.sort(np.log(near[:, 1] / near[:, 0]))
    kept = max(1, len(ratios) - int(np.ceil(discard * len(ratios))))
    total = ratios[:kept].sum() + (len(ratios) - kept) * ratios[kept - 1]
    value, interval = _rate(kept, total, INDEPENDENT["twonn"])
    return Dimension(value, interval, "twonn", len(ratios))


def _mle(near: np.ndarray) -> Dimension:
    k = near.shape[1]
    logs = np.log(near[:, -1:] / near[:, :-1]).sum()
    value, interval = _rate(len(near) * (k - 1), logs, INDEPENDENT["mle"])
    return Dimension(value, interval, "mle", len(near))


def _participation(X: Any, settings: Options) -> Dimension:
    """Of the rows, and of the rows without each of 20 groups."""
    if isinstance(X, NeighborGraph) or settings.metric == "precomputed":
        raise DataError("X: method='pca' needs the data; use method='twonn' for distances.")
    rows = settings.draw(X.shape[0], SPECTRUM_ROWS)
    X = X if rows is None else X[rows]
    n = X.shape[0]
    groups = np.array_split(settings.rng.permutation(n), min(GROUPS, n))
    # The covariance and the inner products of rows have the same eigenvalues.
    few_rows = X.shape[1] > max(n, WIDE)
    with settings.working():
        spectrum = _GramSums(X) if few_rows else _ScatterSums(X)
        value = spectrum.ratio_without(np.array([], int))
        others = np.array([spectrum.ratio_without(group) for group in groups])
    g = len(groups)
    reach = 1.96 * np.sqrt((g - 1) / g * ((others - others.mean()) ** 2).sum())
    return Dimension(value, (max(0.0, value - reach), value + reach), "pca", n)


def _ratio(trace: float, squares: float) -> float:
    if trace <= 0:
        raise DataError("X: all rows are equal; no dimension fits that.")
    return float(trace**2 / squares)


class _ScatterSums:
    """Participation ratio from X^T X, less that of left-out rows."""

    def __init__(self, X: Any) -> None:
        X = X.astype(np.float64)
        self.X = X if is_sparse(X) else X - X.mean(axis=0)
        self.second, self.first = self._sums(self.X)

    @staticmethod
    def _sums(X: Any) -> tuple[np.ndarray, np.ndarray]:
        second = X.T @ X
        return second.toarray() if is_sparse(X) else second, np.asarray(X.sum(axis=0)).ravel()

    def ratio_without(self, rows: np.ndarray) -> float:
        second, first = self._sums(self.X[rows])
        n = self.X.shape[0] - len(rows)
        total = self.first - first
        S = self.second - second - np.outer(total, total) / n
        return _ratio(np.trace(S), (S**2).sum())


class _GramSums:
    """Participation ratio from X X^T, less the left-out rows."""

    def __init__(self, X: Any) -> None:
        gram = X.astype(np.float64) @ X.T.astype(np.float64)
        self.gram = gram.toarray() if is_sparse(gram) else gram

    def ratio_without(self, rows: np.ndarray) -> float:
        keep = np.setdiff1d(np.arange(len(self.gram)), rows)
        K = self.gram[np.ix_(keep, keep)]
        K = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
        return _ratio(np.trace(K), (K**2).sum())

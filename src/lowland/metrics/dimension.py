"""Intrinsic dimension: the number of dimensions of the data, whatever the number of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._base.constraints import Boolean, Integer, OneOf, Real, Seed, check_argument
from lowland._base.context import generator
from lowland._base.errors import DataError, check_name
from lowland._base.validation import as_array, check_matrix, is_sparse
from lowland._engines.distances.distance_rows import blocks_of
from lowland._engines.linalg.principal_axes import broken_stick
from lowland._engines.linalg.principal_axes import elbow as bend
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph
from lowland.methods.linear._component_count import chance_variances
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import Keywords, Options, check_neighbors

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
    check_argument("discard", discard, Real(0, 1, closed="left"))
    check_argument("n_neighbors", n_neighbors, Integer(2))
    settings = Options(**options)
    if method == "pca":
        return _participation(settings.checked(X, "X"), settings)
    if method == "mle":
        near = _distances(X, n_neighbors, settings)
        count = len(near) * (n_neighbors - 1)
        logs = np.log(near[:, -1:] / near[:, :-1]).sum()
        return _of_rate("mle", count, logs, len(near))
    near = _distances(X, 2, settings)
    ratios = np.sort(np.log(near[:, 1] / near[:, 0]))
    kept = max(1, len(ratios) - int(np.ceil(discard * len(ratios))))
    total = ratios[:kept].sum() + (len(ratios) - kept) * ratios[kept - 1]
    return _of_rate("twonn", kept, total, len(ratios))


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


def _of_rate(method: str, count: int, total: float, rows: int) -> Dimension:
    """The rate of exponentials whose ``count`` observed ones sum (with the censored) to ``total``.

    2 d total ~ chi^2 with 2 count degrees of freedom gives the interval, for the share of the count
    that is independent.
    """
    from scipy.stats import chi2

    if total <= 0:
        raise DataError("X: neighbors of every row are all equally far; no dimension fits that.")
    value, freedom = count / total, 2 * count * INDEPENDENT[method]
    low, high = chi2.ppf([0.025, 0.975], freedom) / freedom
    return Dimension(value, (value * low, value * high), method, rows)


def _participation(X: Any, settings: Options) -> Dimension:
    """Of the rows, and of the rows without each of 20 groups."""
    if isinstance(X, NeighborGraph) or settings.metric == "precomputed":
        raise DataError("X: method='pca' needs the data; use method='twonn' for distances.")
    rows = settings.draw(X.shape[0], SPECTRUM_ROWS)
    X = X if rows is None else X[rows]
    n = X.shape[0]
    groups = np.array_split(settings.rng.permutation(n), min(GROUPS, n))
    # The covariance and the inner products of rows have the same eigenvalues.
    covariances = _grams if X.shape[1] > max(n, WIDE) else _scatters
    matrices = covariances(X, [np.array([], int), *groups])
    with settings.working():
        value, *without = [_participation_ratio(S) for S in matrices]
    g, others = len(groups), np.array(without)
    reach = 1.96 * np.sqrt((g - 1) / g * ((others - others.mean()) ** 2).sum())
    return Dimension(value, (max(0.0, value - reach), value + reach), "pca", n)


def _participation_ratio(S: np.ndarray) -> float:
    """(sum l)^2 / sum l^2 of the eigenvalues l, without computing them."""
    trace = np.trace(S)
    if trace <= 0:
        raise DataError("X: all rows are equal; no dimension fits that.")
    return float(trace**2 / (S**2).sum())


def _scatters(X: Any, groups: list[np.ndarray]) -> Iterator[np.ndarray]:
    """n times the covariance of the rows without each group, from X^T X."""

    def sums(X: Any) -> tuple[np.ndarray, np.ndarray]:
        second = X.T @ X
        return second.toarray() if is_sparse(X) else second, np.asarray(X.sum(axis=0)).ravel()

    X = X.astype(np.float64)
    X = X if is_sparse(X) else X - X.mean(axis=0)
    second, first = sums(X)
    for rows in groups:
        left_out, total = sums(X[rows])
        total = first - total
        yield second - left_out - np.outer(total, total) / (X.shape[0] - len(rows))


def _grams(X: Any, groups: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Inner products of the centered rows without each group, from X X^T."""
    gram = X.astype(np.float64) @ X.T.astype(np.float64)
    gram = gram.toarray() if is_sparse(gram) else gram
    for rows in groups:
        keep = np.setdiff1d(np.arange(len(gram)), rows)
        K = gram[np.ix_(keep, keep)]
        yield K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()


# Concentration of distances: how little near and far rows differ in many dimensions.


MEASURED_ROWS = 1000


class DistanceConcentration(NamedTuple):
    """Four measures of how much near and far distances differ."""

    relative_contrast: Measured
    relative_spread: Measured
    neighborhood_share: Measured
    edge_length: float


def distance_concentration(
    X: Any, n_neighbors: int = 10, **options: Unpack[Keywords]
) -> DistanceConcentration:
    """How much farther the far rows are than the near ones.

    In many dimensions all distances from a row become nearly equal. Then small differences decide
    which rows are neighbors, and no map can show them. Means over rows i of

    - ``relative_contrast``: (mean_j d_ij) / (min_j d_ij), 1 when all are equal (He et al. 2012);
    - ``relative_spread``: (standard deviation of d_ij) / (mean of d_ij), 0 when all are equal;
    - ``neighborhood_share``: (distance to the k-th neighbor) / (mean distance), near 1 when a
      "neighborhood" of k reaches across the whole cloud;

    and ``edge_length`` = (k / (n - 1))^(1 / d): the edge of a cube that holds k of the n rows, as a
    share of the edge of the whole, if they filled d dimensions evenly; d is the intrinsic dimension
    ("twonn"). In 10 dimensions a neighborhood of 1 % has an edge of 63 %.

    Parameters
    ----------
    X : array, data frame, CSR matrix, or distances (``metric="precomputed"``)
    n_neighbors : int, default=10
        Size k of the neighborhood.
    **options
        See :class:`Comparison`; "auto" measures 1 000 rows here, each against all others. Rows
        that have an equal one count with their nearest different row in the contrast.

    References
    ----------
    Beyer, Goldstein, Ramakrishnan & Shaft (1999), When is "nearest neighbor" meaningful?, ICDT;
    He, Kumar & Chang (2012), On the difficulty of nearest neighbor search, ICML; Hastie,
    Tibshirani & Friedman (2009), The Elements of Statistical Learning, section 2.5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> flat = distance_concentration(rng.normal(size=(500, 200)))
    >>> wide = distance_concentration(rng.normal(size=(500, 2)))
    >>> bool(flat.relative_contrast < 1.3), bool(wide.relative_contrast > 20)
    (True, True)
    """

    if OneOf("auto").allows(options.get("sample", "auto")):
        options["sample"] = MEASURED_ROWS
    settings = Options(**options)
    view = settings.view(X)
    n, m = view.n, len(view.rows)
    (k,) = check_neighbors([n_neighbors], n - 1, n)
    parts = []
    with settings.working() as monitor, monitor.phase("distances", total=m) as phase:
        for block in blocks_of(view.rows, n):
            parts.append(_flatness(view.source.of(block), block, k))
            phase.advance(len(block))
    contrast, spread, share = np.concatenate(parts, axis=1)
    if np.isnan(contrast).any():
        raise DataError("X: all rows are equal; there are no distances to compare.")
    d = intrinsic_dimension(X, **options)
    edge = float((k / (n - 1)) ** (1 / d))
    return DistanceConcentration(
        from_rows(contrast, n), from_rows(spread, n), from_rows(share, n), edge
    )


def _flatness(D: np.ndarray, own: np.ndarray, k: int) -> np.ndarray:
    """Contrast, spread and k-th neighbor's share of a block of rows; NaN where all is equal."""
    others = np.ones(D.shape, bool)
    others[np.arange(len(own)), own] = False
    D = D[others].reshape(len(own), -1)
    mean = D.mean(axis=1)
    nearest = np.where(D > 0, D, np.inf).min(axis=1)
    kth = np.partition(D, k - 1, axis=1)[:, k - 1]
    safe = np.where(mean > 0, mean, np.nan)
    return np.array([safe / nearest, D.std(axis=1) / safe, kth / safe])


# Hubs: rows that are neighbors of very many rows (Radovanović et al. 2010).


class Hubness(NamedTuple):
    """How unequally rows are chosen as neighbors."""

    skewness: float
    antihub_share: float
    top_share: float
    occurrences: np.ndarray


def hubness(X: Any, n_neighbors: int = 10, **options: Unpack[Keywords]) -> Hubness:
    """Skewness of N_k(j) = number of rows that have j among their k nearest.

    In many dimensions a few rows near the center are neighbors of very many rows (hubs), and many
    rows are neighbors of none (antihubs). Neighbor-based maps pull hubs to the center and place
    antihubs poorly. The skewness is about 0 without hubs; above 1 there are strong ones. It grows
    with the intrinsic dimension.

    Parameters
    ----------
    X : array, data frame, CSR matrix, distances (``metric="precomputed"``) or NeighborGraph
    n_neighbors : int, default=10
    **options
        See :class:`Comparison`. All rows are always counted; a sample would hide hubs.

    Returns
    -------
    Hubness
        ``skewness``; ``antihub_share``, the share of rows that are a neighbor of no row;
        ``top_share``, the share of all neighborhood places that the top 1 % of rows hold; and
        ``occurrences``, N_k of every row, for coloring a map.

    References
    ----------
    Radovanović, Nanopoulos & Ivanović (2010), Hubs in space: popular nearest neighbors in
    high-dimensional data, J. Machine Learning Research 11.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> round(hubness(rng.random((1000, 2))).skewness, 2)
    -0.1
    >>> round(hubness(rng.normal(size=(1000, 100))).skewness, 2)
    3.3
    """
    options["sample"] = None
    settings = Options(**options)
    X = settings.checked(X, "X")
    n = len(X) if isinstance(X, NeighborGraph) else X.shape[0]
    (k,) = check_neighbors([n_neighbors], n - 1, n)
    with settings.working() as monitor:
        if isinstance(X, NeighborGraph):
            near = settings.view_from(X, None).nearest(k, monitor).indices
        else:  # approximate above 200 000 rows, where a few errors hide no hub
            known: dict[str, Any] = {"metric": settings.metric, "threads": settings.threads}
            known |= {"metric_params": settings.metric_params, "rng": settings.rng}
            near = neighbor_graph(X, k, monitor=monitor, **known).indices
    counts = np.bincount(near.ravel(), minlength=n)
    gap = counts - counts.mean()
    deviation = np.sqrt(np.mean(gap**2))
    skewness = float(np.mean(gap**3) / deviation**3) if deviation > 0 else 0.0
    top = np.sort(counts)[-max(1, n // 100) :].sum() / counts.sum()
    return Hubness(skewness, float((counts == 0).mean()), float(top), counts)


# How many principal components stand out from what chance alone gives.


def chance_shares(
    X: Any, rule: str = "parallel", *, scale: bool = False, n_draws: int = 20, random_state: Any = 0
) -> np.ndarray:
    """The share of the variance that each principal component would have by chance.

    Components with a larger share than chance gives are worth a look; later ones cannot be
    distinguished from noise.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_columns)
        The table.
    rule : {"parallel", "broken_stick"}, default="parallel"
        "parallel" (Horn 1965): the 95th percentile of the shares in random tables of independent
        normal columns with the rows and the column variances of X. "broken_stick" (Frontier 1976):
        the expected lengths of a stick broken at random, which only depends on the number of
        columns.
    scale : bool, default=False
        Whether columns count with equal variances, as in ``PCA(scale=True)``.
    n_draws : int, default=20
        Number of random tables.
    random_state : None, int, Generator or RandomState, default=0
        Seed of the random tables.

    Returns
    -------
    ndarray of shape (min(n_rows - 1, n_columns),)

    References
    ----------
    Horn (1965), A rationale and test for the number of factors, Psychometrika 30; Frontier (1976),
    J. Experimental Marine Biology and Ecology 25; Jackson (1993), Ecology 74.

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import wine
    >>> X = wine().X
    >>> own = PCA(scale=True).fit(X).explained_variance_ratio_
    >>> int((own > chance_shares(X, scale=True)).sum())
    3
    """
    check_argument("rule", rule, OneOf("parallel", "broken_stick"))
    check_argument("scale", scale, Boolean())
    check_argument("n_draws", n_draws, Integer(1))
    check_argument("random_state", random_state, Seed())
    X = np.asarray(check_matrix(X, owner="chance_shares", min_rows=2), dtype=np.float64)
    if not (X[0] != X).any():
        raise DataError("X: all rows are equal; there is no variance to divide.")
    variances = X.var(axis=0, ddof=1)
    variances = (variances > 0) * 1.0 if scale else variances
    if rule == "broken_stick":
        return broken_stick(min(len(X) - 1, int((variances > 0).sum())))
    chance = chance_variances(variances, len(X), generator(random_state), n_draws)
    return chance / variances.sum()


def elbow(values: Any) -> int:
    """The number of the entry, from 1, at which a falling curve bends most.

    For shares of the variance, or for the stress of maps of 1, 2, 3, ... dimensions. Both axes are
    scaled to [0, 1], and the entry farthest from the line between the first and the last entry is
    taken. It depends on where the curve ends, and has no meaning for a curve without a bend.

    Parameters
    ----------
    values : array of shape (n,)
        The curve.

    References
    ----------
    Cattell (1966), The scree test for the number of factors, Multivariate Behavioral Research 1;
    Satopää et al. (2011), Finding a "kneedle" in a haystack, ICDCS Workshops.

    Examples
    --------
    >>> elbow([40, 22, 6, 5, 4.5, 4])
    3
    """
    curve = as_array(values, "values")
    if curve.ndim != 1 or not curve.size:
        raise DataError(f"values must hold at least one number, but has shape {curve.shape}.")
    return bend(check_matrix(curve[:, None], owner="elbow", argument="values")[:, 0])

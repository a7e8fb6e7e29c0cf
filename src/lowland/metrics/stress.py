"""Stress and related measures: how much distances in the map differ from those in the data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._base.constraints import Integer, Null, Real, Several, check_argument
from lowland._base.errors import DataError, ParameterError, check_name
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.validation import check_matrix, is_sparse
from lowland._engines.embedding.repulsion import Repulsion, choose_repulsion, pairwise_repulsion
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import thin_svd
from lowland._engines.linalg.moments import column_moments
from lowland._engines.stress.objective import TIES, monotone_fit, stable_order
from lowland.metrics._comparison import (
    Comparison,
    DistanceSums,
    Order,
    Pairs,
    all_rows,
    spread,
    summable,
)
from lowland.metrics._measured import Measured, from_pairs, linearized
from lowland.metrics._options import MapKeywords

# Below this share of the squared distances, a difference of sums has lost half of its digits.
CANCELLED = 1e-7


def raw_stress(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> Measured:
    """sum_{i<j} (delta_ij - d_ij)^2, delta in the data and d in the map.

    What metric multidimensional scaling minimizes. It depends on the units and on the scale of
    the map: compare it only between maps of the same data that aim at the same distances.

    Cost O(n^2 d) time, O(n d) memory; of a sample, the total is extrapolated to all pairs.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    **options
        See :class:`Comparison`.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(raw_stress(X, X[:, 2:]), 1)
    2184.4
    """
    compared = summable(X, Y, options)
    gap2, n = compared.distance_sums().gap2, compared.n
    return linearized(lambda mean: mean[0] * n / 2, gap2[:, None], n)


def scale_normalized_stress(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> Measured:
    """min_c sqrt( sum (delta_ij - c d_ij)^2 / sum delta_ij^2 ), at c = sum delta d / sum d^2.

    The stress of the map at its best scale, from 0 to 1. The usual "normalized" stress, without
    the minimum over c, changes when a map is merely drawn larger, and so ranks methods by the
    size of their output; this does not. A constant map has 1. Cost as :func:`raw_stress`.

    References
    ----------
    Smelser, Miller & Kobourov (2024), "Normalized stress" is not normalized: how to interpret
    stress correctly, BELIV.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(scale_normalized_stress(X, X[:, 2:]), 4), round(
    ...     scale_normalized_stress(X, 7 * X[:, 2:]), 4
    ... )
    (0.1115, 0.1115)
    """
    compared = summable(X, Y, options)
    sums, scale = _at_best_scale(compared)
    both = np.column_stack([sums.gap2, sums.delta2])
    if scale == 0.0:
        return Measured(1.0, 0.0, len(both))
    if not sums.gap2.any():
        return Measured(0.0, 0.0, len(both))
    # At the best scale the derivative with respect to it is zero: only the two sums vary.
    return linearized(lambda mean: np.sqrt(mean[0] / mean[1]), both, compared.n)


def sammon_stress(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> Measured:
    """(1 / sum delta_ij) sum (delta_ij - d_ij)^2 / delta_ij (Sammon 1969).

    The stress in which small distances count most. It depends on the scale of the map. Pairs of
    equal rows (delta = 0) are left out. Cost as :func:`raw_stress`.

    References
    ----------
    Sammon (1969), A nonlinear mapping for data structure analysis, IEEE Trans. Computers 18.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(sammon_stress(X, X[:, 2:]), 4)
    0.0446
    """
    compared = summable(X, Y, options)
    sums = compared.distance_sums()
    check_spread(sums)
    both = np.column_stack([sums.relative_gap2, sums.delta])
    return linearized(lambda mean: mean[0] / mean[1], both, compared.n)


def point_stress(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> np.ndarray:
    """sqrt( sum_j (delta_ij - c d_ij)^2 / sum_j delta_ij^2 ) of each row i, for coloring the map.

    c is the best scale for the map as a whole, that of :func:`scale_normalized_stress`. High where
    the distances from a point are wrong. All rows are measured unless ``sample`` says
    otherwise; rows that are not measured are NaN.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> point_stress(X, X[:, 2:])[:3].round(3)
    array([0.082, 0.1  , 0.086])
    """
    compared = all_rows(X, Y, options)
    sums, _ = _at_best_scale(compared)
    positive = np.where(sums.delta2 > 0, sums.delta2, 1.0)
    return spread(compared, np.sqrt(sums.gap2 / positive))


def check_spread(sums: DistanceSums) -> None:
    if not sums.delta2.any():
        raise DataError("X: all rows are equal; a measure of distances needs rows that differ.")


def _at_best_scale(compared: Comparison) -> tuple[DistanceSums, float]:
    """Sums at the scale that makes the stress least; 0 for a constant map."""
    sums = compared.distance_sums()
    check_spread(sums)
    d2 = sums.d2.sum()
    scale = float(sums.delta_d.sum() / d2) if d2 > 0 else 0.0
    gap2 = sums.delta2 - 2 * scale * sums.delta_d + scale**2 * sums.d2
    if gap2.sum() < CANCELLED * sums.delta2.sum():
        return compared.distance_sums(scale), scale
    return sums._replace(gap2=np.maximum(gap2, 0.0)), scale


# Kruskal's stress-1: how far distances in the map are from any monotone function of the data's.


def kruskal_stress1(
    X: Any, Y: Any = None, *, disparities: str = "primary", **options: Unpack[MapKeywords]
) -> Measured:
    """sqrt( sum (d_ij - dhat_ij)^2 / sum d_ij^2 ), dhat the best monotone function of delta_ij.

    delta is a distance in the data and d one in the map. Only the order of the data's distances
    matters: 0 when the map keeps it. Kruskal's own scale: 20 % poor, 10 % fair, 5 % good, 2.5 %
    excellent. A map that has collapsed into a few points may have little stress too.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    disparities : {"primary", "secondary", "index", "metric"}, default="primary"
        What happens to pairs that tie in the data: "primary" lets their dhat differ, "secondary"
        keeps it equal, "index" takes them in the order of the rows (as MASS::isoMDS does).
        "metric": dhat is the data's distance itself, no monotone function.
    **options
        See :class:`Comparison`. All pairs are needed at once, so that by default those of at most
        2 000 rows are taken; ``sample=None`` takes all if they fit in memory.

    References
    ----------
    Kruskal (1964), Multidimensional scaling by optimizing goodness of fit to a nonmetric
    hypothesis, Psychometrika 29.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(kruskal_stress1(X, X[:, 2:]), 4)
    0.0871
    """
    check_name("disparities", disparities, (*TIES, "metric"))
    compared = Comparison.of(X, Y, **options)
    pairs = compared.pairs()
    if not pairs.d.any():
        raise DataError("Y: all points of the map are equal; stress-1 divides by their distances.")
    with compared.options.working():
        d, fit = pairs.d, pairs.data.delta
        if disparities != "metric":  # only the order of the data's distances matters
            fit = monotone_fit(fit, d, disparities, compared.options.threads)
        gap = d - fit
        stress2 = float((gap @ gap) / (d @ d))
    stress = stress2**0.5
    if stress == 0.0 or len(pairs.data.rows) == compared.n:
        return Measured(stress, 0.0, len(pairs.data.rows))
    # Fits are best, so that to first order only the two sums vary, not the function itself.
    d2 = d**2
    influence = pairs.per_row(gap**2 - stress2 * d2) / d2.mean() / (2 * stress)
    return from_pairs(stress, influence, compared.n)


# The Shepard diagram, distances in the map against distances in the data, and its correlations.


class ShepardDiagram(NamedTuple):
    """Pairs in the order of ``data``: distance in the data, in the map, and the monotone fit."""

    data: np.ndarray
    map: np.ndarray
    fit: np.ndarray


def shepard_diagram(
    X: Any, Y: Any = None, *, n_pairs: int | None = 10_000, **options: Unpack[MapKeywords]
) -> ShepardDiagram:
    """The distances of pairs in the data and in the map, for drawing one against the other.

    If the cloud follows a straight line, distances can be read from the map; if it follows a rising
    curve, their order can; if it is wide, neither. ``fit`` is Kruskal's monotone function.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    n_pairs : int or None, default=10000
        Draw so many of the pairs at random; None keeps all. The fit is that of all.
    **options
        See :class:`Comparison`; the pairs are those of at most 2 000 rows by default.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> shepard_diagram(X, X[:, 2:], n_pairs=500).fit.shape
    (500,)
    """
    check_argument("n_pairs", n_pairs, Integer(1) | Null())
    compared = Comparison.of(X, Y, **options)
    pairs = compared.pairs()
    fit = monotone_fit(pairs.data.delta, pairs.d, "primary", compared.options.threads)
    order = stable_order(pairs.data.delta, compared.options.threads)
    if n_pairs is not None and n_pairs < len(order):
        chosen = np.random.default_rng(0).choice(len(order), n_pairs, replace=False)
        order = order[np.sort(chosen)]
    return ShepardDiagram(pairs.data.delta[order], pairs.d[order], fit[order])


def shepard_correlation(
    X: Any, Y: Any = None, *, method: str = "spearman", **options: Unpack[MapKeywords]
) -> Measured:
    """The correlation of distances in the data with distances in the map, over all pairs.

    "spearman" asks whether far in the map means far in the data, "pearson" whether twice as far
    means twice as far. It describes the large-scale layout, because most pairs are far apart; see
    :func:`trustworthiness` for the neighborhoods. 1 is best; 0 for a random map, and for a map or
    data without any differences of distance.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    method : {"spearman", "pearson"}, default="spearman"
        The former ranks all pairs at once, so that by default those of at most 2 000 rows are
        taken; the latter needs sums only, O(n d) memory.
    **options
        See :class:`Comparison`.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(shepard_correlation(X, X[:, 2:]), 4)
    0.9756
    """
    check_name("method", method, ("spearman", "pearson"))
    compared = Comparison.of(X, Y, **options)
    if method == "pearson":
        return _pearson(summable(compared, None, {}), lambda r: r)
    return spearman(compared, compared.pairs())


def residual_variance(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> Measured:
    """1 - r^2, r Pearson's correlation of the distances in data and map (Tenenbaum et al. 2000).

    Isomap's measure: for X, give its geodesic distances with ``metric="precomputed"``. 0 is best.

    References
    ----------
    Tenenbaum, de Silva & Langford (2000), A global geometric framework for nonlinear
    dimensionality reduction, Science 290.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(residual_variance(X, X[:, 2:]), 4)
    0.0249
    """
    return _pearson(summable(X, Y, options), lambda r: 1 - r * r)


def _pearson(compared: Comparison, f: Any) -> Measured:
    """f(r) from sums over rows; distances are measured from their means to keep digits."""
    sums, n = compared.distance_sums(), compared.n
    check_spread(sums)
    count = len(sums.delta) * (n - 1)
    a, b = sums.delta.sum() / count, sums.d.sum() / count
    rows = np.column_stack(
        [
            (sums.delta - (n - 1) * a) / (n - 1),
            (sums.d - (n - 1) * b) / (n - 1),
            (sums.delta2 - 2 * a * sums.delta) / (n - 1) + a * a,
            (sums.d2 - 2 * b * sums.d) / (n - 1) + b * b,
            (sums.delta_d - a * sums.d - b * sums.delta) / (n - 1) + a * b,
        ]
    )
    mean = rows.mean(axis=0)
    if mean[2] <= 1e-14 * a * a or mean[3] <= 1e-14 * b * b:  # no differences but rounding
        return Measured(f(0.0), 0.0, len(rows))
    rows /= [a, b, a * a, b * b, a * b]  # without a unit: products of these must not overflow

    def of_means(s: Any) -> Any:
        return f((s[4] - s[0] * s[1]) / np.sqrt((s[2] - s[0] ** 2) * (s[3] - s[1] ** 2)))

    return linearized(of_means, rows, n)


def spearman(compared: Comparison, pairs: Pairs) -> Measured:
    """rho = E[F G] / sqrt(E[F^2] E[G^2]) with F, G the mid-ranks as shares, less their mean 1/2.

    The error follows from the influence of a pair (x, y) on E[F G]: its own product, and what it
    adds to the ranks of all pairs beyond it, E[1(x' >= x) G(y')] and likewise for y.
    """
    n, threads = compared.n, compared.options.threads
    with compared.options.working():
        data, of_map = pairs.data.order(threads), Order.of(pairs.d, threads)
        F, G = data.shares(), of_map.shares()
        scale = float(np.sqrt(F @ F) * np.sqrt(G @ G)) / len(F)
        if scale == 0.0:
            return Measured(0.0, 0.0, len(pairs.data.rows))
        rho = float(F @ G) / len(F) / scale
        if len(pairs.data.rows) == n:
            return Measured(rho, 0.0, n)
        influence = F * G + data.means_beyond(G) + of_map.means_beyond(F)
    return from_pairs(rho, pairs.per_row((influence - influence.mean()) / scale), n)


# How much of the data an affine function of the map reconstructs.


def explained_variance(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> Measured:
    """1 - min_{A, b} sum_i |x_i - A y_i - b|^2 / sum_i |x_i - mean|^2.

    The share of the data's variance that an affine function of the map explains. For a PCA map
    it is the sum of its explained variance ratios, which no other map of as many dimensions
    exceeds. A map that unrolls a curved surface may have a low value and be right.

    Cost O(n d q) for all rows; ``sample`` and ``metric`` are ignored, and X must be features.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    **options
        See :class:`Comparison`.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(explained_variance(X, X[:, 2:]), 4)
    0.9323
    """
    total, left, n = _variances(Comparison.of(X, Y, **options))
    return Measured(1 - left / total, 0.0, n)


def reconstruction_error(X: Any, Y: Any = None, **options: Unpack[MapKeywords]) -> Measured:
    """min_{A, b} (1 / n) sum_i |x_i - A y_i - b|^2: what the best affine reading of the map misses.

    The mean squared distance of a row from its reconstruction, in the squared units of the data;
    (1 - :func:`explained_variance`) times the mean squared distance from the mean.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(reconstruction_error(X, X[:, 2:]), 4)
    0.3077
    """
    _, left, n = _variances(Comparison.of(X, Y, **options))
    return Measured(left / n, 0.0, n)


def _variances(compared: Comparison) -> tuple[float, float, int]:
    """sum |x - mean|^2, what the regression on the map leaves of it, and n.

    With Q an orthonormal basis of the centered map's columns the fit is Q Q^T X: it explains
    |Q^T X|^2.
    """
    X, Y = compared.data.table, compared.map.table
    if compared.data.metric == "precomputed":
        raise ParameterError(
            "metric='precomputed': explained variance needs the data, not their distances; "
            "see scale_normalized_stress for distances."
        )
    mean, squares = column_moments(X)
    total = float(squares.sum())
    if total == 0:
        raise DataError("X: all rows are equal; there is no variance to explain.")
    Y = Y.astype(np.float64)
    with compared.options.working():
        U, s, _ = thin_svd(Y - Y.mean(axis=0))
        Q = U[:, s > s.max(initial=0.0) * 1e-12] if s.max(initial=0.0) > 0 else U[:, :0]
        wide = X if is_sparse(X) else X.astype(np.float64, copy=False)
        explained = products.transpose_times(wide, mean, Q, compared.options.threads)
    return total, max(0.0, total - float((explained**2).sum())), compared.n


# What the opening angle of Barnes and Hut's approximation costs, in time and in accuracy.


class BarnesHutCost(NamedTuple):
    """For each opening angle the seconds of one step and its error; and those of all pairs.

    ``errors`` is |f - f*| / |f*| over all forces f, with f* from all pairs.
    """

    angles: np.ndarray
    seconds: np.ndarray
    errors: np.ndarray
    exact_seconds: float


def barnes_hut_cost(
    Y: Any,
    angles: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *,
    n_repeats: int = 3,
    n_jobs: int | None = None,
) -> BarnesHutCost:
    """Time and error of the repulsion of t-SNE, by the opening angle of the tree.

    The repulsion of one step of the descent is computed for a map: over all pairs of points, and
    with a tree whose cells of side / distance below the angle count as one point each.

    Parameters
    ----------
    Y : array of shape (n_rows, n_components)
        A map of one, two or three dimensions, as :class:`lowland.TSNE` makes it.
    angles : sequence of float
        Opening angles from 0 to 1; 0 is exact. ``TSNE(method="barnes_hut", angle=0.5)`` has 0.5.
    n_repeats : int, default=3
        How often each is timed; the shortest time counts.
    n_jobs : int or None, default=None
        Threads; None uses all cores. Errors do not depend on it.

    Returns
    -------
    BarnesHutCost

    References
    ----------
    Barnes & Hut (1986), Nature 324; van der Maaten (2014), Accelerating t-SNE using tree-based
    algorithms, JMLR 15.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> cost = barnes_hut_cost(swiss_roll(500, random_state=0).truth, [0, 0.2, 0.8])
    >>> bool(cost.errors[0] < 1e-6 < cost.errors[1] < cost.errors[2] < 0.1)
    True
    """
    owner = "barnes_hut_cost"
    Y = np.ascontiguousarray(check_matrix(Y, owner=owner, min_rows=2), dtype=np.float64)
    n, d = Y.shape
    if d > 3:
        raise DataError(f"Y: trees are for maps of up to 3 dimensions, not of {d}.")
    check_argument("angles", angles, Several(Real(0, 1, closed="both")))
    check_argument("n_repeats", n_repeats, Integer(1))
    threads = resolve_n_jobs(n_jobs)
    with limit_blas(1):
        exact, exact_seconds = _timed(pairwise_repulsion(1.0, threads), Y, n_repeats)
        found = []
        for angle in angles:
            tree = choose_repulsion("barnes_hut", n, d, 1.0, float(angle), threads, owner=owner)
            found.append(_timed(tree, Y, n_repeats))
    scale = float(np.sqrt((exact**2).sum())) or 1.0
    errors = [float(np.sqrt(((forces - exact) ** 2).sum())) / scale for forces, _ in found]
    seconds, tried = np.array([seconds for _, seconds in found]), np.array(angles, np.float64)
    return BarnesHutCost(tried, seconds, np.array(errors), exact_seconds)


def _timed(repel: Repulsion, Y: np.ndarray, repeats: int) -> tuple[np.ndarray, float]:
    """Forces on all points, and the shortest time."""
    potential, forces = np.empty(len(Y)), np.empty_like(Y)
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        repel(Y, potential, forces)
        best = min(best, time.perf_counter() - start)
    return forces, best

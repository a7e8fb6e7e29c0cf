"""The Shepard diagram, distances in the map against distances in the data, and its correlations."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._core.constraints import Integer, Null
from lowland._core.errors import ParameterError, check_name
from lowland._core.units import exponent_for, in_unit, largest
from lowland._core.wording import shown
from lowland._engines.stress.monotone_regression import monotone_fit, stable_order
from lowland.metrics._comparison import Comparison, Pairs
from lowland.metrics._measured import Measured, from_pairs, linearized
from lowland.metrics._options import ComparisonKeywords
from lowland.metrics._order import Order
from lowland.metrics._rows import summable
from lowland.metrics.stress import check_spread

METHODS = ("spearman", "pearson")


class ShepardDiagram(NamedTuple):
    """Pairs in the order of ``data``: distance in the data, in the map, and the monotone fit."""

    data: np.ndarray
    map: np.ndarray
    fit: np.ndarray


def shepard_diagram(
    X: Any, Y: Any = None, *, n_pairs: int | None = 10_000, **options: Unpack[ComparisonKeywords]
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
    if not (Null() | Integer(1)).allows(n_pairs):
        raise ParameterError(
            f"n_pairs={shown(n_pairs)} is not allowed; expected an integer >= 1 or None."
        )
    compared = Comparison.of(X, Y, **options)
    pairs = compared.pairs()
    e = exponent_for(largest(pairs.d))  # sums of distances must not overflow
    fit = monotone_fit(pairs.delta, in_unit(pairs.d, e), "primary", compared.options.threads)
    fit = in_unit(fit, -e)
    order = stable_order(pairs.delta, compared.options.threads)
    if n_pairs is not None and n_pairs < len(order):
        chosen = np.random.default_rng(0).choice(len(order), n_pairs, replace=False)
        order = order[np.sort(chosen)]
    return ShepardDiagram(pairs.delta[order], pairs.d[order], fit[order])


def shepard_correlation(
    X: Any, Y: Any = None, *, method: str = "spearman", **options: Unpack[ComparisonKeywords]
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
    check_name("method", method, METHODS)
    compared = Comparison.of(X, Y, **options)
    if method == "pearson":
        return _pearson(summable(compared, None, {}), lambda r: r)
    return spearman(compared, compared.pairs())


def residual_variance(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> Measured:
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
    a, b = sums.delta.sum() / _count(sums, n), sums.d.sum() / _count(sums, n)
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


def _count(sums: Any, n: int) -> int:
    return len(sums.delta) * (n - 1)


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
            return Measured(0.0, 0.0, len(pairs.rows))
        rho = float(F @ G) / len(F) / scale
        if len(pairs.rows) == n:
            return Measured(rho, 0.0, n)
        influence = F * G + data.means_beyond(G) + of_map.means_beyond(F)
    return from_pairs(rho, pairs.per_row((influence - influence.mean()) / scale), n)

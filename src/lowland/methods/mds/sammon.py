"""Sammon's mapping (Sammon 1969)."""

from __future__ import annotations

from lowland._base.constraints import Integer
from lowland._base.params import param
from lowland._base.traits import Card, Estimate
from lowland.methods.mds._stress import StressReducer


class Sammon(StressReducer):
    """min (1 / sum delta) sum (delta - d)^2 / delta: errors relative to the distance count.

    Metric scaling in which small distances count as much as large ones. It keeps neighborhoods
    better than MDS and the overall arrangement better than t-SNE. Cost per step: O(n^2 q) with all
    pairs.

    Parameters
    ----------
    power : {1, 2}, default=1
        Exponent of delta in the denominator: 1 is Sammon's stress. With 2, the stress is
        sum (delta - d)^2 / delta^2, in which small distances count even more.

    Attributes
    ----------
    stress_per_point_ : ndarray of shape (n_samples,)
        Relative stress of each row: sqrt(sum_j (delta - d)^2 / delta^power), divided by its value
        for a map in which all points coincide.

    Notes
    -----
    Pairs at distance 0 are left out, and equal rows share one place. Sammon's diagonal Newton steps
    with a "magic factor" are replaced by majorization with quasi-Newton steps, which never increase
    the stress and need fewer steps. A new row is placed where its own stress is lowest.

    References
    ----------
    Sammon (1969), A nonlinear mapping for data structure analysis, IEEE Trans. Computers 18.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = Sammon().fit(iris().X)
    >>> round(model.stress_, 4)
    0.004
    """

    power: int = param(Integer(1, 2), default=1)

    card = Card(
        keeps="distances, small ones as well as large ones",
        use="for a map of up to some ten thousand rows in which distances can be read",
        avoid="when there are many near duplicates, because their tiny distances dominate",
        cost="O(n^2) per step and memory, O(n) with sparse pairs",
    )
    reference = "Sammon (1969)"
    aliases = ("sammon_mapping",)
    reading = StressReducer.reading._replace(
        distances="The map keeps relative errors of distances small, so that short distances count "
        "as much as long ones: near and far can be read, within the stress reported."
    )
    accepts_missing = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 100 steps over all pairs."""
        return cls._stress_cost(n, p, 100)

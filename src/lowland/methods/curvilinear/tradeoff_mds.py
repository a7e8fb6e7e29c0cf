"""Local multidimensional scaling with a tradeoff (Venna & Kaski 2006)."""

from __future__ import annotations

import numpy as np

from lowland._base.constraints import Real
from lowland._base.params import param
from lowland._base.traits import Card, Estimate
from lowland._engines.local_stress.objective import Law
from lowland.methods.curvilinear._base import RadialReducer

SMALLEST = 1e-3  # radii are at least this share of their mean, where rows have many copies


class TradeoffMDS(RadialReducer):
    """E = 1/2 sum (delta - d)^2 [(1 - l) F(d, s_i) + l F(delta, s_i)]: trusted or complete.

    With l = 0 errors count for pairs that are near in the map, as in CCA: what is near in the map
    is near in the data (trustworthiness). With l = 1 they count for pairs that are near in the
    data: what is near in the data stays near in the map (continuity). Values between trade one for
    the other. Radii s_i differ from row to row, so that dense and sparse regions are kept alike.
    The paper calls the method local MDS; ``LocalMDS`` is another one of that name. Cost: as CCA.

    Parameters
    ----------
    tradeoff : float, default=0.1
        l, from 0 (trustworthiness) to 1 (continuity). The paper uses 0 to 0.5.

    Notes
    -----
    F is 1 up to the radius and 0 beyond. The radii begin at the largest distance of the start (the
    paper: at half of the largest distance in the data) and shrink geometrically. As in CCA, the
    moves of the paper treat F as a constant, and quasi-Newton steps lower the potential of its mean
    force; see ``CurvilinearComponentAnalysis``. A new row is placed where its own potential is
    lowest.

    References
    ----------
    Venna & Kaski (2006), Local multidimensional scaling, Neural Networks 19, 889-899.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> TradeoffMDS(tradeoff=0.3, random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    tradeoff: float = param(Real(0, 1, closed="both"), default=0.1)

    card = Card(
        keeps="short distances, of the map or of the data, depending on the tradeoff",
        use="to choose between a map that can be trusted and one that is complete",
        avoid="to read long distances",
        cost="O(n^2) per step and memory up to 4000 rows, O(n) beyond",
    )
    reference = "Venna & Kaski (2006)"
    aliases = ("venna_kaski",)

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return 1.3 * cls._radial_cost(n, p)

    def _law(self) -> Law:
        return Law("step", tradeoff=float(self.tradeoff))

    def _radii(self, kth: np.ndarray) -> np.ndarray:
        return np.maximum(kth, SMALLEST * float(kth.mean()) or 1.0)

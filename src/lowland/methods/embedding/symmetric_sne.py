"""Symmetric stochastic neighbor embedding (Cook, Sutskever, Mnih & Hinton 2007)."""

from __future__ import annotations

from lowland._base.traits import Card, Estimate
from lowland.methods.embedding._base import NeighborEmbedding


class SymmetricSNE(NeighborEmbedding):
    """SNE with one distribution over all pairs: q_ij proportional to exp(-|y_i - y_j|^2).

    Minimizes sum_ij p_ij log(p_ij / q_ij) over pairs i != j. It stands between SNE and t-SNE: the
    gradient, 4 sum_j (p_ij - q_ij)(y_i - y_j), is as simple as that of t-SNE, but maps are crowded
    as with SNE. Use it for comparison, or where moderate distances should count; for clusters use
    t-SNE. Cost: O(n^2) per step and, with all neighbors, O(n^2) memory, so up to some thousand
    rows.

    Attributes
    ----------
    kl_divergence_ : float
        sum_ij p_ij log(p_ij / q_ij) at the end.

    Notes
    -----
    ``transform`` places each new row by itself while the map is fixed. Fitted rows keep their
    places. The result is the same, to the last bit, for any ``n_jobs``.

    References
    ----------
    Cook, Sutskever, Mnih & Hinton (2007), Visualizing similarity data with a mixture of maps,
    AISTATS, PMLR 2, 67-74; van der Maaten & Hinton (2008), JMLR 9, section 3.1.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> SymmetricSNE(random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    card = Card(
        keeps="who is whose neighbor, and moderate distances better than t-SNE",
        use="to compare with t-SNE, or where moderate distances should count",
        avoid="for clusters, which crowd in the middle; for more than some thousand rows",
        cost="O(n^2) per step and in memory",
    )
    reference = "Cook, Sutskever, Mnih & Hinton (2007)"
    aliases = ("ssne",)

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return Estimate(0.1 + 750 * 6e-10 * n * n, 40 * n * n + 16 * n * p)

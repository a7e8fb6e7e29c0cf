"""Stochastic neighbor embedding (Hinton & Roweis 2002)."""

from __future__ import annotations

from lowland._base.traits import Card, Estimate
from lowland.methods.embedding._base import NeighborEmbedding


class SNE(NeighborEmbedding):
    """Each row keeps its distribution over neighbors: q_j|i proportional to exp(-|y_i - y_j|^2).

    Minimizes sum_i KL(P_i || Q_i). Each row has its own distribution, so that an outlier counts as
    much as any row. The gradient is 2 sum_j (y_i - y_j)(p_j|i - q_j|i + p_i|j - q_i|j). SNE is the
    ancestor of t-SNE; use it for comparison. Its maps are crowded in the middle. Cost: O(n^2) per
    step and, with all neighbors, O(n^2) memory, so up to some thousand rows.

    Attributes
    ----------
    kl_divergence_ : float
        sum_i KL(P_i || Q_i) at the end.

    Notes
    -----
    ``transform`` places each new row by itself while the map is fixed. Fitted rows keep their
    places. The result is the same, to the last bit, for any ``n_jobs``.

    References
    ----------
    Hinton & Roweis (2002), Stochastic neighbor embedding, NIPS 15, 857-864.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> SNE(random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    card = Card(
        keeps="the neighbors of each row, also those of outliers",
        use="to compare it with symmetric SNE and t-SNE",
        avoid="for clusters, which crowd in the middle; for more than some thousand rows",
        cost="O(n^2) per step and in memory",
    )
    reference = "Hinton & Roweis (2002)"
    aliases = ("stochastic_neighbor_embedding",)
    by_rows = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return Estimate(0.1 + 750 * 1.2e-09 * n * n, 40 * n * n + 16 * n * p)

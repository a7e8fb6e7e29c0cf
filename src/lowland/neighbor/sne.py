"""Stochastic neighbor embedding (Hinton & Roweis 2002)."""

from __future__ import annotations

from lowland._core.card import Card, Estimate
from lowland.neighbor._base import NeighborEmbedding

__all__ = ["SNE"]


class SNE(NeighborEmbedding):
    """Each row keeps its distribution over neighbors: q_j|i proportional to exp(-|y_i - y_j|^2).

    Minimizes sum_i KL(P_i || Q_i), each row with a distribution of its own, so that an outlier
    counts as much as any row. The gradient is
    2 sum_j (y_i - y_j)(p_j|i - q_j|i + p_i|j - q_i|j). The ancestor of t-SNE: use it to compare;
    its maps are crowded in the middle. Cost O(n^2) per step and, with all neighbors, O(n^2)
    memory: up to some thousand rows.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.
    perplexity : float or list of float, default=30
        Effective number of neighbors, 1 to n - 1. Several are mixed with equal weight.
    n_neighbors : int or None, default=None
        Neighbors that get an affinity; None is all of them.
    early_exaggeration : float, default=1
        Factor on the attraction in the first steps.
    early_exaggeration_iter : int, default=0
        How many steps these are; none when ``init`` is a map, which they would undo.
    learning_rate : float or "auto", default="auto"
        Step length; "auto" is n / exaggeration.
    max_iter : int, default=750
        Steps in all. 0 gives the start.
    init : {"pca", "spectral", "random"} or array of shape (n, n_components), default="pca"
        Where the map starts; an array goes on from an earlier map. Where there are only distances,
        "pca" means "spectral".
    metric : str or callable, default="euclidean"
        Distance between rows, as in ``lowland.neighbors.knn_graph``. "precomputed": X holds
        distances, dense or sparse. X may also be a ``NeighborGraph``.
    metric_params : dict or None, default=None
        Parameters of the metric, ``{"p": 3}`` for "minkowski".
    tol : float, default=1e-5
        Stop when the divergence falls by less than this share of itself per step; 0 never stops.
    callback : callable or None, default=None
        ``callback(step, map, loss)`` after each step; returning True stops and keeps the map.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The map. Equal rows share one place.
    kl_divergence_ : float
        sum_i KL(P_i || Q_i) at the end.
    loss_history_ : ndarray
        The same every 50 steps and at the end.
    n_iter_, n_neighbors_ : int
        Steps done; neighbors that got an affinity.
    mean_potential_, rows_
        What new rows are placed with: the mean of sum_j exp(-r_ij^2), and the fitted rows.

    Notes
    -----
    ``transform`` places each new row alone against the frozen map; fitted rows land on their own
    places. The same bytes come out for any ``n_jobs``.

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
        keeps="each row's own neighbors, outliers' as well",
        use="to compare with its descendants",
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

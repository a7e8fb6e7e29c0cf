"""Symmetric stochastic neighbor embedding (Cook, Sutskever, Mnih & Hinton 2007)."""

from __future__ import annotations

from lowland._core.card import Card, Estimate
from lowland.neighbor._base import NeighborEmbedding

__all__ = ["SymmetricSNE"]


class SymmetricSNE(NeighborEmbedding):
    """SNE with one distribution over all pairs: q_ij proportional to exp(-|y_i - y_j|^2).

    Minimizes sum_ij p_ij log(p_ij / q_ij) over pairs i != j. Between SNE and t-SNE: a gradient as
    simple as t-SNE's, 4 sum_j (p_ij - q_ij)(y_i - y_j), but the crowding of SNE. Use it to compare,
    or where moderate distances should count; for clusters take t-SNE. Cost O(n^2) per step and,
    with all neighbors, O(n^2) memory: up to some thousand rows.

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
        sum p log(p / q) at the end.
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

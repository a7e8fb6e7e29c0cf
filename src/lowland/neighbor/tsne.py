"""t-distributed stochastic neighbor embedding (van der Maaten & Hinton 2008)."""

from __future__ import annotations

from lowland._core.card import Card, Estimate
from lowland._core.constraints import Integer, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.params import param
from lowland._engines.embedding.repulsion import Repulsion, choose_repulsion
from lowland.neighbor._base import NeighborEmbedding

__all__ = ["TSNE"]


class TSNE(NeighborEmbedding):
    """Neighbors stay neighbors: minimize KL(P || Q), q_ij proportional to (1 + |y_i - y_j|^2)^-1.

    The map for looking at clusters in data of many columns. Near points in the map are near in the
    data (check ``lowland.metrics``); distances between clusters, their sizes and densities mean
    little. Not for outliers, nor as input for a clustering. Cost per step: O(n k) attraction and
    O(n + area of the map) repulsion on a mesh; memory O(n k).

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map; beyond 3 only ``method="exact"``.
    perplexity : float or list of float, default=30
        Effective number of neighbors, 1 to n - 1; larger shows coarser structure. Several are
        mixed with equal weight.
    n_neighbors : int or None, default=None
        Neighbors that get an affinity; None is three times the perplexity.
    early_exaggeration : float, default=12
        Factor on the attraction in the first steps, which lets clusters form.
    early_exaggeration_iter : int, default=250
        How many steps these are; none when ``init`` is a map, which they would undo.
    exaggeration : float, default=1
        The factor afterwards; above 1 draws clusters together, toward Laplacian eigenmaps.
    learning_rate : float or "auto", default="auto"
        Step length; "auto" is n / exaggeration.
    max_iter : int, default=750
        Steps in all. 0 gives the start.
    init : {"pca", "spectral", "random"} or array of shape (n, n_components), default="pca"
        Where the map starts; an array goes on from an earlier map. Where there are only distances,
        "pca" means "spectral".
    dof : float, default=1
        Degrees of freedom v of q proportional to (1 + r^2/v)^-v; below 1 shows finer clusters.
    metric : str or callable, default="euclidean"
        Distance between rows, as in ``lowland.neighbors.knn_graph``. "precomputed": X holds
        distances, dense or sparse. X may also be a ``NeighborGraph``.
    metric_params : dict or None, default=None
        Parameters of the metric, ``{"p": 3}`` for "minkowski".
    method : {"auto", "exact", "barnes_hut", "mesh"}, default="auto"
        How repulsion is computed: all pairs, a tree, or a potential on a grid; all agree within
        2 %. "auto" takes the cheapest.
    angle : float, default=0.5
        Of "barnes_hut": a cell seen under less (side / distance) counts as one point.
    tol : float, default=1e-5
        Stop when the divergence falls by less than this share of itself per step; 0 never stops.
    callback : callable or None, default=None
        ``callback(step, map, loss)`` after each step; returning True stops and keeps the map.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The map. Equal rows share one place.
    kl_divergence_ : float
        KL(P || Q) at the end, without exaggeration.
    loss_history_ : ndarray
        The same every 50 steps and at the end; during early exaggeration it may rise.
    n_iter_, n_neighbors_ : int
        Steps done; neighbors that got an affinity.
    mean_potential_, rows_
        What new rows are placed with: the mean of sum_j (1 + r_ij^2/v)^-v, and the fitted rows.

    Notes
    -----
    ``transform`` places each new row alone against the frozen map, where it lowers the divergence
    most; fitted rows land on their own places. The same bytes come out for any ``n_jobs``.

    References
    ----------
    van der Maaten & Hinton (2008), JMLR 9, 2579-2605; van der Maaten (2014), JMLR 15, 3221-3245;
    Linderman et al. (2019), Nature Methods 16; Kobak & Berens (2019), Nature Communications 10.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> TSNE(perplexity=20, random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    early_exaggeration: float = param(
        Real(1, 1e6, closed="both"), default=12.0, doc="factor on the attraction at first"
    )
    early_exaggeration_iter: int = param(
        Integer(0), default=250, doc="steps with the early exaggeration; none from a given map"
    )
    exaggeration: float = param(
        Real(1, 1e6, closed="both"), default=1.0, doc="factor on the attraction afterwards"
    )
    dof: float = param(
        Real(1e-3, 1e6, closed="both"),
        default=1.0,
        doc="degrees of freedom of the similarity in the map",
    )
    method: str = param(
        OneOf("auto", "exact", "barnes_hut", "mesh"), default="auto", doc="how points repel"
    )
    angle: float = param(Real(0, 1, closed="both"), default=0.5, doc="opening angle of barnes_hut")

    card = Card(
        keeps="who is whose neighbor",
        use="to look at clusters and their neighborhoods in data of many columns",
        avoid="to judge distances between clusters, their sizes or densities, or outliers; as "
        "input for a clustering",
        cost="O(n) per step and O(n^2 p) for exact neighbors (O(n^1.5 p) beyond 200 000 rows), "
        "O(n) memory",
    )
    reference = "van der Maaten & Hinton (2008)"
    all_pairs = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        neighbors = 1.2e-11 * min(n * n, 1e5 * n) * p
        return Estimate(0.5 + neighbors + 1.5e-4 * n, n * (16 * p + 4000))

    def _dof(self) -> float:
        return float(self.dof)

    def _final_exaggeration(self) -> float:
        return self.exaggeration

    def _momentum(self) -> float:
        # Heavy tails let a map spread slowly and steadily, which momentum helps; beyond 0.97, or
        # with light tails, maps burst.
        return 0.9 if self.dof <= 1 else 0.8

    def _repulsion(self, n: int, d: int, run: FitContext) -> Repulsion:
        return choose_repulsion(
            self.method, n, d, self._dof(), self.angle, run.threads, owner="TSNE"
        )

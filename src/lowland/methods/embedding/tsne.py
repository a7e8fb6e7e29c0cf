"""t-distributed stochastic neighbor embedding (van der Maaten & Hinton 2008)."""

from __future__ import annotations

from lowland._base.constraints import Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.params import param
from lowland._base.traits import Card, Estimate
from lowland._engines.embedding.repulsion import Repulsion, choose_repulsion
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland.methods.embedding._base import NeighborEmbedding


class TSNE(NeighborEmbedding):
    """Neighbors stay neighbors: minimize KL(P || Q), q_ij proportional to (1 + |y_i - y_j|^2)^-1.

    Use it to look at clusters in data of many columns. Points that are near in the map are near in
    the data (``lowland.metrics`` measures how many); distances between clusters, their sizes and
    their densities mean little. Not for outliers, nor as input of a clustering. Cost per step:
    O(n k) for the attraction and O(n + area of the map) for the repulsion on a mesh; O(n k) memory.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map. Beyond 3 only ``method="exact"`` is possible.
    n_neighbors : int or None, default=None
        Number of neighbors that get an affinity. None takes three times the perplexity.
    early_exaggeration : float, default=12.0
        Factor on the attraction in the first steps, which lets clusters form.
    early_exaggeration_iter : int, default=250
        Number of steps with the early exaggeration. It is 0 if ``init`` is a map, whose clusters
        these steps would undo.
    exaggeration : float, default=1.0
        Factor on the attraction in the later steps: the place of the map on the
        attraction-repulsion spectrum. 1 is t-SNE, about 4 is like UMAP, about 30 like ForceAtlas2,
        and larger factors lead to Laplacian eigenmaps.
    dof : float, default=1.0
        Degrees of freedom v of q proportional to (1 + r^2/v)^-v. Below 1 the map shows finer
        clusters.
    method : {"auto", "exact", "barnes_hut", "mesh"}, default="auto"
        How the repulsion is computed: over all pairs, with a tree, or with a potential on a grid.
        All agree within 2 %. "auto" takes the fastest.
    angle : float, default=0.5
        Opening angle of "barnes_hut". A cell with side / distance below it counts as one point.

    Attributes
    ----------
    kl_divergence_ : float
        KL(P || Q) at the end, without exaggeration.
    loss_history_ : ndarray of shape (n_looks,)
        Divergence every 50 steps and at the end. It may rise during the early exaggeration.

    Notes
    -----
    ``transform`` places each new row by itself while the map is fixed, at the minimum of the
    divergence that a descent from the mean of its neighbors reaches. Fitted rows keep their places.
    The result is the same, to the last bit, for any ``n_jobs``.

    Attraction (``exaggeration``) makes clusters small and shows the transitions between them;
    repulsion keeps more neighbors and opens gaps (Böhm et al. 2022). An axis of the map collapses
    if the factor is above 1 / l, l the matching eigenvalue of n (D - P), D the row sums of P: first
    the map becomes a line, then a point. For the digits this happens at 65 and 108. Use
    :class:`LaplacianEigenmaps` before that.

    References
    ----------
    van der Maaten & Hinton (2008), JMLR 9, 2579-2605; van der Maaten (2014), JMLR 15, 3221-3245;
    Linderman et al. (2019), Nature Methods 16; Kobak & Berens (2019), Nature Communications 10;
    Böhm, Berens & Kobak (2022), JMLR 23, arXiv:2007.08902 (attraction-repulsion spectrum).

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> TSNE(perplexity=20, random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    early_exaggeration: float = param(Real(1, 1e6, closed="both"), default=12.0)
    early_exaggeration_iter: int = param(Integer(0), default=250)
    exaggeration: float = param(Real(1, 1e6, closed="both"), default=1.0)
    dof: float = param(Real(1e-3, 1e6, closed="both"), default=1.0)
    method: str = param(OneOf("auto", "exact", "barnes_hut", "mesh"), default="auto")
    angle: float = param(Real(0, 1, closed="both"), default=0.5)

    card = Card(
        keeps="who is whose neighbor",
        use="to look at clusters and their neighborhoods in data of many columns",
        avoid="to judge distances between clusters, their sizes or densities, or outliers; as "
        "input of a clustering",
        cost="O(n) per step and O(n^2 p) for exact neighbors (O(n^1.5 p) beyond 200 000 rows), "
        "O(n) memory",
    )
    reference = "van der Maaten & Hinton (2008)"
    all_pairs = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        search = neighbor_graph_cost(n, p, 90)
        return Estimate(0.5 + search.seconds + 1.5e-4 * n, n * (16 * p + 4000))

    def _dof(self) -> float:
        return float(self.dof)

    def _final_exaggeration(self) -> float:
        return self.exaggeration

    def _momentum(self) -> float:
        # With heavy tails a map spreads slowly and steadily, and momentum makes that faster. With
        # light tails, or with a momentum above 0.97, the descent diverges.
        return 0.9 if self.dof <= 1 else 0.8

    def _repulsion(self, n: int, d: int, run: FitContext) -> Repulsion:
        return choose_repulsion(
            self.method, n, d, self._dof(), self.angle, run.threads, owner="TSNE"
        )

"""Pairwise controlled manifold approximation (Wang, Huang, Rudin & Shaposhnik 2021)."""

from __future__ import annotations

from lowland._base.traits import Card
from lowland.methods.embedding._pair_base import PairEmbedding


class PaCMAP(PairEmbedding):
    """Near pairs attract, far pairs repel, mid-near pairs lay out the map: three losses of d^2.

    With s = 1 + |y_i - y_j|^2 the loss is the sum of w s / (10 + s) over near pairs, w s / (10^4 +
    s) over mid-near pairs and w / (1 + s) over far pairs. In three phases the weights of near,
    mid-near and far pairs are 2, 1000 falling to 3, 1; then 3, 3, 1; then 1, 0, 1. Use it to look
    at groups and at their rough arrangement, which the mid-near pairs keep better than t-SNE does.
    Not to judge distances, sizes or densities. Cost per step: O(n k), memory O(n k).

    Notes
    -----
    Near pairs are the k rows with the least d_ij^2 / (s_i s_j) among the k + 50 nearest, where s_i
    is the mean distance of row i to its neighbors 4 to 6. A mid-near pair is the second nearest of
    six random rows. Far pairs are random rows that are not near. Random rows are functions of the
    seed, the row and their place in its list, and forces are summed in one order, so the result is
    the same, to the last bit, for any ``n_jobs``.

    Of few rows (fewer than the pairs of a row) the numbers of pairs are shares of n. The start has
    a standard deviation of 0.01 along its widest axis, whatever the unit of the data is; the code
    of the authors takes a hundredth of the principal components of wide tables in their own unit.

    ``transform`` places each new row by itself while the map is fixed, at a minimum of the loss of
    its near pairs and of the mean repulsion of random fitted rows, n_far / n times the sum of 1 /
    (1 + s) over all of them. The descent starts at the lowest of the places of its near rows and of
    their mean. Fitted rows keep their places.

    References
    ----------
    Wang, Huang, Rudin & Shaposhnik (2021), Understanding how dimension reduction tools work: an
    empirical approach to deciphering t-SNE, UMAP, TriMap, and PaCMAP for data visualization,
    JMLR 22, 1-73.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> PaCMAP(random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    card = Card(
        keeps="who is whose neighbor, and the rough arrangement of the groups",
        use="to look at groups and at how they lie to each other, fast",
        avoid="to judge distances between groups, their sizes or densities, or outliers",
        cost="O(n) per step and O(n^2 p) for exact neighbors (O(n^1.5 p) beyond 200 000 rows), "
        "O(n) memory",
    )
    reference = "Wang, Huang, Rudin & Shaposhnik (2021)"

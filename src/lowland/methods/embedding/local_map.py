"""LocalMAP: a map by pairs with locally adjusted graphs (Wang, Sun, Huang & Rudin 2025)."""

from __future__ import annotations

from lowland._base.constraints import Real
from lowland._base.params import param
from lowland._base.traits import Card
from lowland.methods.embedding._pair_base import PairEmbedding


class LocalMAP(PairEmbedding):
    """PaCMAP with sharper groups: long near pairs count less, far pairs are drawn nearby.

    In the third phase the force of a near pair is multiplied by c / sqrt(s), with s = 1 + |y_i -
    y_j|^2 and c half of ``low_dist_thres``, so that wrong pairs between groups lose their hold.
    Every ten steps the far pairs are drawn again among the rows within ``low_dist_thres`` in the
    map, so that groups side by side are pushed apart. Compare it with PaCMAP
    where groups touch; overlapping normal groups of our tests were not farther apart than there.
    Not to judge whether groups exist: it tends to cut what is dense. Cost as PaCMAP.

    Parameters
    ----------
    low_dist_thres : float, default=10.0
        Distance in the map within which far pairs are drawn in the third phase.

    Notes
    -----
    The loss of near pairs whose force this is, is c (sqrt(s) / (10 + s) + atan(sqrt(s / 10)) /
    sqrt(10)). ``loss_`` and new rows use it. A far pair stays as it is if no row within the
    distance is found for it. Points are sorted into cells as wide as ``low_dist_thres``, so that a
    draw is likely to be within it. New rows are repelled by n_far / m times the sum of 1 / (1 + s)
    over the fitted rows within the distance, where m is about the mean number of them around a row.

    Everything else is as in PaCMAP, the first two phases included.

    References
    ----------
    Wang, Sun, Huang & Rudin (2025), Dimension reduction with locally adjusted graphs, AAAI 39,
    21357-21365, doi:10.1609/aaai.v39i20.35436.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> LocalMAP(random_state=0).fit_transform(iris().X).shape
    (150, 2)
    """

    low_dist_thres: float = param(Real(0, 1e9, closed="right"), default=10.0)

    card = Card(
        keeps="who is whose neighbor, with gaps cleared between dense parts",
        use="to compare with PaCMAP, where its groups touch",
        avoid="to judge whether groups exist, distances between them, sizes or densities",
        cost="O(n) per step and O(n^2 p) for exact neighbors (O(n^1.5 p) beyond 200 000 rows), "
        "O(n) memory",
    )
    reference = "Wang, Sun, Huang & Rudin (2025)"
    reading = PairEmbedding.reading._replace(
        gaps="Gaps are widened on purpose, and a continuous shape is cut into pieces where it is "
        "thin: a gap alone does not show that groups exist. Run PaCMAP or another seed, and trust "
        "only what both maps show."
    )

    def _reach(self) -> float:
        return float(self.low_dist_thres)

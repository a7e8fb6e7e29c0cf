"""Quality measures of maps, for tables of any size.

    >>> from lowland import PCA
    >>> from lowland.datasets import digits
    >>> from lowland.metrics import trustworthiness
    >>> X = digits().X
    >>> round(trustworthiness(X, PCA(2).fit_transform(X), n_neighbors=10), 4)
    0.83

Measures are functions ``f(X, Y, ...)`` of the data and of a map made by any tool; :func:`quality`
gives the most important ones in a table. They take the keywords of :class:`Comparison`, or a
comparison in place of X and Y if several measures are to share intermediate results. By default
each measure takes all rows if this is cheap, else a sample; the numbers are floats that have a
``standard_error``.
"""

from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured
from lowland.metrics._table import Quality, QualityRow
from lowland.metrics.barnes_hut import BarnesHutCost, barnes_hut_cost
from lowland.metrics.components import chance_shares, elbow
from lowland.metrics.concentration import DistanceConcentration, distance_concentration
from lowland.metrics.coranking import RnxCurve, coranking_matrix, rnx_auc, rnx_curve
from lowland.metrics.dimension import Dimension, intrinsic_dimension
from lowland.metrics.grouping.gaps import Gap, gap_test
from lowland.metrics.grouping.hills import islands
from lowland.metrics.grouping.splits import inner_gaps
from lowland.metrics.grouping.stability import IslandStability, island_stability
from lowland.metrics.hubness import Hubness, hubness
from lowland.metrics.kruskal import kruskal_stress1
from lowland.metrics.labels import knn_accuracy, neighborhood_hit, silhouette
from lowland.metrics.linear import explained_variance, reconstruction_error
from lowland.metrics.matching import match_accuracy, match_rank, match_ranks
from lowland.metrics.pointwise.agreement import MapAgreement, map_agreement
from lowland.metrics.pointwise.home import PointHome, point_home
from lowland.metrics.pointwise.missing import (
    chance_of_missing,
    missing_neighbors,
    missing_p_values,
    strangers,
)
from lowland.metrics.quality import quality
from lowland.metrics.rank_errors import RankErrors, mean_relative_rank_errors
from lowland.metrics.recall import lcmc, neighbor_recall
from lowland.metrics.selecting import SelectionCurve, selection_curve
from lowland.metrics.shepard import (
    ShepardDiagram,
    residual_variance,
    shepard_correlation,
    shepard_diagram,
)
from lowland.metrics.stress import (
    point_stress,
    raw_stress,
    sammon_stress,
    scale_normalized_stress,
)
from lowland.metrics.trust import continuity, point_continuity, point_trust, trustworthiness

__all__ = [
    "BarnesHutCost",
    "Comparison",
    "Dimension",
    "DistanceConcentration",
    "Gap",
    "Hubness",
    "IslandStability",
    "MapAgreement",
    "Measured",
    "PointHome",
    "Quality",
    "QualityRow",
    "RankErrors",
    "RnxCurve",
    "SelectionCurve",
    "ShepardDiagram",
    "barnes_hut_cost",
    "chance_of_missing",
    "chance_shares",
    "continuity",
    "coranking_matrix",
    "distance_concentration",
    "elbow",
    "explained_variance",
    "gap_test",
    "hubness",
    "inner_gaps",
    "intrinsic_dimension",
    "island_stability",
    "islands",
    "knn_accuracy",
    "kruskal_stress1",
    "lcmc",
    "map_agreement",
    "match_accuracy",
    "match_rank",
    "match_ranks",
    "mean_relative_rank_errors",
    "missing_neighbors",
    "missing_p_values",
    "neighbor_recall",
    "neighborhood_hit",
    "point_continuity",
    "point_home",
    "point_stress",
    "point_trust",
    "quality",
    "raw_stress",
    "reconstruction_error",
    "residual_variance",
    "rnx_auc",
    "rnx_curve",
    "sammon_stress",
    "scale_normalized_stress",
    "selection_curve",
    "shepard_correlation",
    "shepard_diagram",
    "silhouette",
    "strangers",
    "trustworthiness",
]

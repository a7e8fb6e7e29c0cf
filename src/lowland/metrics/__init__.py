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
from lowland.metrics._measured import Measured, Quality, QualityRow
from lowland.metrics.coranking import (
    RankErrors,
    RnxCurve,
    continuity,
    coranking_matrix,
    lcmc,
    mean_relative_rank_errors,
    neighbor_recall,
    point_continuity,
    point_trust,
    rnx_auc,
    rnx_curve,
    trustworthiness,
)
from lowland.metrics.dimension import (
    Dimension,
    DistanceConcentration,
    Hubness,
    chance_shares,
    distance_concentration,
    elbow,
    hubness,
    intrinsic_dimension,
)
from lowland.metrics.gaps import Gap, gap_test, inner_gaps
from lowland.metrics.hills import IslandStability, island_stability, islands
from lowland.metrics.home import MapAgreement, PointHome, map_agreement, point_home
from lowland.metrics.labels import knn_accuracy, neighborhood_hit, silhouette
from lowland.metrics.missing import (
    chance_of_missing,
    missing_neighbors,
    missing_p_values,
    strangers,
)
from lowland.metrics.procrustes import match_accuracy, match_rank, match_ranks
from lowland.metrics.quality import quality
from lowland.metrics.selecting import SelectionCurve, selection_curve
from lowland.metrics.stress import (
    BarnesHutCost,
    ShepardDiagram,
    barnes_hut_cost,
    explained_variance,
    kruskal_stress1,
    point_stress,
    raw_stress,
    reconstruction_error,
    residual_variance,
    sammon_stress,
    scale_normalized_stress,
    shepard_correlation,
    shepard_diagram,
)

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

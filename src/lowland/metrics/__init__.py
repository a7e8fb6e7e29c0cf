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

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland.metrics._comparison": "Comparison",
        "lowland.metrics._measured": "Measured Quality QualityRow",
        "lowland.metrics.coranking": """
            RankErrors RnxCurve continuity coranking_matrix lcmc mean_relative_rank_errors
            neighbor_recall point_continuity point_trust rnx_auc rnx_curve trustworthiness
        """,
        "lowland.metrics.dimension": """
            Dimension DistanceConcentration Hubness chance_shares distance_concentration elbow
            hubness intrinsic_dimension
        """,
        "lowland.metrics.gaps": "Gap gap_test inner_gaps",
        "lowland.metrics.hills": "IslandStability island_stability islands",
        "lowland.metrics.home": "MapAgreement PointHome map_agreement point_home",
        "lowland.metrics.labels": "knn_accuracy neighborhood_hit silhouette",
        "lowland.metrics.missing": "chance_of_missing missing_neighbors missing_p_values strangers",
        "lowland.metrics.procrustes": "match_accuracy match_rank match_ranks",
        "lowland.metrics.quality_table": "quality",
        "lowland.metrics.selecting": "SelectionCurve selection_curve",
        "lowland.metrics.stress": """
            BarnesHutCost ShepardDiagram barnes_hut_cost explained_variance kruskal_stress1
            point_stress raw_stress reconstruction_error residual_variance sammon_stress
            scale_normalized_stress shepard_correlation shepard_diagram
        """,
    },
)

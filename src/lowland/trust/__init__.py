"""Where a map can be believed: misplaced points, gaps that are not in the data, stability, chance.

:func:`trust` takes the data and a map of any tool.
"""

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland.trust.plateau": "parameter_plateau perplexity_plateau",
        "lowland.trust.refitting": "RefitPart component_scores null_rows",
        "lowland.trust.result": "Chance Contrast Island OtherMap Plateau Sentence Stability Trust",
        "lowland.trust.trusting": "affordable_rows trust with_refits",
        "lowland.trust.tsne_scores": "perturbation_score singularity_score",
    },
)

"""Where a map can be believed: misplaced points, gaps that are not in the data, stability, chance.

:func:`trust` takes the data and a map of any tool.
"""

from lowland.trust.plateau import parameter_plateau, perplexity_plateau
from lowland.trust.refitting import RefitPart, component_scores, null_rows
from lowland.trust.result import (
    Chance,
    Contrast,
    Island,
    OtherMap,
    Plateau,
    Sentence,
    Stability,
    Trust,
)
from lowland.trust.trusting import affordable_rows, trust, with_refits
from lowland.trust.tsne_scores import perturbation_score, singularity_score

__all__ = [
    "Chance",
    "Contrast",
    "Island",
    "OtherMap",
    "Plateau",
    "RefitPart",
    "Sentence",
    "Stability",
    "Trust",
    "affordable_rows",
    "component_scores",
    "null_rows",
    "parameter_plateau",
    "perplexity_plateau",
    "perturbation_score",
    "singularity_score",
    "trust",
    "with_refits",
]

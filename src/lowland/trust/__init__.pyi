"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland.trust.plateau import parameter_plateau as parameter_plateau
from lowland.trust.plateau import perplexity_plateau as perplexity_plateau
from lowland.trust.refitting import RefitPart as RefitPart
from lowland.trust.refitting import component_scores as component_scores
from lowland.trust.refitting import null_rows as null_rows
from lowland.trust.result import Chance as Chance
from lowland.trust.result import Contrast as Contrast
from lowland.trust.result import Island as Island
from lowland.trust.result import OtherMap as OtherMap
from lowland.trust.result import Plateau as Plateau
from lowland.trust.result import Sentence as Sentence
from lowland.trust.result import Stability as Stability
from lowland.trust.result import Trust as Trust
from lowland.trust.trusting import affordable_rows as affordable_rows
from lowland.trust.trusting import trust as trust
from lowland.trust.trusting import with_refits as with_refits
from lowland.trust.tsne_scores import perturbation_score as perturbation_score
from lowland.trust.tsne_scores import singularity_score as singularity_score

"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland.selection.anova_f import AnovaF as AnovaF
from lowland.selection.chi_square import ChiSquare as ChiSquare
from lowland.selection.correlation_score import CorrelationScore as CorrelationScore
from lowland.selection.fisher_score import FisherScore as FisherScore
from lowland.selection.laplacian_score import LaplacianScore as LaplacianScore
from lowland.selection.mrmr import MRMR as MRMR
from lowland.selection.mutual_information import MutualInformation as MutualInformation
from lowland.selection.principal_variables import PrincipalVariables as PrincipalVariables
from lowland.selection.recursive_elimination import RecursiveElimination as RecursiveElimination
from lowland.selection.relief_f import ReliefF as ReliefF
from lowland.selection.sequential_selection import SequentialSelection as SequentialSelection
from lowland.selection.variance_score import VarianceScore as VarianceScore

"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland import datasets as datasets
from lowland import distributed as distributed
from lowland import errors as errors
from lowland import io as io
from lowland import metrics as metrics
from lowland import neighbors as neighbors
from lowland import plot as plot
from lowland import report as report
from lowland import selection as selection
from lowland import study as study
from lowland import trust as trust
from lowland._core.models.loading import load as load
from lowland.alignment.manifold_alignment import ManifoldAlignment as ManifoldAlignment
from lowland.curvilinear.curvilinear_component_analysis import (
    CurvilinearComponentAnalysis as CurvilinearComponentAnalysis,
)
from lowland.curvilinear.curvilinear_distance_analysis import (
    CurvilinearDistanceAnalysis as CurvilinearDistanceAnalysis,
)
from lowland.curvilinear.ddhds import DDHDS as DDHDS
from lowland.curvilinear.local_mds import LocalMDS as LocalMDS
from lowland.curvilinear.rank_visu import RankVisu as RankVisu
from lowland.curvilinear.relational_perspective_map import (
    RelationalPerspectiveMap as RelationalPerspectiveMap,
)
from lowland.curvilinear.tradeoff_mds import TradeoffMDS as TradeoffMDS
from lowland.kernel.kernel_pca import KernelPCA as KernelPCA
from lowland.latent.back_constrained_gplvm import BackConstrainedGPLVM as BackConstrainedGPLVM
from lowland.latent.bayesian_gplvm import BayesianGPLVM as BayesianGPLVM
from lowland.latent.gplvm import GPLVM as GPLVM
from lowland.latent.ppca import PPCA as PPCA
from lowland.linear.lda import LDA as LDA
from lowland.linear.pca import PCA as PCA
from lowland.mds.classical_mds import ClassicalMDS as ClassicalMDS
from lowland.mds.landmark_mds import LandmarkMDS as LandmarkMDS
from lowland.mds.linear_mds import LinearMDS as LinearMDS
from lowland.mds.mds import MDS as MDS
from lowland.mds.nonmetric_mds import NonmetricMDS as NonmetricMDS
from lowland.mds.sammon import Sammon as Sammon
from lowland.metrics.procrustes import procrustes as procrustes
from lowland.neighbor.local_map import LocalMAP as LocalMAP
from lowland.neighbor.pacmap import PaCMAP as PaCMAP
from lowland.neighbor.phate import PHATE as PHATE
from lowland.neighbor.sne import SNE as SNE
from lowland.neighbor.symmetric_sne import SymmetricSNE as SymmetricSNE
from lowland.neighbor.tsne import TSNE as TSNE
from lowland.neighbor.umap import UMAP as UMAP
from lowland.neural.autoencoder import Autoencoder as Autoencoder
from lowland.neural.nonlinear_pca import NonlinearPCA as NonlinearPCA
from lowland.neural.parametric_tsne import ParametricTSNE as ParametricTSNE
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
from lowland.spectral.diffusion_maps import DiffusionMaps as DiffusionMaps
from lowland.spectral.hessian_lle import HessianLLE as HessianLLE
from lowland.spectral.isomap import Isomap as Isomap
from lowland.spectral.laplacian_eigenmaps import LaplacianEigenmaps as LaplacianEigenmaps
from lowland.spectral.lle import LLE as LLE
from lowland.spectral.ltsa import LTSA as LTSA
from lowland.spectral.modified_lle import ModifiedLLE as ModifiedLLE
from lowland.topographic.elastic_map import ElasticMap as ElasticMap
from lowland.topographic.gtm import GTM as GTM
from lowland.topographic.principal_curve import PrincipalCurve as PrincipalCurve
from lowland.topographic.som import SOM as SOM
from lowland.unfolding.diffeomorphic_map import DiffeomorphicMap as DiffeomorphicMap
from lowland.unfolding.manifold_sculpting import ManifoldSculpting as ManifoldSculpting
from lowland.unfolding.mvu import MVU as MVU
from lowland.unfolding.tcie import TCIE as TCIE

__version__: str

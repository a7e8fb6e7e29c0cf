"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland import chunks as chunks
from lowland import datasets as datasets
from lowland import errors as errors
from lowland import metrics as metrics
from lowland import neighbors as neighbors
from lowland import plot as plot
from lowland import report as report
from lowland import selection as selection
from lowland import tables as tables
from lowland import trust as trust
from lowland import workflow as workflow
from lowland._base.models.codec import load as load
from lowland.chunks import open_rows as open_rows
from lowland.methods.alignment.manifold_alignment import ManifoldAlignment as ManifoldAlignment
from lowland.methods.curvilinear.curvilinear_component_analysis import (
    CurvilinearComponentAnalysis as CurvilinearComponentAnalysis,
)
from lowland.methods.curvilinear.curvilinear_distance_analysis import (
    CurvilinearDistanceAnalysis as CurvilinearDistanceAnalysis,
)
from lowland.methods.curvilinear.ddhds import DDHDS as DDHDS
from lowland.methods.curvilinear.local_mds import LocalMDS as LocalMDS
from lowland.methods.curvilinear.rank_visu import RankVisu as RankVisu
from lowland.methods.curvilinear.relational_perspective_map import (
    RelationalPerspectiveMap as RelationalPerspectiveMap,
)
from lowland.methods.curvilinear.tradeoff_mds import TradeoffMDS as TradeoffMDS
from lowland.methods.embedding.local_map import LocalMAP as LocalMAP
from lowland.methods.embedding.pacmap import PaCMAP as PaCMAP
from lowland.methods.embedding.phate import PHATE as PHATE
from lowland.methods.embedding.sne import SNE as SNE
from lowland.methods.embedding.symmetric_sne import SymmetricSNE as SymmetricSNE
from lowland.methods.embedding.tsne import TSNE as TSNE
from lowland.methods.embedding.umap import UMAP as UMAP
from lowland.methods.kernel.kernel_pca import KernelPCA as KernelPCA
from lowland.methods.latent.back_constrained_gplvm import (
    BackConstrainedGPLVM as BackConstrainedGPLVM,
)
from lowland.methods.latent.bayesian_gplvm import BayesianGPLVM as BayesianGPLVM
from lowland.methods.latent.gplvm import GPLVM as GPLVM
from lowland.methods.latent.ppca import PPCA as PPCA
from lowland.methods.linear.lda import LDA as LDA
from lowland.methods.linear.pca import PCA as PCA
from lowland.methods.mds.classical_mds import ClassicalMDS as ClassicalMDS
from lowland.methods.mds.landmark_mds import LandmarkMDS as LandmarkMDS
from lowland.methods.mds.linear_mds import LinearMDS as LinearMDS
from lowland.methods.mds.mds import MDS as MDS
from lowland.methods.mds.nonmetric_mds import NonmetricMDS as NonmetricMDS
from lowland.methods.mds.sammon import Sammon as Sammon
from lowland.methods.neural.autoencoder import Autoencoder as Autoencoder
from lowland.methods.neural.nonlinear_pca import NonlinearPCA as NonlinearPCA
from lowland.methods.neural.parametric_tsne import ParametricTSNE as ParametricTSNE
from lowland.methods.spectral.diffusion_maps import DiffusionMaps as DiffusionMaps
from lowland.methods.spectral.hessian_lle import HessianLLE as HessianLLE
from lowland.methods.spectral.isomap import Isomap as Isomap
from lowland.methods.spectral.laplacian_eigenmaps import LaplacianEigenmaps as LaplacianEigenmaps
from lowland.methods.spectral.lle import LLE as LLE
from lowland.methods.spectral.ltsa import LTSA as LTSA
from lowland.methods.spectral.modified_lle import ModifiedLLE as ModifiedLLE
from lowland.methods.topographic.elastic_map import ElasticMap as ElasticMap
from lowland.methods.topographic.gtm import GTM as GTM
from lowland.methods.topographic.principal_curve import PrincipalCurve as PrincipalCurve
from lowland.methods.topographic.som import SOM as SOM
from lowland.methods.unfolding.diffeomorphic_map import DiffeomorphicMap as DiffeomorphicMap
from lowland.methods.unfolding.manifold_sculpting import ManifoldSculpting as ManifoldSculpting
from lowland.methods.unfolding.mvu import MVU as MVU
from lowland.methods.unfolding.tcie import TCIE as TCIE
from lowland.metrics.procrustes import procrustes as procrustes
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
from lowland.workflow import compare_methods as compare_methods
from lowland.workflow import make_map as make_map
from lowland.workflow import score_map as score_map

__version__: str

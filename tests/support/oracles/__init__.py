"""Naive out-of-sample formulas, one for every registered method.

Each is written from the paper or the docstring: plain loops, the given rows, the parameters and
the fitted map. They share no code with the package. A method without an oracle fails the contract:
write a function of a :class:`HeldOut` in its reference test and name it in the ``WITNESS`` there
(``support.witness``), which enters it into one of these tables.

    PLACES      places of the new rows
    OBJECTIVES  for each new row a function whose minimum is its place, or the place itself
    ROWS_BACK   rows for points of the map, of methods with an ``inverse_transform``
    CLASSES     probabilities of the classes, of methods with a ``predict``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.oracles import (
    curvilinear,
    curvilinear_local_mds,
    curvilinear_rank_visu,
    curvilinear_rpm,
    latent_back_constrained,
    latent_bayesian,
    latent_gplvm,
    linear,
    mds,
    neighbor,
    neighbor_pairs,
    neighbor_phate,
    neighbor_umap,
    neural_autoencoder,
    neural_nlpca,
    spectral,
    topographic_elastic,
    topographic_gtm,
    topographic_principal_curve,
    topographic_som,
    unfolding_diffeomorphic_map,
    unfolding_sculpting,
    unfolding_tcie,
)
from support.oracles.basics import HeldOut

__all__ = ["CLASSES", "OBJECTIVES", "PLACES", "ROWS_BACK", "HeldOut", "oracle_of"]

PLACES: dict[str, Callable] = {
    "PCA": linear.pca,
    "LDA": linear.lda,
    "KernelPCA": linear.kernel_pca,
    "ClassicalMDS": mds.classical_mds,
    "LandmarkMDS": mds.landmark_mds,
    "LinearMDS": linear.linear_mds,
    "Isomap": spectral.isomap,
    "LaplacianEigenmaps": spectral.laplacian_eigenmaps,
    "DiffusionMaps": spectral.diffusion_maps,
    "PHATE": neighbor_phate.one_step_of_the_walk,
    "LLE": spectral.locally_linear,
    "ModifiedLLE": spectral.locally_linear,
    "LTSA": spectral.tangent_plane,
    "HessianLLE": spectral.tangent_plane,
    "DiffeomorphicMap": unfolding_diffeomorphic_map.flow_forward,
    "SOM": topographic_som.grid_places,
    "GTM": topographic_gtm.posterior_places,
    "PrincipalCurve": topographic_principal_curve.nearest_arc,
    "ElasticMap": topographic_elastic.elastic_places,
    "Autoencoder": neural_autoencoder.code,
    "BackConstrainedGPLVM": latent_back_constrained.g_of_rows,
}

OBJECTIVES: dict[str, Callable] = {
    "MDS": mds.point_stress,
    "NonmetricMDS": mds.point_stress,
    "Sammon": mds.point_stress,
    "CurvilinearComponentAnalysis": curvilinear.point_potential,
    "CurvilinearDistanceAnalysis": curvilinear.point_potential,
    "TradeoffMDS": curvilinear.point_potential,
    "DDHDS": curvilinear.symmetric_stress,
    "RelationalPerspectiveMap": curvilinear_rpm.point_energy,
    "RankVisu": curvilinear_rank_visu.point_ranks,
    "SNE": neighbor.point_divergence,
    "SymmetricSNE": neighbor.point_divergence,
    "TSNE": neighbor.point_divergence,
    "UMAP": neighbor_umap.point_loss,
    "PaCMAP": neighbor_pairs.point_loss,
    "LocalMAP": neighbor_pairs.point_loss,
    "LocalMDS": curvilinear_local_mds.point_local_stress,
    "TCIE": unfolding_tcie.point_stress,
    "ManifoldSculpting": unfolding_sculpting.point_error,
    "NonlinearPCA": neural_nlpca.row_errors,
    "BayesianGPLVM": latent_bayesian.row_heights,
    "GPLVM": latent_gplvm.row_densities,
}

ROWS_BACK: dict[str, Callable] = {
    "PCA": linear.pca_back,
    "LDA": linear.lda_back,
    "KernelPCA": linear.kernel_pca_back,
    "LinearMDS": linear.linear_mds_back,
    "CurvilinearComponentAnalysis": curvilinear.cca_back,
    "LLE": spectral.locally_linear_back,
    "ModifiedLLE": spectral.locally_linear_back,
    "LTSA": spectral.locally_linear_back,
    "HessianLLE": spectral.locally_linear_back,
    "DiffeomorphicMap": unfolding_diffeomorphic_map.flow_back,
    "SOM": topographic_som.grid_rows,
    "GTM": topographic_gtm.sheet,
    "PrincipalCurve": topographic_principal_curve.on_the_curve,
    "ElasticMap": topographic_elastic.elastic_back,
    "Autoencoder": neural_autoencoder.decoded,
    "NonlinearPCA": neural_nlpca.curve,
    "BayesianGPLVM": latent_bayesian.expected_rows,
    "BackConstrainedGPLVM": latent_back_constrained.process_mean,
    "GPLVM": latent_gplvm.process_mean,
    "UMAP": neighbor_umap.umap_back,
}

CLASSES: dict[str, Callable] = {"LDA": linear.lda_probabilities}


def oracle_of(method: type, *tables: dict[str, Callable]) -> Any:
    """The oracle of a method from the first table that has one."""
    for table in tables:
        if method.__name__ in table:
            return table[method.__name__]
    raise AssertionError(
        f"{method.__name__} has no naive out-of-sample oracle; write one in its reference test, "
        "from the definition of the method, and name it in the WITNESS there."
    )

"""For every parameter of every method: another value, and the data on which it must show.

``support.held_out`` has the data. A parameter without an entry fails the contract
(``contract/test_every_parameter.py``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from support.held_out import WEIGHTS

__all__ = ["CHANGES", "UNUSED_WITH", "Change", "Nothing"]


KNOWN_PLACES = np.full((36, 2), np.nan)
KNOWN_PLACES[:3] = [[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]


class Change(NamedTuple):
    """Another value of a parameter, beside the parameters ``given`` that make it matter.

    ``shows`` says where: "places" are the map, the new rows, the rows back and the probabilities of
    classes, beyond rounding; "bytes" the same, to the last bit; else the name of an attribute.
    """

    value: Any
    given: dict[str, Any] = {}
    data: str = "rows"
    shows: str = "places"


class Nothing(NamedTuple):
    """A value of a parameter that by promise changes no byte, and the reason."""

    value: Any
    reason: str


FIXED = Nothing(1, "no random numbers are used")
SMALL = Nothing(1, "small problems are solved by LAPACK, without random numbers")
AXES = {"n_components": Change(3)}
MINKOWSKI = {"metric": "minkowski", "metric_params": {"p": 3}}
METRIC = {
    "metric": Change("manhattan"),
    "metric_params": Change({"p": 1}, MINKOWSKI),
}
STRESS = {
    **AXES,
    **METRIC,
    "random_state": Change(1, {"init": "random", "max_iter": 3}),
    "init": Change("random", {"max_iter": 3}),
    "n_init": Change(9, {"init": "random", "max_iter": 3, "random_state": 3}),
    "max_iter": Change(2),
    "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
    "pairs": Change("sparse", {"pairs": "all"}, shows="bytes"),
}
SHORT = {
    **AXES,
    **METRIC,
    "random_state": Change(1, {"init": "random", "max_iter": 3}),
    "init": Change("random", {"max_iter": 3}),
    "max_iter": Change(2),
    "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
}
RADIAL = {**SHORT, "n_neighbors": Change(9), "landmarks": Change(20)}
GRAPH = {
    **AXES,
    **METRIC,
    "n_neighbors": Change(9),
    "on_disconnected": Change("largest", {"n_neighbors": 4}, "clusters"),
}
LOCAL = {
    "n_components": Change(1, data="sheet"),
    "random_state": SMALL,
    "metric": Change("manhattan", data="sheet"),
    "metric_params": Change({"p": 1}, MINKOWSKI, "sheet"),
    "n_neighbors": Change(9, data="sheet"),
    "on_disconnected": Change("largest", {"n_neighbors": 7}, "clusters"),
    "normalize": Change("isometric", {"normalize": "orthonormal"}, "sheet"),
    "tol": Change(1e-20, data="sheet", shows="warning"),
}
DESCENT = {"early_exaggeration_iter": 10, "max_iter": 60}
EMBEDDING = {
    **AXES,
    "perplexity": Change(6.5),
    "random_state": Change(1, {"init": "random"}),
    "n_neighbors": Change(7),
    "early_exaggeration": Change(4.0, {"early_exaggeration": 2.0, **DESCENT}),
    "early_exaggeration_iter": Change(30, {"early_exaggeration": 4.0, **DESCENT}),
    "learning_rate": Change(7.0),
    "max_iter": Change(20),
    "init": Change("spectral"),
    "metric": Change("manhattan"),
    "metric_params": Change({"p": 1}, MINKOWSKI),
    "tol": Change(0.1, {"max_iter": 400}, shows="n_iter_"),
}
PAIRS = {
    **AXES,
    **METRIC,
    "random_state": Change(1),
    "n_neighbors": Change(9),
    "MN_ratio": Change(1.5),
    "FP_ratio": Change(1.0),
    "num_iters": Change((30, 20, 40)),
    "learning_rate": Change(0.5),
    "apply_pca": Change(False, data="many columns"),
    "init": Change("random"),
}
FILTER = {
    "n_features": Change(3),
    "random_state": FIXED,
    "threshold": Change(0.02, {"n_features": None}),
}
WRAPPER = {
    "n_features": Change(3),
    "random_state": Change(1, shows="path_scores_"),
    "estimator": Change(
        LogisticRegression(C=1e-4), {"estimator": LogisticRegression()}, shows="scores_"
    ),
    "cv": Change(3, shows="path_scores_"),
    "scoring": Change("neg_log_loss", shows="path_scores_"),
}

CHANGES: dict[str, dict[str, Change | Nothing]] = {
    "PCA": {
        "n_components": Change(3),
        "random_state": Change(1, {"solver": "randomized"}, shows="bytes"),
        "solver": Change("gram", shows="bytes"),
        "whiten": Change(True),
        "scale": Change(True),
    },
    "LDA": {
        "n_components": Change(1, data="classes"),
        "random_state": FIXED,
        "shrinkage": Change(0.5, data="classes"),
        "priors": Change([0.2, 0.1, 0.7], data="classes"),
        "rule": Change("mahalanobis", data="classes"),
    },
    "KernelPCA": {
        **AXES,
        "random_state": Change(1, {"solver": "nystroem", "n_landmarks": 9}),
        "kernel": Change("laplacian"),
        "gamma": Change(0.02),
        "coef0": Change(0.2, {"kernel": "poly"}),
        "degree": Change(2, {"kernel": "poly"}),
        "solver": Change("nystroem", {"n_landmarks": 9}),
        "n_landmarks": Change(15, {"solver": "nystroem", "n_landmarks": 9}),
        "tol": Change(0.5, {"solver": "krylov"}, shows="bytes"),
        "alpha": Change(0.5, {"kernel": "laplacian"}),
    },
    "ClassicalMDS": {
        **AXES,
        **METRIC,
        "random_state": Change(1, {"spectrum": "top", "metric": "manhattan"}, shows="bytes"),
        "additive_constant": Change(True, {"metric": "precomputed"}, "distances"),
        "spectrum": Change("all", {"spectrum": "top"}, shows="eigenvalues_"),
    },
    "LandmarkMDS": {
        **AXES,
        **METRIC,
        "random_state": Change(1, {"n_landmarks": 9}),
        "n_landmarks": Change(15, {"n_landmarks": 9}),
        "selection": Change("maxmin", {"n_landmarks": 9}),
    },
    "MDS": {**STRESS, "transformation": Change("interval"), "weights": Change(WEIGHTS)},
    "NonmetricMDS": {
        **STRESS,
        "pairs": Nothing("all", "all pairs are used in either case"),
        "ties": Change("secondary", {"metric": "precomputed"}, "known distances"),
    },
    "Sammon": {**STRESS, "power": Change(2)},
    "LocalMDS": {
        **AXES,
        **METRIC,
        "random_state": Change(1, {"init": "random", "max_iter": 3}),
        "init": Change("random", {"max_iter": 3}),
        "max_iter": Change(2),
        "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
        "n_neighbors": Change(9),
        "tau": Change(0.1),
        "on_disconnected": Nothing("raise", "the graph of these rows is connected"),
    },
    "LinearMDS": {**STRESS, "power": Change(0)},
    "ManifoldSculpting": {
        **AXES,
        "random_state": Change(1),
        "n_neighbors": Change(4),
        "scaling": Change(0.9),
        "fixed": Change(KNOWN_PLACES),
        "n_init": Change(1, {"scaling": 0.5, "max_iter": 1000}, shows="n_iter_"),
        "max_iter": Change(3),
    },
    "CurvilinearComponentAnalysis": {**RADIAL, "weighting": Change("sigmoid")},
    "CurvilinearDistanceAnalysis": {
        **RADIAL,
        "weighting": Change("sigmoid"),
        "on_disconnected": Change("largest", {"n_neighbors": 4}, "clusters"),
    },
    "TradeoffMDS": {**RADIAL, "tradeoff": Change(0.6)},
    "DDHDS": {**SHORT, "reach": Change(0.6)},
    "RelationalPerspectiveMap": {
        **AXES,
        **METRIC,
        "random_state": Change(1, {"init": "random"}),
        "init": Change("random"),
        "max_iter": Change(3),
        "rigidity": Change(1.0),
        "aspect": Change(1.5),
    },
    "RankVisu": {
        **AXES,
        **METRIC,
        "random_state": Change(1, {"init": "random", "max_iter": 3}),
        "init": Change("random", {"max_iter": 3}),
        "max_iter": Change(2),
        "n_neighbors": Change(3),
        "max_rank": Change(8),
    },
    "Isomap": {
        **GRAPH,
        "random_state": Change(1, {"landmarks": 9}),
        "radius": Change(1.7),
        "landmarks": Change(9),
    },
    "MVU": {
        **GRAPH,
        "random_state": Change(1, {"landmarks": 20}),
        "slack": Change(0.3),
        "rank": Change(4),
        "landmarks": Change(20),
        "max_iter": Change(2),
        "tol": Change(0.03, {"max_iter": 2000}, shows="n_iter_"),
    },
    "TCIE": {
        **GRAPH,
        "random_state": Change(1, {"landmarks": 20}),
        "criterion": Change("path"),
        "boundary": Change(list(range(1, 36, 5))),
        "boundary_neighbors": Change(5),
        "boundary_threshold": Change(0.5),
        "landmarks": Change(20),
        "max_iter": Change(2),
        "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
    },
    "LaplacianEigenmaps": {
        **GRAPH,
        "random_state": SMALL,
        "weights": Change("binary"),
        "bandwidth": Change(0.5),
    },
    "DiffusionMaps": {
        **GRAPH,
        "random_state": SMALL,
        "n_neighbors": Change(6),
        "alpha": Change(0.0),
        "bandwidth": Change(3.0),
        "time": Change(2.0),
    },
    "LLE": {**LOCAL, "reg": Change(0.1, data="sheet")},
    "ModifiedLLE": {**LOCAL, "reg": Change(0.1, data="sheet")},
    "LTSA": LOCAL,
    "HessianLLE": LOCAL,
    "SNE": EMBEDDING,
    "SymmetricSNE": EMBEDDING,
    "PaCMAP": PAIRS,
    "LocalMAP": {**PAIRS, "low_dist_thres": Change(3.0)},
    "TSNE": {
        **EMBEDDING,
        "exaggeration": Change(2.0),
        "dof": Change(0.5),
        "method": Change("barnes_hut"),
        "angle": Change(0.9, {"method": "barnes_hut"}),
    },
    "UMAP": {
        **AXES,
        "random_state": Change(1, {"init": "random"}),
        "n_neighbors": Change(9),
        "min_dist": Change(0.5),
        "spread": Change(2.0),
        "n_epochs": Change(20),
        "learning_rate": Change(0.3),
        "init": Change("pca"),
        "set_op_mix_ratio": Change(0.4),
        "local_connectivity": Change(2.5),
        "repulsion_strength": Change(0.4),
        "negative_sample_rate": Change(2.0),
        "target_metric": Change("euclidean", data="levels"),
        "target_weight": Change(0.9, data="levels"),
        "density": Change(2.0),
        "a": Change(0.7, {"a": 1.5, "b": 0.9}),
        "b": Change(0.7, {"a": 1.5, "b": 0.9}),
        "disconnection_distance": Change(1.5, shows="isolated_"),
        "metric": Change("manhattan"),
        "metric_params": Change({"p": 1}, MINKOWSKI),
    },
    "PHATE": {
        **AXES,
        **METRIC,
        "random_state": Change(1, {"n_landmarks": 12}),
        "n_neighbors": Change(9),
        "decay": Change(4.0),
        "n_landmarks": Change(12),
        "t": Change(2),
        "gamma": Change(0.0),
        "mds": Change("classical"),
        "max_iter": Change(2),
        "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
    },
    "NonlinearPCA": {
        **AXES,
        "random_state": Change(1),
        "variant": Change("symmetric"),
        "hierarchical": Change(True),
        "circular": Change(1),
        "hidden": Change([5, 4]),
        "activation": Change("elu"),
        "standardize": Change(False),
        "weight_decay": Change(0.01),
        "n_init": Change(1, {"n_init": 8, "random_state": 3}),
        "max_iter": Change(2),
        "tol": Change(0.003, {"max_iter": 200}, shows="n_iter_"),
    },
    "ParametricTSNE": {
        **AXES,
        "random_state": Change(1),
        "perplexity": Change(9.0),
        "max_iter": Change(20),
        "n_epochs": Change(12),
        "hidden": Change([20, 9]),
        "activation": Change("relu"),
        "standardize": Change(True),
        "noise": Change(0.2),
        "weight_decay": Change(0.01),
        "learning_rate": Change(0.003),
    },
    "BackConstrainedGPLVM": {
        **AXES,
        "random_state": Change(1, {"mapping": "network"}),
        "mapping": Change("linear"),
        "width": Change(0.6, {"mapping": "kernel"}),
        "hidden": Change(9, {"mapping": "network"}),
        "kernel": Change("matern32"),
        "bias": Change(False),
        "inference": Change("sparse"),
        "n_inducing": Change(9, {"inference": "sparse"}),
        "max_iter": Change(2),
        "tol": Change(0.003, {"max_iter": 200}, shows="n_iter_"),
    },
    "BayesianGPLVM": {
        **AXES,
        "random_state": Change(1, {"n_inducing": 9}),
        "kernel": Change("linear"),
        "bias": Change(False),
        "inference": Nothing("sparse", "few rows are all trained on"),
        "n_inducing": Change(9, {"kernel": "rbf"}),
        "max_iter": Change(2),
        "tol": Change(0.003, {"max_iter": 200}, shows="n_iter_"),
    },
    "GPLVM": {
        **AXES,
        "random_state": Change(1, {"inference": "sparse", "n_inducing": 8}),
        "kernel": Change("matern32"),
        "bias": Change(False),
        "inference": Change("sparse"),
        "n_inducing": Change(7, {"inference": "sparse", "n_inducing": 15}),
        "init": Change("isomap", data="sheet"),
        "max_iter": Change(2),
        "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
    },
    "GTM": {
        **AXES,
        "random_state": SMALL,
        "n_nodes": Change(9),
        "n_basis": Change(4),
        "width": Change(1.5),
        "alpha": Change(0.1),
        "place": Change("mode"),
        "refinement": Change(1),
        "max_iter": Change(2),
        "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
    },
    "PPCA": {
        "n_components": Change(3, data="gaps"),
        "random_state": FIXED,
        "max_iter": Change(2, data="gaps"),
        "tol": Change(0.03, {"max_iter": 200}, data="gaps", shows="n_iter_"),
    },
    "Autoencoder": {
        **AXES,
        "random_state": Change(1),
        "hidden": Change([6, 5]),
        "activation": Change("elu"),
        "standardize": Change(False),
        "weight_decay": Change(0.01),
        "noise": Change(0.2),
        "sparsity": Change(0.1),
        "tied": Change(True),
        "solver": Change("adam"),
        "max_iter": Change(2),
        "batch_size": Change(7, {"solver": "adam", "max_iter": 3}),
        "learning_rate": Change(0.02, {"solver": "adam", "max_iter": 3}),
        "validation": Change(0.3),
        "patience": Change(3, {"max_iter": 200, "validation": 0.3}, shows="n_iter_"),
    },
    "DiffeomorphicMap": {
        **AXES,
        "random_state": Change(1),
        "width": Change(1.5),
        "penalty": Change(0.01),
        "n_steps": Change(5),
        "landmarks": Change(9),
        "max_iter": Change(2),
        "tol": Change(0.03, {"max_iter": 200}, shows="n_iter_"),
    },
    "SOM": {
        "n_components": Change(1),
        "random_state": Change(1, {"init": "random"}),
        "sides": Change([6, 4]),
        "grid": Change("rectangle"),
        "toroidal": Change(True),
        "neighborhood": Change("bubble"),
        "rule": Change("online"),
        "radius": Change((4.0, 1.0)),
        "max_iter": Change(2),
        "learning_rate": Change(0.1, {"rule": "online"}),
        "places": Change("units"),
        "init": Change("random"),
    },
    "PrincipalCurve": {
        "n_components": Change(2, data="arc"),
        "random_state": Nothing(1, "starts of few rows are compared on all of them"),
        "smoother": Change("kernel"),
        "df": Change(7.0),
        "closed": Change(True),
        "bias_correction": Change(True, data="arc"),
        "init": Change("principal_axis", {"df": 12.0}, data="sheet"),
        "stretch": Change(0.0),
        "n_knots": Change(20, {"df": 7.0}),
        "max_iter": Change(1),
        "tol": Change(1e-9, {"df": 8.0}, shows="n_iter_"),
    },
    "ElasticMap": {
        **AXES,
        "random_state": FIXED,
        "grid": Change("hexagon"),
        "n_nodes": Change(49),
        "stretching": Change(0.05),
        "bending": Change(0.01),
        "n_epochs": Change(2),
        "initial_stiffness": Change(10.0),
        "extrapolate": Change(1),
        "max_iter": Change(2),
        "tol": Change(0.1, shows="n_iter_"),
    },
    "AnovaF": FILTER,
    "ChiSquare": FILTER,
    "CorrelationScore": {**FILTER, "threshold": Change(0.2, {"n_features": None})},
    "FisherScore": FILTER,
    "LaplacianScore": {
        **FILTER,
        "threshold": Change(0.2, {"n_features": None}),
        "n_neighbors": Change(9, shows="scores_"),
        "bandwidth": Change(0.5, shows="scores_"),
    },
    "MRMR": {
        "n_features": Change(3),
        "random_state": FIXED,
        "scheme": Change("quotient", shows="scores_"),
        "cut": Change(0.5, shows="scores_"),
        "target": Change("numbers", data="levels", shows="scores_"),
    },
    "MutualInformation": {
        **FILTER,
        "random_state": Change(1, data="counts", shows="scores_"),
        "n_neighbors": Change(7, shows="scores_"),
        "discrete_features": Change([0, 2], data="counts", shows="scores_"),
        "target": Change("numbers", data="levels", shows="scores_"),
    },
    "PrincipalVariables": {
        "n_features": Change(3),
        "random_state": FIXED,
        "variance": Change(0.999, {"n_features": None}),
        "scale": Change(True, shows="scores_"),
        "rule": Change("loadings", {"n_features": 4}, shows="ranking_"),
    },
    "RecursiveElimination": {**WRAPPER, "step": Change(2, shows="path_sizes_")},
    "ReliefF": {
        **FILTER,
        "threshold": Change(-0.9, {"n_features": None}),
        "random_state": Change(1, {"n_samples": 20}, shows="scores_"),
        "n_neighbors": Change(3, shows="scores_"),
        "n_samples": Change(20, shows="scores_"),
    },
    "SequentialSelection": {
        **WRAPPER,
        "direction": Change("backward", shows="path_sizes_"),
        "floating": Change(True, {"n_features": 4, "cv": 3}, shows="path_scores_"),
        "tol": Change(0.5, {"n_features": None, "direction": "backward"}, shows="path_sizes_"),
    },
    "VarianceScore": FILTER,
    "Preparation": {
        "scale": Change("robust", {"scale": "standard", "missing": "mean"}, "gaps"),
        "missing": Change("mean", {"missing": "median"}, "gaps"),
        "missing_values": Change(["6"], {"missing": "mean", "missing_values": ["5"]}, "counts"),
        "normalize": Change(["log1p"], {"missing": "mean", "normalize": ["l2"]}, "gaps"),
        "order": Change({"size": ["low", "medium", "high"]}, data="mixed"),
        "cyclic": Change({"hour": 24}, data="mixed"),
        "dates": Change(["day"], data="mixed"),
    },
}

# Pairs (a, b): with the other value of a, b is not used or refused, as the documentation says.
UNUSED_WITH: dict[str, set[tuple[str, str]]] = {
    "Isomap": {("radius", "n_neighbors")},
    "LaplacianEigenmaps": {("weights", "bandwidth")},
    "PrincipalCurve": {("closed", "stretch")},
    "UMAP": {
        ("a", "min_dist"),
        ("a", "spread"),
        ("b", "min_dist"),
        ("b", "spread"),
    },
    "TCIE": {("boundary", "boundary_neighbors"), ("boundary", "boundary_threshold")},
    "MDS": {
        ("pairs", "transformation"),
        ("pairs", "weights"),
        ("transformation", "pairs"),
        ("weights", "pairs"),
    },
}

"""Parameters that do not show alone: another value, and the circumstances in which it must show.

Other values of the parameters that are not listed are derived from their constraints
(``support.other_values``); one of them must change the result of a fit with defaults
(``contract/test_every_parameter.py``). ``support.held_out`` has the data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from support.held_out import WEIGHTS

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
MINKOWSKI = {"metric": "minkowski", "metric_params": {"p": 3}}
STRESS = {
    "n_init": Change(9, {"init": "random", "max_iter": 3, "random_state": 3}),
    "pairs": Change("sparse", {"pairs": "all"}, shows="bytes"),
}
LOCAL = {
    "n_components": Change(1, data="sheet"),
    "random_state": SMALL,
    "metric": Change("manhattan", data="sheet"),
    "metric_params": Change({"p": 1}, MINKOWSKI, "sheet"),
    "n_neighbors": Change(9, data="sheet"),
    "normalize": Change("isometric", {"normalize": "orthonormal"}, "sheet"),
    "tol": Change(1e-20, data="sheet", shows="warning"),
}
DESCENT = {"early_exaggeration_iter": 10, "max_iter": 60}
EMBEDDING = {
    "early_exaggeration": Change(4.0, {"early_exaggeration": 2.0, **DESCENT}),
    "early_exaggeration_iter": Change(30, {"early_exaggeration": 4.0, **DESCENT}),
    "tol": Change(0.1, {"max_iter": 400}, shows="n_iter_"),
}
PAIRS = {"apply_pca": Change(False, data="many columns")}
FILTER = {
    "random_state": FIXED,
    "threshold": Change(0.02, {"n_features": None}),
}
WRAPPER = {
    "random_state": Change(1, shows="path_scores_"),
    "estimator": Change(
        LogisticRegression(C=1e-4), {"estimator": LogisticRegression()}, shows="scores_"
    ),
    "cv": Change(3, shows="path_scores_"),
    "scoring": Change("neg_log_loss", shows="path_scores_"),
}

# Where parameters of a common name show that do not show alone, if the method has those given.
CIRCUMSTANCES: dict[str, list[Change]] = {
    "random_state": [
        Change(1, {"init": "random", "max_iter": 3}),
        Change(1, {"init": "random"}),
    ],
    "init": [Change("random", {"max_iter": 3})],
    "metric_params": [Change({"p": 1}, MINKOWSKI)],
    "on_disconnected": [
        Change("largest", {"n_neighbors": 4}, "clusters"),
        Change("largest", {"n_neighbors": 7}, "clusters"),
    ],
    "tol": [Change(0.03, {"max_iter": 200}), Change(0.03, {"max_iter": 2000})],
}

CHANGES: dict[str, dict[str, Change | Nothing]] = {
    "PCA": {
        "random_state": Change(1, {"solver": "randomized"}, shows="bytes"),
        "solver": Change("gram", shows="bytes"),
    },
    "LDA": {
        "random_state": FIXED,
        "priors": Change([0.2, 0.1, 0.7], data="classes"),
    },
    "KernelPCA": {
        "random_state": Change(1, {"solver": "nystroem", "n_landmarks": 9}),
        "coef0": Change(0.2, {"kernel": "poly"}),
        "degree": Change(2, {"kernel": "poly"}),
        "solver": Change("nystroem", {"n_landmarks": 9}),
        "n_landmarks": Change(15, {"solver": "nystroem", "n_landmarks": 9}),
        "tol": Change(0.5, {"solver": "krylov"}, shows="bytes"),
        "alpha": Change(0.5, {"kernel": "laplacian"}),
    },
    "ClassicalMDS": {
        "random_state": Change(1, {"spectrum": "top", "metric": "manhattan"}, shows="bytes"),
        "additive_constant": Change(True, {"metric": "precomputed"}, "distances"),
        "spectrum": Change("all", {"spectrum": "top"}, shows="eigenvalues_"),
    },
    "LandmarkMDS": {
        "random_state": Change(1, {"n_landmarks": 9}),
        "n_landmarks": Change(15, {"n_landmarks": 9}),
        "selection": Change("maxmin", {"n_landmarks": 9}),
    },
    "MDS": {**STRESS, "weights": Change(WEIGHTS)},
    "NonmetricMDS": {
        **STRESS,
        "pairs": Nothing("all", "all pairs are used in either case"),
        "ties": Change("secondary", {"metric": "precomputed"}, "known distances"),
    },
    "Sammon": STRESS,
    "LocalMDS": {"on_disconnected": Nothing("raise", "the graph of these rows is connected")},
    "LinearMDS": STRESS,
    "ManifoldSculpting": {
        "fixed": Change(KNOWN_PLACES),
        "n_init": Change(1, {"scaling": 0.5, "max_iter": 1000}, shows="n_iter_"),
    },
    "Isomap": {"random_state": Change(1, {"landmarks": 9})},
    "TCIE": {
        "random_state": Change(1, {"landmarks": 20}),
        "boundary": Change(list(range(1, 36, 5))),
    },
    "LaplacianEigenmaps": {"random_state": SMALL},
    "DiffusionMaps": {"random_state": SMALL},
    "LLE": {**LOCAL, "reg": Change(0.1, data="sheet")},
    "ModifiedLLE": {**LOCAL, "reg": Change(0.1, data="sheet")},
    "LTSA": LOCAL,
    "HessianLLE": LOCAL,
    "SNE": EMBEDDING,
    "SymmetricSNE": EMBEDDING,
    "PaCMAP": PAIRS,
    "LocalMAP": PAIRS,
    "TSNE": {
        **EMBEDDING,
        "angle": Change(0.9, {"method": "barnes_hut"}),
    },
    "UMAP": {
        "target_metric": Change("euclidean", data="levels"),
        "target_weight": Change(0.9, data="levels"),
        "a": Change(0.7, {"a": 1.5, "b": 0.9}),
        "b": Change(0.7, {"a": 1.5, "b": 0.9}),
        "disconnection_distance": Change(1.5, shows="isolated_"),
    },
    "PHATE": {
        "random_state": Change(1, {"n_landmarks": 12}),
        "n_landmarks": Change(12),
    },
    "NonlinearPCA": {
        "n_init": Change(1, {"n_init": 8, "random_state": 3}),
        "tol": Change(0.003, {"max_iter": 200}, shows="n_iter_"),
    },
    "BackConstrainedGPLVM": {
        "random_state": Change(1, {"mapping": "network"}),
        "width": Change(0.6, {"mapping": "kernel"}),
        "hidden": Change(9, {"mapping": "network"}),
        "n_inducing": Change(9, {"inference": "sparse"}),
        "tol": Change(0.003, {"max_iter": 200}, shows="n_iter_"),
    },
    "BayesianGPLVM": {
        "random_state": Change(1, {"n_inducing": 9}),
        "inference": Nothing("sparse", "few rows are all trained on"),
        "n_inducing": Change(9, {"kernel": "rbf"}),
        "tol": Change(0.003, {"max_iter": 200}, shows="n_iter_"),
    },
    "GPLVM": {
        "random_state": Change(1, {"inference": "sparse", "n_inducing": 8}),
        "n_inducing": Change(7, {"inference": "sparse", "n_inducing": 15}),
        "init": Change("isomap", data="sheet"),
    },
    "GTM": {"random_state": SMALL},
    "Autoencoder": {
        "batch_size": Change(7, {"solver": "adam", "max_iter": 3}),
        "learning_rate": Change(0.02, {"solver": "adam", "max_iter": 3}),
        "patience": Change(3, {"max_iter": 200, "validation": 0.3}, shows="n_iter_"),
    },
    "SOM": {"learning_rate": Change(0.1, {"rule": "online"})},
    "PrincipalCurve": {
        "n_components": Change(2, data="arc"),
        "random_state": Nothing(1, "starts of few rows are compared on all of them"),
        "df": Change(7.0),  # others are too many or too few for a closed curve
        "bias_correction": Change(True, data="arc"),
        "init": Change("principal_axis", {"df": 12.0}, data="sheet"),
        "stretch": Change(0.0),
        "n_knots": Change(20, {"df": 7.0}),
        "max_iter": Change(1),
        "tol": Change(1e-9, {"df": 8.0}, shows="n_iter_"),
    },
    "ElasticMap": {
        "random_state": FIXED,
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

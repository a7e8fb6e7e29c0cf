"""Fitted rows, held-out rows and parameters: the cases in which new rows are placed.

The rows are irregular and no new row equals a fitted one, so that nothing but the formula of the
method can give its place.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np


class Data(NamedTuple):
    X: np.ndarray
    new: np.ndarray
    y: np.ndarray | None = None


def _rows(n: int, p: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    spread = (1.0 + np.arange(p)) ** -0.7
    turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return (rng.gamma(2.0, size=(n, p)) * spread) @ turn + 3 * rng.standard_normal(p)


def _with_far_rows(X: np.ndarray, n_new: int) -> Data:
    """The last rows as new rows, and two of them moved far away."""
    new = X[-n_new:].copy()
    new[-2:] += 3 * (new[-2:] - X[:-n_new].mean(axis=0))
    return Data(X[:-n_new], new)


def _powered(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Dissimilarities that no Euclidean space has: Manhattan distances to the power 1.3."""
    return np.abs(A[:, None] - B[None]).sum(axis=2) ** 1.3


@functools.cache
def data_of(kind: str) -> Data:  # noqa: C901
    """Copies are not made: cases do not modify what they get."""
    X, new, _ = _with_far_rows(_rows(44, 5), 8)
    if kind == "rows":
        return Data(X, new)
    if kind == "many columns":
        return _with_far_rows(_rows(44, 150, seed=4), 8)
    if kind == "gaps":
        gone = np.random.default_rng(5).random((44, 5)) < 0.2
        gone[np.arange(44), np.arange(44) % 5] = False
        return Data(np.where(gone[:36], np.nan, X), np.where(gone[36:], np.nan, new))
    if kind == "distances":
        return Data(_powered(X, X), _powered(new, X))
    if kind == "euclidean distances":
        return Data(*(np.sqrt(((A[:, None] - X[None]) ** 2).sum(axis=2)) for A in (X, new)))
    if kind == "tied distances":  # few levels, values between and beyond them, and unknown ones
        D, T = np.ceil(_powered(X, X) / 4), _powered(new, X) / 4 + 0.3
        T[:4] = np.ceil(T[:4])
        T[4, ::3] = np.nan
        D[3, 9] = D[9, 3] = np.nan
        return Data(D, T)
    if kind == "known distances":
        return Data(np.ceil(_powered(X, X) / 4), np.ceil(_powered(new, X) / 4))
    if kind == "clusters":  # of different sizes; new rows in and between them
        at = np.repeat([0, 1, 2], [20, 14, 10])[:, None] * [7.0, -5.0, 2.0, 0.0, 1.0]
        mixed = np.random.default_rng(3).permutation(44)
        return _with_far_rows((_rows(44, 5, seed=1) + at)[mixed], 8)
    if kind == "clustered distances":
        X, new, _ = data_of("clusters")
        return Data(_powered(X, X), _powered(new, X))
    if kind == "kernel values":
        return Data(*(np.exp(-_powered(A, X) / 20) for A in (X, new)))
    if kind == "sheet":
        rng = np.random.default_rng(5)
        t, h = 4 * rng.random(72), 2 * rng.random(72)
        return _with_far_rows(np.column_stack([np.sin(t), h, np.sign(t - 2) * np.cos(t), t / 9]), 8)
    if kind == "arc":
        rng = np.random.default_rng(6)
        t = 4 * rng.random(64)
        near = np.column_stack([2 * np.cos(t), np.sin(t)]) + 0.1 * rng.standard_normal((64, 2))
        return _with_far_rows(near, 8)
    if kind == "sheet distances":
        X, new, _ = data_of("sheet")
        return Data(_powered(X, X), _powered(new, X))
    if kind == "levels":  # whole numbers, which are classes or a measurement
        return Data(X, new, np.digitize(X[:, 0] * X[:, 1], [-9, -5, -2, 0]))
    if kind in ("classes", "two classes", "wide classes"):
        p = 60 if kind == "wide classes" else 5
        X, new, _ = _with_far_rows(_rows(44, p, seed=2), 8)
        score = X[:, 0] - X[:, 1]
        y = np.array(["b", "a", "c"])[np.digitize(score, np.quantile(score, [0.3, 0.8]))]
        y[::5] = "c"  # classes overlap
        y[y == "c"] = "c" if kind != "two classes" else "a"
        return Data(X, new, y)
    raise AssertionError(f"no data {kind!r}")


def _far(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() + 0.5 * np.abs(a - b).sum())


def _similar(a: np.ndarray, b: np.ndarray) -> float:
    return float((1 + a @ b) ** 2)


_RNG = np.random.default_rng(7)
WEIGHTS = _RNG.gamma(0.5, size=(36, 36)) + 0.01
WEIGHTS = WEIGHTS + WEIGHTS.T
WEIGHTS[2, 5] = WEIGHTS[5, 2] = 0.0

GIVEN = {"metric": "precomputed"}
METRICS = [
    ({"metric": "manhattan"}, "rows"),
    ({"metric": "cosine"}, "rows"),
    ({"metric": "sqeuclidean"}, "rows"),
    ({"metric": "minkowski", "metric_params": {"p": 3}}, "rows"),
    ({"metric": _far}, "rows"),
    (GIVEN, "distances"),
]
STRESS = [
    ({}, "rows"),
    ({"n_components": 1}, "rows"),
    ({"n_components": 3}, "rows"),
    ({"pairs": "sparse"}, "rows"),
    (GIVEN, "tied distances"),
    *METRICS,
]
GRAPH = [
    ({"n_neighbors": 6}, "rows"),
    ({"n_neighbors": 4}, "clusters"),
    ({"n_neighbors": 4, "on_disconnected": "largest"}, "clusters"),
    ({"n_neighbors": 4, "on_disconnected": "largest", **GIVEN}, "clustered distances"),
    ({"n_neighbors": 6, "metric": "manhattan"}, "rows"),
    ({"n_neighbors": 6, "metric": "sqeuclidean"}, "rows"),
    ({"n_neighbors": 6, "metric": "minkowski", "metric_params": {"p": 3}}, "rows"),
    ({"n_neighbors": 6, "metric": _far}, "rows"),
    ({"n_neighbors": 6, **GIVEN}, "distances"),
]
LOCAL = [
    ({"n_neighbors": 7}, "sheet"),
    ({}, "sheet"),
    ({"n_neighbors": 7, "normalize": "orthonormal"}, "sheet"),
    ({"n_neighbors": 7, "normalize": "isometric"}, "sheet"),
    ({"n_neighbors": 7, "n_components": 1}, "sheet"),
    ({"n_neighbors": 8}, "rows"),
    ({"n_neighbors": 7}, "clusters"),
    ({"n_neighbors": 7, "on_disconnected": "largest"}, "clusters"),
    ({"n_neighbors": 7, "on_disconnected": "largest", **GIVEN}, "clustered distances"),
    ({"n_neighbors": 7, "metric": "manhattan"}, "sheet"),
    ({"n_neighbors": 7, "metric": "minkowski", "metric_params": {"p": 3}}, "sheet"),
    ({"n_neighbors": 7, **GIVEN}, "sheet distances"),
    ({"n_neighbors": 8, **GIVEN}, "euclidean distances"),
]
RIDGED = [
    ({"n_neighbors": 7, "reg": 0.3}, "sheet"),
    ({"n_neighbors": 7, "reg": 1e-9}, "rows"),
    ({"n_neighbors": 7, "reg": 0.3, **GIVEN}, "sheet distances"),
]
NEIGHBOR = [
    ({}, "rows"),
    ({"perplexity": 12.0}, "rows"),
    ({"perplexity": [3.0, 12.0]}, "rows"),
    ({"n_neighbors": 9}, "rows"),
    ({"n_components": 1}, "rows"),
    ({"metric": "manhattan"}, "rows"),
    ({"metric": "sqeuclidean"}, "rows"),
    ({"metric": "minkowski", "metric_params": {"p": 3}}, "rows"),
    (GIVEN, "distances"),
]

PAIRS = [
    ({}, "rows"),
    ({"n_neighbors": None}, "rows"),
    ({"n_neighbors": 9, "MN_ratio": 0.0, "FP_ratio": 1.0}, "rows"),
    ({"n_neighbors": 30}, "rows"),
    ({"n_components": 1}, "rows"),
    ({"n_components": 4}, "rows"),
    ({"num_iters": (30, 0, 0), "init": "random"}, "clusters"),
    ({}, "many columns"),
    ({"apply_pca": False}, "many columns"),
    *METRICS,
]
RADIAL = [
    ({}, "rows"),
    ({"n_components": 1}, "rows"),
    ({"n_components": 3}, "rows"),
    ({"n_neighbors": 3}, "rows"),
    ({"landmarks": 20}, "rows"),
    ({"landmarks": 20, **GIVEN}, "distances"),
]
WEIGHTINGS = [({"weighting": weighting}, "rows") for weighting in ("exp", "sigmoid")]

# Parameters and data by the name of the method: every variant of its out-of-sample formula.
CASES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "PCA": [
        ({"n_components": 2}, "rows"),
        ({}, "rows"),
        ({"n_components": 3, "whiten": True}, "rows"),
        ({"n_components": 3, "scale": True}, "rows"),
        ({"n_components": 3, "whiten": True, "scale": True}, "rows"),
        ({"n_components": 2, "solver": "gram"}, "rows"),
        ({"n_components": 2, "solver": "gram", "scale": True, "whiten": True}, "rows"),
        ({"n_components": 2, "solver": "randomized"}, "rows"),
        ({"n_components": 2, "solver": "covariance", "whiten": True}, "wide classes"),
    ],
    "LDA": [
        ({}, "classes"),
        ({}, "two classes"),
        ({"n_components": 1}, "classes"),
        ({"shrinkage": 0.3}, "classes"),
        ({"shrinkage": "auto"}, "classes"),
        ({"priors": [0.2, 0.1, 0.7]}, "classes"),
        ({"priors": [0.9, 0.1]}, "two classes"),
        ({"priors": [0.2, 0.1, 0.7], "shrinkage": 0.5}, "classes"),
        ({"rule": "mahalanobis"}, "classes"),
        ({"rule": "mahalanobis", "priors": [0.2, 0.1, 0.7]}, "classes"),
        ({"shrinkage": 0.2}, "wide classes"),
        ({"shrinkage": "auto"}, "wide classes"),
    ],
    "KernelPCA": [
        ({}, "rows"),
        ({"gamma": 0.05}, "rows"),
        ({"gamma": "median"}, "rows"),
        ({"gamma": "1/p"}, "rows"),
        ({"kernel": "sigmoid", "coef0": 0.3}, "rows"),
        ({"kernel": "laplacian"}, "rows"),
        ({"kernel": "laplacian", "gamma": "median", "alpha": 0.3}, "rows"),
        ({"kernel": "poly"}, "rows"),
        ({"kernel": "poly", "degree": 2, "coef0": 0.5, "gamma": 0.1}, "rows"),
        ({"kernel": "sigmoid", "gamma": 0.001, "coef0": 0.3}, "rows"),
        ({"kernel": "cosine"}, "rows"),
        ({"kernel": "linear"}, "rows"),
        ({"kernel": _similar}, "rows"),
        ({"kernel": "precomputed"}, "kernel values"),
        ({"solver": "krylov", "tol": 1e-9}, "rows"),
        ({"solver": "nystroem", "n_landmarks": 12}, "rows"),
        ({"solver": "nystroem", "n_landmarks": 12, "kernel": "laplacian"}, "rows"),
        ({"solver": "nystroem", "n_landmarks": 12, "kernel": "precomputed"}, "kernel values"),
    ],
    "ClassicalMDS": [
        ({}, "rows"),
        ({"spectrum": "all"}, "rows"),
        ({"spectrum": "top", **GIVEN}, "distances"),
        ({"additive_constant": True}, "rows"),
        ({"additive_constant": True, "metric": "manhattan"}, "rows"),
        ({"additive_constant": True, **GIVEN}, "distances"),
        ({"additive_constant": True, **GIVEN}, "known distances"),
        ({**GIVEN}, "euclidean distances"),
        *METRICS,
    ],
    "LandmarkMDS": [
        ({}, "rows"),
        ({"n_landmarks": 9}, "rows"),
        ({"n_landmarks": 9, "selection": "maxmin"}, "rows"),
        ({"n_landmarks": 9, "metric": "manhattan"}, "rows"),
        ({"n_landmarks": 9, **GIVEN}, "distances"),
        ({"n_landmarks": 9, "selection": "maxmin", **GIVEN}, "distances"),
        *METRICS,
    ],
    "MDS": [
        *STRESS,
        ({"weights": WEIGHTS}, "rows"),
        ({"transformation": "interval"}, "rows"),
        ({"transformation": "interval", "weights": WEIGHTS}, "rows"),
        ({"transformation": "interval", "weights": WEIGHTS, **GIVEN}, "distances"),
        ({"transformation": "interval", **GIVEN}, "tied distances"),
    ],
    "NonmetricMDS": [
        *[case for case in STRESS if "pairs" not in case[0]],
        *[({"ties": ties, **GIVEN}, "tied distances") for ties in ("secondary", "index")],
    ],
    "Sammon": [*STRESS, ({"power": 2}, "rows"), ({"power": 2, **GIVEN}, "tied distances")],
    "RelationalPerspectiveMap": [
        *[case for case in STRESS if "pairs" not in case[0] and case[1] != "tied distances"],
        ({"rigidity": 1.0}, "rows"),
        ({"rigidity": -0.5, "aspect": 1.6}, "rows"),
        ({"rigidity": 0.7, **GIVEN}, "known distances"),
    ],
    "RankVisu": [
        ({"n_neighbors": 5}, "rows"),
        ({"n_neighbors": 5, "max_rank": 12}, "rows"),
        ({"n_neighbors": 40, "max_rank": None}, "rows"),
        ({"n_components": 1}, "rows"),
        ({"n_components": 3}, "rows"),
        (GIVEN, "known distances"),
        *METRICS,
    ],
    "LinearMDS": [
        *[case for case in STRESS if case[0].get("metric") != "precomputed"],
        ({"power": 0}, "rows"),
        ({"power": 2}, "rows"),
    ],
    "CurvilinearComponentAnalysis": [*RADIAL, *WEIGHTINGS, *METRICS],
    "CurvilinearDistanceAnalysis": [
        *RADIAL,
        *WEIGHTINGS,
        *[case for case in GRAPH if case[0].get("n_neighbors") == 6],
        ({"n_neighbors": 4}, "clusters"),
        ({"n_neighbors": 4, "on_disconnected": "largest"}, "clusters"),
        ({"n_neighbors": 4, "on_disconnected": "largest", **GIVEN}, "clustered distances"),
    ],
    "TradeoffMDS": [
        *RADIAL,
        *METRICS,
        *[({"tradeoff": tradeoff}, "rows") for tradeoff in (0.0, 0.5, 1.0)],
    ],
    "DDHDS": [
        *[({"n_components": q}, "rows") for q in (1, 2, 3)],
        *[({"reach": reach}, "rows") for reach in (0.5, 1.0)],
        *METRICS,
    ],
    "Isomap": [
        *GRAPH,
        ({}, "rows"),
        ({"n_neighbors": 6, "n_components": 3}, "rows"),
        ({"radius": 1.7}, "rows"),
        ({"radius": 1.5, "on_disconnected": "largest"}, "clusters"),
        ({"radius": 9.0, **GIVEN}, "distances"),
        ({"landmarks": 9}, "rows"),
        ({"landmarks": 9, "radius": 1.7, "metric": "manhattan"}, "rows"),
        ({"landmarks": 9, "n_neighbors": 4, "on_disconnected": "largest"}, "clusters"),
    ],
    "TCIE": [
        *GRAPH,
        ({}, "rows"),
        ({"n_neighbors": 6, "n_components": 1}, "rows"),
        ({"n_neighbors": 6, "n_components": 3}, "rows"),
        *[
            ({"n_neighbors": 5, "criterion": criterion, **more}, kind)
            for criterion in ("distance", "path", "all")
            for more, kind in (
                ({}, "sheet"),
                ({"boundary_neighbors": 7, "boundary_threshold": 0.6}, "sheet"),
                ({"boundary": list(range(1, 36, 5))}, "rows"),
                ({"landmarks": 20}, "rows"),
            )
        ],
        ({"n_neighbors": 4, "landmarks": 12, "on_disconnected": "largest"}, "clusters"),
    ],
    "LaplacianEigenmaps": [
        *GRAPH,
        ({}, "rows"),
        ({"n_neighbors": 6, "weights": "binary"}, "rows"),
        ({"n_neighbors": 6, "bandwidth": 0.8}, "rows"),
        ({"n_neighbors": 6, "bandwidth": "median"}, "rows"),
        ({"n_neighbors": 4, "on_disconnected": "largest"}, "clusters"),
        ({"n_neighbors": 4, "weights": "binary", "on_disconnected": "largest"}, "clusters"),
        ({"n_neighbors": 6, "n_components": 25}, "rows"),
    ],
    "DiffusionMaps": [
        # a narrow kernel makes eigenvalues of 1 - 1e-9 of components that a bridge joins
        *[case for case in GRAPH if case != ({"n_neighbors": 4}, "clusters")],
        ({"n_neighbors": 4, "bandwidth": 15.0}, "clusters"),
        *METRICS,
        ({}, "rows"),
        *[({"alpha": alpha}, "rows") for alpha in (0.0, 0.5)],
        *[({"time": time}, "rows") for time in (0.0, 0.5, 3.0)],
        ({"bandwidth": 2.5}, "rows"),
        ({"bandwidth": 2.5, "alpha": 0.5, "time": 2.0, "n_components": 3}, "rows"),
        ({"n_neighbors": 6, "alpha": 0.0, "time": 2.0}, "rows"),
        ({"n_neighbors": 6, "alpha": 0.5, "time": 0.0, "bandwidth": 0.8}, "rows"),
    ],
    "LLE": [*LOCAL, *RIDGED],
    "ModifiedLLE": [*LOCAL, *RIDGED],
    "LTSA": LOCAL,
    "HessianLLE": LOCAL,
    "SNE": NEIGHBOR,
    "SymmetricSNE": NEIGHBOR,
    "PaCMAP": PAIRS,
    "LocalMAP": [*PAIRS, ({"low_dist_thres": 3.0}, "clusters")],
    "TSNE": [
        *NEIGHBOR,
        *[({"dof": dof}, "rows") for dof in (0.5, 3.0)],
        ({"exaggeration": 2.0}, "rows"),
        ({"method": "barnes_hut", "angle": 0.2}, "rows"),
        ({"n_components": 4, "method": "exact"}, "rows"),
    ],
    "UMAP": [
        ({}, "rows"),
        ({"n_neighbors": 9, "min_dist": 0.4}, "rows"),
        ({"spread": 2.0, "n_components": 1}, "rows"),
        ({"n_components": 3, "negative_sample_rate": 2.0}, "rows"),
        ({"n_components": 4, "repulsion_strength": 0.5}, "rows"),
        ({"a": 0.9, "b": 1.3, "local_connectivity": 2.5}, "rows"),
        ({"local_connectivity": 0.5, "init": "pca"}, "sheet"),
        ({"n_neighbors": 4}, "clusters"),
        ({"n_neighbors": 4, **GIVEN}, "clustered distances"),
        ({"density": 1.0}, "clusters"),
        ({}, "classes"),
        *METRICS,
    ],
    "PHATE": [
        ({}, "rows"),
        ({"n_neighbors": 3, "decay": 2.0}, "rows"),
        ({"n_neighbors": 4, "decay": None}, "rows"),
        ({"decay": 10.0, "n_landmarks": 12}, "rows"),
        ({"n_neighbors": 3, "decay": None, "n_landmarks": 12}, "clusters"),
        ({"n_neighbors": 4, "t": 3, "n_components": 3}, "clusters"),
        ({"n_neighbors": 60, "decay": 4.0}, "rows"),
        ({"n_neighbors": 4, "decay": 6.0, "n_landmarks": 15, **GIVEN}, "clustered distances"),
        *METRICS,
    ],
    "LocalMDS": [
        ({"n_neighbors": 6}, "rows"),
        ({"n_neighbors": 6, "tau": 0.3}, "rows"),
        ({"n_neighbors": "auto", "tau": 0.02}, "rows"),
        ({"n_neighbors": 6, "tau": 0.1, "n_components": 1}, "rows"),
        ({"n_neighbors": 6, "tau": 0.1, "n_components": 3}, "rows"),
        ({"n_neighbors": 4, "tau": 0.1}, "clusters"),
        ({"n_neighbors": 4, "tau": 0.1, **GIVEN}, "clustered distances"),
        ({"n_neighbors": 7}, "sheet"),
        *[({"n_neighbors": 6, "tau": 0.2, **params}, kind) for params, kind in METRICS],
    ],
    "ManifoldSculpting": [
        ({"n_neighbors": 6}, "rows"),
        ({}, "sheet"),
        ({"n_neighbors": 5, "n_components": 1}, "sheet"),
        ({"n_neighbors": 6, "n_components": 3}, "rows"),
        ({"n_neighbors": 4}, "clusters"),
        ({"n_neighbors": 6, "scaling": 0.9, "max_iter": 30}, "rows"),
    ],
    "NonlinearPCA": [
        ({"max_iter": 60}, "rows"),
        ({"max_iter": 60, "hierarchical": True}, "rows"),
        ({"max_iter": 60, "n_components": 1}, "sheet"),
        (
            {
                "max_iter": 60,
                "n_components": 3,
                "circular": 1,
                "hidden": [7, 5],
                "activation": "sigmoid",
                "hierarchical": True,
            },
            "rows",
        ),
        ({"max_iter": 60, "activation": "elu", "standardize": False}, "sheet"),
        ({"max_iter": 60, "n_components": 1, "circular": 1}, "arc"),
        ({"max_iter": 60, "variant": "symmetric", "hidden": [6, 4]}, "rows"),
        ({"max_iter": 60, "variant": "symmetric", "circular": 1, "activation": "relu"}, "rows"),
        ({"max_iter": 60, "activation": "linear"}, "rows"),
    ],
    "BackConstrainedGPLVM": [
        ({"max_iter": 30}, "rows"),
        ({"max_iter": 30, "width": 0.6, "inference": "sparse", "n_inducing": 9}, "rows"),
        ({"max_iter": 30, "mapping": "network", "hidden": 7, "kernel": "matern52"}, "sheet"),
        ({"max_iter": 30, "mapping": "linear", "kernel": "rbf+linear", "n_components": 3}, "rows"),
        ({"max_iter": 30, "kernel": "linear", "bias": False, "n_components": 1}, "clusters"),
        ({"max_iter": 30, "kernel": "matern32", "inference": "sparse", "n_inducing": 12}, "arc"),
    ],
    "BayesianGPLVM": [
        ({"max_iter": 40, "n_inducing": 9}, "rows"),
        ({"max_iter": 40, "n_inducing": 7, "n_components": 1, "bias": False}, "arc"),
        ({"max_iter": 40, "n_inducing": 12, "n_components": 3}, "sheet"),
        ({"max_iter": 40, "kernel": "linear", "inference": "sparse"}, "clusters"),
    ],
    "GPLVM": [
        ({"max_iter": 30}, "rows"),
        ({"max_iter": 30, "kernel": "matern52", "n_components": 1, "bias": False}, "sheet"),
        ({"max_iter": 30, "kernel": "matern32", "init": "isomap"}, "sheet"),
        ({"max_iter": 30, "kernel": "linear", "n_components": 3}, "rows"),
        ({"max_iter": 30, "kernel": "rbf+linear", "inference": "sparse", "n_inducing": 9}, "rows"),
        ({"max_iter": 30, "inference": "sparse", "n_inducing": 12}, "clusters"),
    ],
    "GTM": [
        ({"max_iter": 20}, "rows"),
        ({"max_iter": 20, "place": "mode"}, "rows"),
        ({"max_iter": 20, "n_components": 1}, "rows"),
        ({"max_iter": 20, "n_components": 3, "refinement": 1, "n_nodes": 5}, "rows"),
        ({"max_iter": 20, "n_basis": 4, "width": 1.5, "alpha": 0.1, "n_nodes": 8}, "sheet"),
        ({"max_iter": 20, "n_basis": 1, "n_nodes": 7, "refinement": 2}, "clusters"),
    ],
    "Autoencoder": [
        ({"max_iter": 20}, "rows"),
        ({"max_iter": 20, "activation": "relu", "standardize": False}, "rows"),
        ({"max_iter": 20, "hidden": 5, "activation": "elu", "n_components": 1}, "sheet"),
        ({"max_iter": 20, "hidden": [7, 6, 5], "activation": "sigmoid"}, "clusters"),
        ({"max_iter": 20, "activation": "linear", "n_components": 3}, "rows"),
        ({"max_iter": 20, "tied": True, "solver": "adam", "sparsity": 0.01}, "rows"),
    ],
    "DiffeomorphicMap": [
        ({}, "rows"),
        ({"n_components": 1}, "rows"),
        ({"n_components": 3, "width": 1.5}, "rows"),
        ({"penalty": 0.02, "n_steps": 4, "landmarks": 9}, "rows"),
        ({}, "sheet"),
        ({"n_components": 5}, "rows"),
    ],
    "SOM": [
        ({}, "rows"),
        ({"places": "units"}, "rows"),
        ({"grid": "rectangle"}, "sheet"),
        ({"toroidal": True}, "rows"),
        ({"toroidal": True, "grid": "rectangle", "places": "units"}, "clusters"),
        ({"toroidal": True, "grid": "rectangle"}, "sheet"),
        ({"n_components": 1}, "rows"),
        ({"n_components": 1, "toroidal": True}, "sheet"),
        ({"sides": [9, 8]}, "rows"),
        ({"rule": "online", "neighborhood": "bubble"}, "clusters"),
    ],
    "PrincipalCurve": [
        ({}, "rows"),
        ({"df": 8.0, "stretch": 5.0}, "rows"),
        ({"smoother": "kernel", "df": 6.0, "n_knots": 30}, "sheet"),
        ({"smoother": "lowess", "stretch": 0.0}, "clusters"),
        ({"closed": True, "df": 6.0}, "sheet"),
        ({"closed": True, "bias_correction": True, "n_knots": 40}, "rows"),
        ({"n_components": 2}, "arc"),
        ({"n_components": 2, "closed": True, "n_knots": 25}, "arc"),
    ],
    "ElasticMap": [
        ({"n_nodes": 30, "extrapolate": 2}, "rows"),
        ({"n_nodes": [4, 5], "extrapolate": 0, "stretching": 0.02}, "rows"),
        ({"n_nodes": [4, 5], "extrapolate": 1, "bending": 1e-6, "max_iter": 3}, "rows"),
        ({"n_nodes": 30, "extrapolate": 1, "bending": 0.01, "initial_stiffness": 10}, "sheet"),
        ({"n_components": 1}, "rows"),
        ({"n_components": 3, "n_nodes": 30, "extrapolate": 1, "n_epochs": 1}, "rows"),
        ({"grid": "hexagon", "n_nodes": 20, "extrapolate": 1}, "rows"),
        ({"grid": "ring", "n_components": 1, "n_nodes": 12}, "rows"),
        ({"grid": "cylinder", "n_nodes": 24, "extrapolate": 1, "tol": 0.1}, "rows"),
    ],
}

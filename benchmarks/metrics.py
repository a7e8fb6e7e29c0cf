"""Quality measures beside scikit-learn and ZADU; the difference of their values beside time."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main
from sklearn.manifold import trustworthiness as sklearn_trustworthiness

import lowland
from lowland import metrics

HAS_ZADU = importlib.util.find_spec("zadu") is not None  # else its cases are left out

K = 15


def mnist50(n: int = 70_000) -> np.ndarray:
    """50 components of MNIST; the first two are the map."""
    X = np.load(DATA / "mnist.npz")["X"].astype(np.float32)
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return np.ascontiguousarray(lowland.PCA(50).fit_transform(X)[order].astype(np.float64))


def the_map(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X[:, :2])


def ours(measure: Callable[..., Any], X: np.ndarray, **options: Any) -> Any:
    return measure(X, the_map(X), **options)


def trust(X: np.ndarray) -> float:
    return metrics.trustworthiness(X, the_map(X), K, sample=None)


def trust_of_part(X: np.ndarray) -> float:
    return trust(X[:10_000])


def scikit(X: np.ndarray) -> float:
    return sklearn_trustworthiness(X, the_map(X), n_neighbors=K)


def quality(X: np.ndarray) -> float:
    return metrics.quality(X, the_map(X))["trustworthiness"].value


def quality_of_part(X: np.ndarray) -> float:
    return metrics.quality(X[:10_000], the_map(X[:10_000]))["trustworthiness"].value


def zadu(module: str) -> Any:
    return importlib.import_module(f"zadu.measures.{module}")


def theirs(module: str, entry: str, X: np.ndarray, **options: Any) -> float:
    return zadu(module).measure(X, the_map(X), **options)[entry]


def value(_: np.ndarray, result: Any) -> float:
    return float(result)


def both_sides(X: np.ndarray) -> float:
    """ZADU finds trustworthiness and continuity, and both rank errors, at once; so do we."""
    both = metrics.Comparison(X, the_map(X))
    metrics.continuity(both, None, K)
    return metrics.trustworthiness(both, None, K)


def rank_errors(X: np.ndarray) -> float:
    return 1 - metrics.mean_relative_rank_errors(X, the_map(X), K).false


def labels(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] > 0).astype(int) + 2 * (X[:, 2] > 0)


def hit(X: np.ndarray) -> float:
    return metrics.neighborhood_hit(the_map(X), labels(X), K)


def their_hit(X: np.ndarray) -> float:
    return zadu("neighborhood_hit").measure(the_map(X), labels(X), k=K)["neighborhood_hit"]


def stress(X: np.ndarray) -> float:
    both = metrics.Comparison(X, the_map(X))
    return float(np.sqrt(both.distance_sums().gap2.sum() / both.distance_sums().delta2.sum()))


PAIRS = {
    "trust and continuity": (
        both_sides,
        partial(theirs, "trustworthiness_continuity", "trustworthiness", k=K),
    ),
    "rank errors": (rank_errors, partial(theirs, "mean_relative_rank_error", "mrre_false", k=K)),
    "LCMC": (
        partial(ours, metrics.lcmc, n_neighbors=K),
        partial(theirs, "local_continuity_meta_criteria", "lcmc", k=K),
    ),
    "neighborhood hit": (hit, their_hit),
    "stress": (stress, partial(theirs, "stress", "stress")),
    "scale-normalized stress": (
        partial(ours, metrics.scale_normalized_stress),
        partial(theirs, "scale_normalized_stress", "scale_normalized_stress"),
    ),
    "Pearson": (
        partial(ours, metrics.shepard_correlation, method="pearson"),
        partial(theirs, "pearson_r", "pearson_r"),
    ),
    "Spearman, all pairs": (
        partial(ours, metrics.shepard_correlation, sample=None),
        partial(theirs, "spearman_rho", "spearman_rho"),
    ),
    "Spearman, as by default": (
        partial(ours, metrics.shepard_correlation),
        partial(theirs, "spearman_rho", "spearman_rho"),
    ),
    "non-metric stress, all pairs": (
        partial(ours, metrics.kruskal_stress1, sample=None),
        partial(theirs, "non_metric_stress", "non_metric_stress"),
    ),
}

CASES = [
    Case(
        "trustworthiness 10000 x 50",
        partial(mnist50, 10_000),
        {"lowland": trust, "scikit-learn": scikit},
        value,
        "value",
    ),
    Case(
        "trustworthiness 70000 x 50, exact",
        mnist50,
        {"lowland": trust, "lowland, 10000 rows": trust_of_part},
        value,
        "value",
    ),
    Case(
        "quality 70000 x 50, sampled",
        mnist50,
        {"lowland": quality, "lowland, 10000 rows": quality_of_part},
        value,
        "value",
    ),
]
if HAS_ZADU:
    CASES += [
        Case(
            f"{name} 5000 x 50",
            partial(mnist50, 5_000),
            {"lowland": mine, "ZADU": peer},
            value,
            "value",
        )
        for name, (mine, peer) in PAIRS.items()
    ]

if __name__ == "__main__":
    main(CASES, repeats=3, patience=30.0)

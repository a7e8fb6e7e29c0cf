"""Multidimensional scaling beside scikit-learn, s_gd2 and tapkee: MNIST, two dimensions.

Beside time stands the stress of the final map: raw stress for metric scaling, stress-1 for
non-metric scaling, the sum of the leading eigenvalues for classical scaling. For sparse pairs it is
raw stress on 5 000 rows, relative to that of a dense solution of those rows.
"""

from __future__ import annotations

import functools
import importlib.util
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _harness import DATA, Case, main
from scipy.spatial.distance import pdist, squareform

import lowland


def mnist(n: int, columns: int | None = None) -> np.ndarray:
    X = np.load(DATA / "mnist.npz")["X"][:n].astype(np.float64) / 255
    return X if columns is None else lowland.PCA(columns).fit_transform(X)


# --- metric ---------------------------------------------------------------------------------------


def metric(X: np.ndarray) -> np.ndarray:
    return lowland.MDS(random_state=0).fit_transform(X)


def sklearn_metric(X: np.ndarray) -> np.ndarray:
    from sklearn.manifold import smacof

    D = squareform(pdist(X))
    return smacof(
        D,
        n_components=2,
        n_init=1,
        max_iter=300,
        eps=1e-12,
        random_state=0,
        normalized_stress=False,
    )[0]


def s_gd2_metric(X: np.ndarray) -> np.ndarray:
    import s_gd2

    d = pdist(X)
    start = np.random.default_rng(0).random((len(X), 2))
    return s_gd2.mds_direct(len(X), d, init=start, random_seed=0)


def raw_stress(X: np.ndarray, Y: np.ndarray) -> float:
    return float(lowland.metrics.raw_stress(X, Y, sample=None))


# --- the others -----------------------------------------------------------------------------------


def nonmetric(X: np.ndarray) -> np.ndarray:
    return lowland.NonmetricMDS(random_state=0).fit_transform(X)


def sklearn_nonmetric(X: np.ndarray) -> np.ndarray:
    from sklearn.manifold import smacof

    D = squareform(pdist(X))
    return smacof(
        D, metric=False, n_components=2, n_init=1, max_iter=300, eps=1e-12, random_state=0
    )[0]


def stress1(X: np.ndarray, Y: np.ndarray) -> float:
    return float(lowland.metrics.kruskal_stress1(X, Y, sample=None))


class Given(NamedTuple):
    """Rows and their distances, cut together."""

    X: np.ndarray
    D: np.ndarray

    def __getitem__(self, rows: Any) -> Given:  # type: ignore[override]
        return Given(self.X[rows], np.ascontiguousarray(self.D[rows, rows]))


def with_distances(n: int, columns: int) -> Given:
    X = mnist(n, columns)
    return Given(X, squareform(pdist(X)))


def classical(data: Given) -> np.ndarray:
    return lowland.ClassicalMDS(metric="precomputed", random_state=0).fit_transform(data.D)


def sklearn_classical(data: Given) -> np.ndarray:
    from sklearn.manifold import ClassicalMDS

    return ClassicalMDS(2, metric="precomputed").fit_transform(data.D)


def tapkee_classical(data: Given) -> np.ndarray:
    """From the rows, as its Python interface takes no distances: so they must be few and cheap."""
    import tapkee

    return np.asarray(tapkee.embed(data.X.T, method="mds", target_dimension=2))


def spread(data: Given, Y: np.ndarray) -> float:
    return float(((Y - Y.mean(axis=0)) ** 2).sum())


def sparse_pairs(X: np.ndarray) -> np.ndarray:
    return lowland.MDS(pairs="sparse", random_state=0).fit_transform(X)


@functools.cache
def dense_stress() -> float:
    X = mnist(70_000, 50)[:5_000]
    return raw_stress(X, metric(X))


def relative_stress(X: np.ndarray, Y: np.ndarray) -> float:
    return raw_stress(X[:5_000], Y[:5_000]) / dense_stress()


def with_peers(ours: Any, **peers: Any) -> dict[str, Any]:
    """Those that are installed, by the module's name with _ for -."""
    modules = {"scikit_learn": "sklearn"}
    present = {
        name.replace("scikit_learn", "scikit-learn"): peer
        for name, peer in peers.items()
        if importlib.util.find_spec(modules.get(name, name)) is not None
    }
    return {"lowland": ours, **present}


CASES = [
    Case(
        "metric 2000 x 784",
        partial(mnist, 2_000),
        with_peers(metric, scikit_learn=sklearn_metric, s_gd2=s_gd2_metric),
        raw_stress,
        "raw stress",
    ),
    Case(
        "metric 10000 x 784", partial(mnist, 10_000), {"lowland": metric}, raw_stress, "raw stress"
    ),
    Case(
        "non-metric 1000 x 784",
        partial(mnist, 1_000),
        with_peers(nonmetric, scikit_learn=sklearn_nonmetric),
        stress1,
        "stress-1",
    ),
    Case(
        "classical 5000, distances",
        partial(with_distances, 5_000, 5),
        with_peers(classical, scikit_learn=sklearn_classical, tapkee=tapkee_classical),
        spread,
        "sum of eigenvalues",
    ),
    Case(
        "sparse pairs 70000 x 50",
        partial(mnist, 70_000, 50),
        {"lowland": sparse_pairs},
        relative_stress,
        "stress / dense",
    ),
]

if __name__ == "__main__":
    main(CASES, repeats=3)

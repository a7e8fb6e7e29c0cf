"""Spectral methods on the neighbor graph beside scikit-learn and tapkee, where it is installed.

Isomap: beside time stands the share of the true coordinates' variance that the map leaves after the
best rigid motion (Procrustes). Laplacian eigenmaps and diffusion maps: the largest
|S v - l v| / (1 - l) of the pairs, S the symmetric form of the walk on the graph, found from the
map alone.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
import sklearn.manifold
from _harness import DATA, Case, main

import lowland
from lowland._engines.linalg.procrustes import align
from lowland.datasets import swiss_roll


class Roll(np.ndarray):
    """Rows of a swiss roll that know where they came from."""

    truth: np.ndarray

    def __array_finalize__(self, other: Any) -> None:
        self.truth = getattr(other, "truth", None)


def roll(n: int) -> Roll:
    made = swiss_roll(n, random_state=0)
    X = made.X.view(Roll)
    X.truth = made.truth
    return X


def left_of_truth(X: Roll, Y: np.ndarray) -> float:
    return align(X.truth, Y, scaling=False).disparity


def isomap(X: np.ndarray, k: int = 10, **options: Any) -> np.ndarray:
    return lowland.Isomap(2, n_neighbors=k, random_state=0, **options).fit_transform(np.asarray(X))


def peer_isomap(X: np.ndarray, k: int = 10) -> np.ndarray:
    peer = sklearn.manifold.Isomap(n_components=2, n_neighbors=k, n_jobs=-1)
    return peer.fit_transform(np.asarray(X))


def tapkee(method: str, X: np.ndarray, **options: Any) -> np.ndarray:
    import tapkee  # type: ignore[import-not-found]

    return tapkee.embed(
        np.asfortranarray(np.asarray(X).T),
        method=method,
        num_neighbors=10,
        target_dimension=2,
        **options,
    )


def weights_of(X: np.ndarray, k: int) -> scipy.sparse.csr_matrix:
    """0/1 weights of the union graph, the same for all."""
    graph = lowland.neighbors.knn_graph(np.asarray(X), k).to_csr()
    graph.data = np.ones_like(graph.data, dtype=np.float64)
    return scipy.sparse.csr_matrix(graph.maximum(graph.T))


def eigenmaps(k: int, X: np.ndarray) -> np.ndarray:
    model = lowland.LaplacianEigenmaps(2, n_neighbors=k, weights="binary", random_state=0)
    return model.fit_transform(np.asarray(X))


def peer_eigenmaps(k: int, solver: str, X: np.ndarray) -> np.ndarray:
    """scikit-learn's solver on our graph: its own would be another one.

    By default lobpcg and amg stop at residuals of 0.1; this tolerance leads them below 0.001.
    """
    tol = "auto" if solver == "arpack" else 1e-5
    return sklearn.manifold.spectral_embedding(
        weights_of(X, k), n_components=2, eigen_solver=solver, eigen_tol=tol, random_state=0
    )


def residual(k: int, X: np.ndarray, Y: np.ndarray) -> float:
    W = weights_of(X, k)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    V = np.asarray(Y, dtype=np.float64) * np.sqrt(degrees)[:, None]
    V /= np.linalg.norm(V, axis=0)
    image = (W @ (V / np.sqrt(degrees)[:, None])) / np.sqrt(degrees)[:, None]
    values = (V * image).sum(axis=0)
    return float((np.linalg.norm(image - V * values, axis=0) / (1 - values)).max())


def diffusion(X: np.ndarray, k: int | None = None) -> np.ndarray:
    model = lowland.DiffusionMaps(2, n_neighbors=k, random_state=0)
    model.fit(np.asarray(X))
    return np.array([[model.residual_]])


def mnist(n: int) -> np.ndarray:
    X = np.load(DATA / "mnist.npz")["X"][:n].astype(np.float32) / 255
    return lowland.PCA(50).fit_transform(X)


def isomaps(peers: bool, **ours: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"lowland": partial(isomap, **ours)}
    if peers:
        found["scikit-learn"] = peer_isomap
    if peers and importlib.util.find_spec("tapkee"):
        found["tapkee"] = partial(tapkee, "isomap")
    return found


def embeddings(k: int, solvers: list[str]) -> dict[str, Any]:
    there = [solver for solver in solvers if solver != "amg" or importlib.util.find_spec("pyamg")]
    peers = {f"scikit-learn {solver}": partial(peer_eigenmaps, k, solver) for solver in there}
    return {"lowland": partial(eigenmaps, k), **peers}


def reported(X: np.ndarray, Y: np.ndarray) -> float:
    return float(Y[0, 0])


CASES = [
    Case("isomap roll 5000", partial(roll, 5_000), isomaps(True), left_of_truth, "disparity"),
    Case("isomap roll 20000", partial(roll, 20_000), isomaps(False), left_of_truth, "disparity"),
    Case(
        "isomap roll 100000, 1000 landmarks",
        partial(roll, 100_000),
        isomaps(False, landmarks=1000),
        left_of_truth,
        "disparity",
    ),
    *(
        Case(
            f"laplacian eigenmaps roll {n}",
            partial(roll, n),
            embeddings(10, ["arpack"]),
            partial(residual, 10),
            "residual",
        )
        for n in (10_000, 20_000)
    ),
    *(
        Case(
            f"laplacian eigenmaps mnist {n}",
            partial(mnist, n),
            # arpack's factors of the larger graph take more than ten minutes
            embeddings(15, ["arpack", "lobpcg", "amg"] if n <= 10_000 else ["lobpcg", "amg"]),
            partial(residual, 15),
            "residual",
        )
        for n in (10_000, 70_000)
    ),
    *(
        Case(name, load, {"lowland": partial(diffusion, k=k)}, reported, "residual")
        for name, load, k in (
            ("diffusion maps roll 10000, k = 10", partial(roll, 10_000), 10),
            ("diffusion maps mnist 70000, k = 15", partial(mnist, 70_000), 15),
            ("diffusion maps roll 10000, all pairs", partial(roll, 10_000), None),
            ("diffusion maps mnist 5000, all pairs", partial(mnist, 5_000), None),
        )
    ),
]

if __name__ == "__main__":
    main(CASES, repeats=3)

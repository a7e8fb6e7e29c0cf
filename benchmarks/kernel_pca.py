"""Kernel PCA beside scikit-learn's iterative solvers: fit and map, rbf kernel, ten components.

Beside time stand the sine of the largest angle between the subspace found and that of a solution to
1e-10 in double precision, and the peak of memory. scikit-learn's "dense" solver is left out: at
5 000 rows it takes a minute.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

import numpy as np
import sklearn.decomposition
from _harness import DATA, Case, main

import lowland

N_COMPONENTS = 10


def width_of(X: np.ndarray) -> float:
    """gamma from the median distance of some pairs, the same for all candidates."""
    sample = X[:600].astype(np.float64)
    squares = ((sample[::2, None] - sample[None, 1::2]) ** 2).sum(axis=2)
    return float(0.5 / np.median(squares))


def ours(X: np.ndarray) -> np.ndarray:
    return lowland.KernelPCA(N_COMPONENTS, gamma=width_of(X), random_state=0).fit_transform(X)


def theirs(solver: str, X: np.ndarray) -> np.ndarray:
    gamma = width_of(X)
    peer = sklearn.decomposition.KernelPCA(
        N_COMPONENTS, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0, n_jobs=-1
    )
    return peer.fit_transform(X)


def candidates(solvers: list[str]) -> dict[str, Any]:
    return {
        "lowland": ours,
        **{f"scikit-learn {solver}": partial(theirs, solver) for solver in solvers},
    }


@functools.cache
def reference(n: int, first: float) -> np.ndarray:
    """An orthonormal basis of the subspace, much more precise than any candidate's."""
    X = LOADED[n, first]
    exact = lowland.KernelPCA(
        N_COMPONENTS, gamma=width_of(X), solver="krylov", tol=1e-10, random_state=1
    )
    return np.linalg.qr(exact.fit_transform(X))[0]


LOADED: dict[tuple[int, float], np.ndarray] = {}


def error(X: np.ndarray, Y: np.ndarray) -> float:
    """The sine of the largest angle between two subspaces of R^n."""
    key = len(X), float(X[0, 0])
    LOADED[key] = X
    U, Q = reference(*key), np.linalg.qr(np.asarray(Y, dtype=np.float64))[0]
    return float(np.linalg.norm(Q - U @ (U.T @ Q), 2))


def clusters(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = 2 * rng.standard_normal((12, 50))
    return centers[rng.integers(0, 12, n)] + rng.standard_normal((n, 50))


def mnist(n: int) -> np.ndarray:
    X = np.load(DATA / "mnist.npz")["X"][:n].astype(np.float64) / 255
    return lowland.PCA(50).fit_transform(X)


BOTH = ["arpack", "randomized"]
CASES = [
    Case("clusters 5000 x 50", partial(clusters, 5_000), candidates(BOTH), error, "sine"),
    Case("mnist 5000 x 50", partial(mnist, 5_000), candidates(BOTH), error, "sine"),
    Case("clusters 20000 x 50", partial(clusters, 20_000), candidates(BOTH), error, "sine"),
    Case("mnist 20000 x 50", partial(mnist, 20_000), candidates(BOTH), error, "sine"),
    Case("clusters 50000 x 50", partial(clusters, 50_000), candidates([]), error, "sine"),
]

if __name__ == "__main__":
    main(CASES, repeats=5)

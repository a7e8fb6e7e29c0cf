"""PCA beside scikit-learn (every solver) and scikit-learn-intelex: fit and transform."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
import sklearn.decomposition
import sklearnex.decomposition
from _harness import DATA, Case, main

import lowland


def ours(n_components: int, X: Any) -> Any:
    pca = lowland.PCA(n_components, random_state=0)
    return pca, pca.fit_transform(X)


def theirs(cls: type, solver: str, n_components: int, X: Any) -> Any:
    pca = cls(n_components, svd_solver=solver, random_state=0)
    return pca, pca.fit_transform(X)


def candidates(n_components: int, solvers: list[str], intel: list[str]) -> dict[str, Any]:
    scikit = sklearn.decomposition.PCA
    return {
        "lowland": partial(ours, n_components),
        **{f"scikit-learn {s}": partial(theirs, scikit, s, n_components) for s in solvers},
        **{
            f"scikit-learn-intelex {s}": partial(
                theirs, sklearnex.decomposition.PCA, s, n_components
            )
            for s in intel
        },
    }


def unexplained(X: Any, result: Any) -> float:
    """Share of the variance the axes leave, 1 - sum |z|^2 / sum |x - m|^2; lower is better."""
    Y = np.asarray(result[1], dtype=np.float64)
    if scipy.sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        total = (X.data.astype(np.float64) ** 2).sum() - X.shape[0] * (mean**2).sum()
    else:
        total = X.shape[0] * X.var(axis=0, dtype=np.float64).sum()
    return 1 - (Y**2).sum() / total


def mnist() -> np.ndarray:
    return np.load(DATA / "mnist.npz")["X"].astype(np.float32)


def tall() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 100), dtype=np.float32)
    X *= np.linspace(3, 0.5, 100, dtype=np.float32)
    return X


def wide() -> np.ndarray:
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((2_000, 60)) * np.linspace(9, 1, 60)
    X = factors @ rng.standard_normal((60, 20_000)) + rng.standard_normal((2_000, 20_000)) * 5
    return X.astype(np.float32)


def newsgroups() -> Any:
    return scipy.sparse.load_npz(DATA / "newsgroups20_bow.npz").tocsr().astype(np.float64)


DENSE = ["covariance_eigh", "randomized", "arpack", "full"]
CASES = [
    Case(
        "mnist 70000 x 784, 50 axes",
        mnist,
        candidates(50, DENSE, ["covariance_eigh"]),
        unexplained,
        "unexplained",
    ),
    Case(
        "tall 1000000 x 100, 10 axes",
        tall,
        candidates(10, DENSE, ["covariance_eigh"]),
        unexplained,
        "unexplained",
    ),
    Case(
        "wide 2000 x 20000, 50 axes",
        wide,
        candidates(50, ["randomized", "arpack", "full"], []),
        unexplained,
        "unexplained",
    ),
    Case(
        "sparse 20 newsgroups 18774 x 61188, 50 axes",
        newsgroups,
        candidates(50, ["arpack"], []),
        unexplained,
        "unexplained",
    ),
]

if __name__ == "__main__":
    main(CASES)

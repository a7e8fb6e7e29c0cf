"""Tables of the literature, and the naive definitions of stress."""

import numpy as np
import pytest

from lowland import datasets


@pytest.fixture
def eurodist():
    """Names of the cities, and their distances."""
    data = datasets.eurodist()
    return list(data.row_names), data.X


@pytest.fixture
def swiss():
    """47 provinces x 5: all columns but fertility."""
    return datasets.swiss().X[:, 1:]


@pytest.fixture
def naive_stress():
    """A function (D, Y, weights, power) -> sum over i < j of w (delta - d)^2 / delta^power."""

    def stress(D, Y, weights=None, power=0):
        total = 0.0
        for i in range(len(D)):
            for j in range(i + 1, len(D)):
                w = 1.0 if weights is None else weights[i, j]
                if np.isnan(D[i, j]) or w == 0 or (power and D[i, j] == 0):
                    continue
                gap = D[i, j] - np.linalg.norm(Y[i] - Y[j])
                total += w * gap**2 / D[i, j] ** power
        return total

    return stress


@pytest.fixture
def distances():
    def of(X):
        return np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))

    return of

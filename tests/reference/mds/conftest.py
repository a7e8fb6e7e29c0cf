"""Data of the literature, where they are present, and the naive definitions of stress."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

DATA = Path(os.environ.get("LOWLAND_DATA", Path(__file__).resolve().parents[3] / "../shared/data"))


def table(name):
    """Names of the rows and the numbers of a small table, or a skipped test."""
    file = DATA / "small" / f"{name}.csv"
    if not file.exists():
        pytest.skip(f"{file} is absent; name its folder in LOWLAND_DATA")
    _, *lines = csv.reader(file.read_text().splitlines())
    return [line[0] for line in lines], np.array([[float(v) for v in line[1:]] for line in lines])


@pytest.fixture
def small_table():
    return table


@pytest.fixture
def eurodist():
    return table("eurodist")


@pytest.fixture
def swiss():
    """47 provinces x 5: all columns but fertility."""
    return table("swiss")[1][:, 1:]


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

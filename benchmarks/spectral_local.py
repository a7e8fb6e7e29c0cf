"""LLE and its relatives beside scikit-learn and tapkee: fit and map of a swiss roll, 12 neighbors.

Beside time stands the share of the truth's variance that no affine image of the map explains.
tapkee is left out where it is not installed, and has no ModifiedLLE. scikit-learn's "hessian" is
LTSA in effect (see the reference tests).
"""

from __future__ import annotations

import importlib.util
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _harness import Case, main
from sklearn.manifold import LocallyLinearEmbedding

import lowland

N_NEIGHBORS = 12


class Roll(NamedTuple):
    """What is given and what is looked for, cut together."""

    X: np.ndarray
    truth: np.ndarray

    def __getitem__(self, rows: Any) -> Roll:  # type: ignore[override]
        return Roll(*(part[rows] for part in tuple(self)))


def roll(n: int) -> Roll:
    made = lowland.datasets.swiss_roll(n, random_state=0)
    assert made.truth is not None
    return Roll(made.X, made.truth)


def ours(name: str, data: Roll) -> np.ndarray:
    method = getattr(lowland, name)
    return method(2, n_neighbors=N_NEIGHBORS, random_state=0, n_jobs=2).fit_transform(data.X)


def scikit_learn(method: str, data: Roll) -> np.ndarray:
    peer = LocallyLinearEmbedding(
        n_neighbors=N_NEIGHBORS, n_components=2, method=method, random_state=0, n_jobs=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.fit_transform(data.X)


def tapkee(method: str, data: Roll) -> np.ndarray:
    import tapkee as peer

    rows = np.asfortranarray(data.X.T)
    return peer.embed(rows, method, num_neighbors=N_NEIGHBORS, target_dimension=2)


def error(data: Roll, Y: np.ndarray) -> float:
    A = np.column_stack([Y, np.ones(len(Y))])
    rest = data.truth - A @ np.linalg.lstsq(A, data.truth)[0]
    return float((rest**2).sum() / ((data.truth - data.truth.mean(axis=0)) ** 2).sum())


def candidates(name: str, theirs: str | None, other: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"lowland": partial(ours, name)}
    if theirs is not None:
        found["scikit-learn"] = partial(scikit_learn, theirs)
    if other is not None and importlib.util.find_spec("tapkee") is not None:
        found["tapkee"] = partial(tapkee, other)
    return found


def case(name: str, n: int, theirs: str | None = None, other: str | None = None) -> Case:
    who = candidates(name, theirs, other)
    return Case(f"{name} {n}", partial(roll, n), who, error, "affine error")


CASES = [
    case("LLE", 10_000, "standard", "lle"),
    case("LTSA", 5_000, "ltsa", "ltsa"),
    case("HessianLLE", 5_000, "hessian", "hlle"),
    case("ModifiedLLE", 5_000, "modified"),
    case("LLE", 50_000),
    case("LTSA", 50_000),
    case("HessianLLE", 50_000),
    case("ModifiedLLE", 50_000),
]

if __name__ == "__main__":
    main(CASES, repeats=3)

"""Where new rows belong in a relational perspective map."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut, distances_of


def point_energy(task: HeldOut) -> list[Callable[[np.ndarray], np.ndarray] | np.ndarray]:
    """For each new row its energy sum_j delta_j / (p d_j^p) on the torus, or its place if known."""
    p, sides = task.params["rigidity"], np.ones(task.Y.shape[1])
    sides[0] = task.params["aspect"]
    Y = task.Y.astype(float)

    def energy(Z: np.ndarray, delta: np.ndarray) -> np.ndarray:
        found = []
        for z in np.mod(Z, sides):
            along = abs(z - Y)
            d = np.minimum(along, sides - along).sum(axis=1).clip(1e-6 * sides.sum() / 2)
            found.append((-delta * np.log(d) if p == 0 else delta / (p * d**p)).sum())
        return np.array(found)

    places: list[Callable[[np.ndarray], np.ndarray] | np.ndarray] = []
    for delta in distances_of(task)[1]:
        if (delta == 0).any():
            same = np.flatnonzero(delta == 0)
            places.append(Y[same[energy(Y[same], delta).argmin()]])
        else:
            places.append(lambda Z, delta=delta: energy(Z, delta))
    return places

"""Generative topographic mapping: posteriors of new rows, node by node, and the sheet itself."""

from __future__ import annotations

import itertools

import numpy as np

from support.oracles.basics import HeldOut


def _points(side: int, q: int) -> list[np.ndarray]:
    """A regular grid in [-1, 1]^q, the last coordinate fastest."""
    axis = [-1 + 2 * i / (side - 1) for i in range(side)] if side > 1 else [0.0]
    return [np.array(z) for z in itertools.product(axis, repeat=q)]


def _n_basis(task: HeldOut, q: int) -> int:
    if task.params["n_basis"] != "auto":
        return task.params["n_basis"]
    return min(max(2, round((len(task.X) / 10) ** (1 / q))), {1: 20, 2: 10, 3: 5}[q])


def _at(task: HeldOut, z: np.ndarray) -> np.ndarray:
    """y(z): the mean of the columns, Gaussians, coordinates and a constant with their weights."""
    q, W = len(z), task.model.weights_
    m = _n_basis(task, q)
    width = task.params["width"] * 2 / max(1, m - 1)
    values = [np.exp(-sum((z - c) ** 2) / (2 * width**2)) for c in _points(m, q)]
    y = np.nanmean(task.X, axis=0)
    for value, w in zip([*values, *z, 1.0], W, strict=True):
        y = y + value * w
    return y


def posterior_places(task: HeldOut) -> np.ndarray:
    """p(z | x) is proportional to exp(-|x - y(z)|^2 / (2 noise^2)) on the finer grid."""
    q = task.Y.shape[1]
    side = task.params["n_nodes"]
    side = {1: 100, 2: 20, 3: 9}[q] if side == "auto" else side
    Z = _points((side - 1) * task.params["refinement"] + 1, q)
    sheet_rows = [_at(task, z) for z in Z]
    places = []
    for x in task.new:
        squares = np.array([np.nansum((x - y) ** 2) for y in sheet_rows])
        p = np.exp(-(squares - squares.min()) / (2 * task.model.noise_**2))
        if task.params["place"] == "mode":
            places.append(Z[int(p.argmax())])
        else:
            places.append(sum(w * z for w, z in zip(p / p.sum(), Z, strict=True)))
    return np.array(places)


def sheet(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    return np.array([_at(task, z) for z in Z])

"""Nonlinear PCA: the error of a network whose minimum is a place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support.oracles.basics import HeldOut
from support.oracles.neural_network import network


def _scales(task: HeldOut) -> np.ndarray:
    deviations = np.std(task.X, axis=0, ddof=1)
    if not task.params["standardize"]:
        return np.full(len(deviations), np.sqrt(np.mean(deviations**2)))
    return deviations


def _hidden(task: HeldOut) -> list[int]:
    q, given = task.Y.shape[1], task.params["hidden"]
    if given == "auto":
        return [min(4 + 8 * q, max(2 + 2 * q, len(task.X) // 8))]
    return list(np.atleast_1d(given))


def _decoded(task: HeldOut, Z: np.ndarray, m: int) -> np.ndarray:
    """Standardized rows of places, whose components after the m-th are switched off."""
    c, q = task.params["circular"], Z.shape[1]
    units = []
    for k in range(q):
        on = 1.0 if k < m else 0.0
        units += [on * np.cos(Z[:, k]), on * np.sin(Z[:, k])] if k < c else [on * Z[:, k]]
    sizes = [q + c, *_hidden(task)[::-1], task.X.shape[1]]
    weights = task.model.decoder_weights_
    return network(np.column_stack(units), weights, sizes, task.params["activation"])


def curve(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    return np.mean(task.X, axis=0) + _scales(task) * _decoded(task, Z, Z.shape[1])


def row_errors(task: HeldOut) -> list[Callable]:
    """Errors of the sub-networks and the ridge; or the distance from what an encoder says."""
    q, c = task.Y.shape[1], task.params["circular"]
    S = (task.new - np.mean(task.X, axis=0)) / _scales(task)
    stages = range(1, q + 1) if task.params["hierarchical"] else [q]
    if task.params["variant"] == "symmetric":
        sizes = [task.X.shape[1], *_hidden(task), q + c]
        A = network(S, task.model.encoder_weights_, sizes, task.params["activation"])
        angles = [np.arctan2(A[:, 2 * k + 1], A[:, 2 * k]) for k in range(c)]
        places = np.column_stack([*angles, A[:, 2 * c :]])
        return [lambda Z, at=at: 1e-4 + np.sum((Z - at) ** 2, axis=1) for at in places]

    def error(Z: np.ndarray, x: np.ndarray) -> np.ndarray:
        squares = [np.nansum((x - _decoded(task, Z, m)) ** 2, axis=1) for m in stages]
        return np.mean(squares, axis=0) + np.sum(task.model.ridge_ * Z**2, axis=1)

    return [lambda Z, x=x: error(Z, x) for x in S]

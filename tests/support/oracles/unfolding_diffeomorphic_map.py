"""Where a flow of sums of Gaussians carries new rows, and where points of the map come from."""

from __future__ import annotations

import numpy as np
from scipy.optimize import root

from support.oracles.basics import HeldOut


def _axes(task: HeldOut) -> tuple[np.ndarray, np.ndarray]:
    """The mean, and the principal axes in columns, the largest entry of each positive."""
    X = np.asarray(task.X, float)
    mean = X.mean(axis=0)
    scatter = sum(np.outer(x - mean, x - mean) for x in X)
    axes = np.linalg.eigh(scatter)[1][:, ::-1]
    for axis in axes.T:
        axis *= np.sign(axis[np.abs(axis).argmax()])
    return mean, axes[:, : len(task.model.axes_)]


def _velocity(x: np.ndarray, centers: list, weights: np.ndarray, width: float) -> np.ndarray:
    found = np.zeros(len(x))
    for c, a in zip(centers, weights, strict=True):
        found += np.exp(-sum((x - c) ** 2) / (2 * width**2)) * a
    return found


def _centers(task: HeldOut) -> list[list[np.ndarray]]:
    """The centers are carried by the flow, too: their paths from their places at time 0."""
    centers, paths = list(task.model.center_paths_[0]), []
    h = 1 / len(task.model.weights_)
    for weights in task.model.weights_:
        paths.append(centers)
        centers = [c + h * _velocity(c, centers, weights, task.model.width_) for c in centers]
    return paths


def flow_forward(task: HeldOut) -> np.ndarray:
    """x(t + h) = x(t) + h sum_j exp(-|x - c_j|^2 / 2 s^2) a_j from the principal coordinates."""
    mean, axes = _axes(task)
    paths, h, places = _centers(task), 1 / len(task.model.weights_), []
    for row in task.new:
        x = (row - mean) @ axes
        for centers, weights in zip(paths, task.model.weights_, strict=True):
            x = x + h * _velocity(x, centers, weights, task.model.width_)
        places.append(x[: task.Y.shape[1]])
    return np.array(places)


def flow_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """From the plane, each step undone by a solver of equations."""
    mean, axes = _axes(task)
    paths, h, rows = _centers(task), 1 / len(task.model.weights_), []
    for z in Z:
        x = np.zeros(axes.shape[1])
        x[: len(z)] = z
        steps = list(zip(paths, task.model.weights_, strict=True))
        for centers, weights in reversed(steps):

            def gap(y, x=x, centers=centers, weights=weights):
                return y + h * _velocity(y, centers, weights, task.model.width_) - x

            x = root(gap, x, tol=1e-13).x
        rows.append(mean + axes @ x)
    return np.array(rows)

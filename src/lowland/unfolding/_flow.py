"""Flows of velocity fields that are sums of Gaussians: forward, backward, energy and gradient.

All coordinates are in units of the width of the kernel, k(x, y) = exp(-|x - y|^2 / 2). The time
from 0 to 1 has T steps of length h = 1 / T, in each of which the field is constant:

    x(t + h) = x(t) + h f_t(x(t)),    f_t(x) = sum_j k(x, c_j(t)) a_j(t),
    |f_t|^2  = sum_ij a_i(t) . a_j(t) k(c_i(t), c_j(t)),

and |f_t(x) - f_t(y)| <= |f_t| |x - y|, so that a step with h |f_t| < 1 is one to one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland import _native

MOST_ITERATIONS = 400  # of the inverse of a step; where h |f_t| = 0.9 each gains a tenth
CLOSE = 1e-14  # what the last of them may move, relative to the coordinates


class Flow(NamedTuple):
    """Centers c and weights a of the field in each step, both (T, m, D)."""

    centers: np.ndarray
    weights: np.ndarray


def field(Z: np.ndarray, centers: np.ndarray, weights: np.ndarray, threads: int) -> np.ndarray:
    """sum_j k(z, c_j) a_j for the rows z of Z, each independent of the others."""
    sums, nothing = np.empty_like(Z), np.empty((0, Z.shape[1]))
    _native.gaussian_field(Z, nothing, centers, weights, sums, nothing, threads)
    return sums


def pulled(
    Z: np.ndarray, B: np.ndarray, centers: np.ndarray, weights: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The field f at the rows z of Z, and the gradient of b . f(z) by z."""
    sums, pulls = np.empty_like(Z), np.empty_like(Z)
    _native.gaussian_field(Z, B, centers, weights, sums, pulls, threads)
    return sums, pulls


def forward(Z: np.ndarray, flow: Flow, threads: int) -> np.ndarray:
    """Where the flow carries the rows of Z."""
    h = 1 / len(flow.centers)
    for centers, weights in zip(flow.centers, flow.weights, strict=True):
        Z = Z + h * field(Z, centers, weights, threads)
    return Z


def backward(Z: np.ndarray, flow: Flow, threads: int) -> np.ndarray:
    """The rows that the flow carries to Z: x = z - h f(x) is iterated in each step.

    A row rests once it does not move any more, so that it does not depend on its companions.
    """
    h = 1 / len(flow.centers)
    for centers, weights in zip(flow.centers[::-1], flow.weights[::-1], strict=True):
        X, moving = Z.copy(), np.arange(len(Z))
        for _ in range(MOST_ITERATIONS):
            if not moving.size:
                break
            before = X[moving]
            after = Z[moving] - h * field(before, centers, weights, threads)
            X[moving] = after
            size = np.abs(after).max(axis=1)
            moving = moving[np.abs(after - before).max(axis=1) > CLOSE * size]
        Z = X
    return Z


def norms(flow: Flow, threads: int) -> np.ndarray:
    """|f_t| of each step."""
    squares = [
        float(np.sum(weights * field(centers, centers, weights, threads)))
        for centers, weights in zip(flow.centers, flow.weights, strict=True)
    ]
    return np.sqrt(np.maximum(squares, 0.0))


class Journey(NamedTuple):
    """Objective, its gradient by the weights (T, m, D), what is off the plane, and the end."""

    objective: float
    gradient: np.ndarray
    residual: float
    flow: Flow
    Z: np.ndarray


class FlowEnergy:
    """E(a) = (1/n) sum_i |P x_i(1)|^2 + penalty * h sum_t |f_t|^2, P: all axes but the first q.

    The centers are the moving rows number ``chosen`` themselves.
    """

    def __init__(self, X: np.ndarray, chosen: np.ndarray, q: int, threads: int) -> None:
        self.X, self.chosen, self.q, self.threads = X, chosen, q, threads

    def flow_of(self, weights: np.ndarray) -> Flow:
        """The paths of the centers under these weights."""
        return Flow(np.array([Z[self.chosen] for Z in self.places(weights)[:-1]]), weights)

    def places(self, weights: np.ndarray) -> list[np.ndarray]:
        """The rows at the times 0, h, 2 h, ..., 1."""
        places, h = [self.X], 1 / len(weights)
        for a in weights:
            Z = places[-1]
            places.append(Z + h * field(Z, Z[self.chosen], a, self.threads))
        return places

    def residual_of(self, Z: np.ndarray) -> float:
        """(1/n) sum_i |P z_i|^2: what is off the plane."""
        return float(np.sum(Z[:, self.q :] ** 2)) / len(Z)

    def __call__(self, weights: np.ndarray, penalty: float) -> Journey:
        """By the adjoint of the steps, which is exact for them."""
        (n, q), h, chosen = (len(self.X), self.q), 1 / len(weights), self.chosen
        places = self.places(weights)
        residual = self.residual_of(places[-1])
        P = np.zeros_like(self.X)  # the gradient by the places after the step
        P[:, q:] = (2 / n) * places[-1][:, q:]
        energy, gradient = 0.0, np.empty_like(weights)
        for t in reversed(range(len(weights))):
            Z, a = places[t], weights[t]
            C, velocity = Z[chosen], (places[t + 1][chosen] - Z[chosen]) / h
            energy += h * float(np.sum(a * velocity))
            # h |f|^2 is h sum_i a_i . f(c_i): it acts like a force h a_i on the centers
            force = h * P
            force[chosen] += penalty * h * a
            _, by_place = pulled(Z, force, C, a, self.threads)
            by_weight, by_center = pulled(C, a, Z, force, self.threads)
            gradient[t] = by_weight + penalty * h * velocity
            P += by_place
            P[chosen] += by_center
        centers = np.array([Z[chosen] for Z in places[:-1]])
        total = residual + penalty * energy
        return Journey(total, gradient, residual, Flow(centers, weights), places[-1])

"""Descent of a network's own divergence: dKL/dw = sum_i (dF(x_i)/dw)^T dKL/dy_i  at y = F(x).

All rows enter each step, because each y_i feels the repulsion of all others. The rows pass through
the network in blocks, once for y and once more for the gradient, so that the values of hidden
units are never kept for all rows.
"""

from __future__ import annotations

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland._engines.network.adam import Adam
from lowland._engines.network.layers import Network
from lowland._engines.network.passes import apply, backward, forward
from lowland.neural._free_map import FreeMap


def divergence_slope(
    network: Network,
    weights: np.ndarray,
    inputs: np.ndarray,
    free: FreeMap,
    size: float,
    threads: int,
) -> tuple[float, np.ndarray]:
    """KL(P || Q) of the places ``size`` * F(x), and its gradient with respect to the weights."""
    scale = np.float32(size)
    loss, slope = free.slope(scale * apply(network, weights, inputs, threads))
    gradient = np.zeros_like(weights)
    for rows in row_blocks(len(inputs), rows_within(8 * sum(network.sizes))):
        passed = forward(network, weights, inputs[rows], threads)
        slopes = scale * slope[rows]
        gradient += backward(network, weights, passed, slopes, threads, with_x=False).weights
    return loss, gradient


def refine(
    network: Network,
    weights: np.ndarray,
    inputs: np.ndarray,
    free: FreeMap,
    size: float,
    monitor: Monitor,
    threads: int,
    *,
    n_steps: int,
    learning_rate: float,
    weight_decay: float,
) -> tuple[np.ndarray, list[float]]:
    """Weights of the least divergence on the way, and the divergences before and after each step.

    The steps are those of Adam, with a rate that falls to 0 along a cosine.
    """
    adam = Adam(weights.copy(), network.decays())
    scale = np.float32(size)
    loss, gradient = divergence_slope(network, adam.weights, inputs, free, size, threads)
    best, losses = weights.copy(), [loss]
    for step in range(n_steps):
        if monitor.stopped:
            break
        rate = learning_rate * 0.5 * (1 + np.cos(np.pi * step / n_steps))
        adam.step(gradient, rate, weight_decay)
        loss, gradient = divergence_slope(network, adam.weights, inputs, free, size, threads)
        if loss < min(losses):
            best[:] = adam.weights
        losses.append(loss)
        monitor.iteration(
            step + 1, lambda: scale * apply(network, adam.weights, inputs, threads), loss
        )
    return best, losses

"""Training of an autoencoder: its loss for L-BFGS, corrupted rows, a defined code.

    E = mean of (x - g(f(x~)))^2 over all values + decay sum W^2 + sparsity mean |f(x~)|

x~ is x, or x with some values replaced by 0, the mean of standardized columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.linalg.products import row_blocks
from lowland._engines.network.adam import Corruption, Plan, Trained, mean_loss
from lowland._engines.network.layers import (
    Network,
    Pass,
    backward,
    first_weights,
    forward,
    mirrored,
    row_space_cost,
    seen_columns,
)
from lowland._engines.network.quasi_newton import minimize

TOL = 1e-9  # L-BFGS ends when a step lowers the loss by less than this share
BLOCK = 4096  # rows of a pass
NO_VARIANCE = 1e-10  # share of the largest variance of the code, below which an axis is constant


def network_of(p: int, hidden: list[int], q: int, activation: str, tied: bool) -> Network:
    """p - hidden - q - hidden reversed - p; code and output are linear."""
    half = (activation,) * len(hidden) + ("linear",)
    return Network(mirrored((p, *hidden, q)), half + half, tied)


def corruption(share: float) -> Corruption | None:
    """A function that replaces this share of the values of rows by 0; None if the share is 0."""
    if share == 0:
        return None

    def corrupted(rows: np.ndarray, numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(rows.shape, dtype=np.float32) < share, 0, rows)

    return corrupted


class Objective:
    """E and its slopes for the vector of all weights, a sum over blocks of rows."""

    def __init__(
        self, network: Network, seen: np.ndarray, wanted: np.ndarray, plan: Plan, threads: int
    ) -> None:
        self.network, self.plan, self.threads = network, plan, threads
        self.seen, self.wanted = seen, wanted
        self.decays = network.decays()
        self.point, self.error = np.empty(0), np.nan

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        decay, code_size = self.plan.weight_decay, self.network.sizes[self.plan.code]
        slopes, squares, sizes = 2 * decay * self.decays * weights, 0.0, 0.0
        encoder, encoder_weights = self.network.part(weights, 0, self.plan.code)
        sparsity = self.plan.sparsity / (len(self.seen) * code_size)
        for rows in row_blocks(len(self.seen), BLOCK):
            passed = forward(self.network, weights, self.seen[rows], self.threads)
            off = passed.output - self.wanted[rows]
            squares += float(np.sum(off**2))
            slope = 2 / self.wanted.size * off
            slopes += self._slopes(self.network, weights, passed, slope)
            if sparsity:
                code = passed.values[self.plan.code - 1]
                sizes += sparsity * float(np.abs(code).sum())
                half = passed.first(self.plan.code)
                found = self._slopes(encoder, encoder_weights, half, sparsity * np.sign(code))
                slopes[: len(found)] += found  # the encoder's come first
        self.point, self.error = weights.copy(), squares / self.wanted.size
        shrinking = decay * float(np.sum(np.square(weights[self.decays])))
        return self.error + shrinking + sizes, slopes

    def _slopes(
        self, network: Network, weights: np.ndarray, passed: Pass, slope: np.ndarray
    ) -> np.ndarray:
        return backward(network, weights, passed, slope, self.threads, with_x=False).weights

    def error_at(self, weights: np.ndarray) -> float:
        """The mean squared error alone."""
        if not np.array_equal(weights, self.point):
            self(weights)
        return self.error


class _Watch:
    """Sees each step of L-BFGS: keeps the best weights, and stops if they get no better."""

    def __init__(
        self,
        objective: Objective,
        start: np.ndarray,
        held_out: np.ndarray | None,
        run: FitContext,
        show: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self.objective, self.held_out, self.run, self.show = objective, held_out, run, show
        self.losses = [objective.error_at(start)]
        self.held = [self._held_out_error(start)] if held_out is not None else []
        self.best, self.best_step, self.stopped = start, 0, False

    def _held_out_error(self, weights: np.ndarray) -> float:
        rows = self.held_out
        assert rows is not None
        network, threads = self.objective.network, self.run.threads
        return mean_loss(network, weights, rows, rows, threads)

    def iteration(
        self, step: int, weights: Callable[[], np.ndarray], loss: float, total: int
    ) -> bool:
        """Takes the place of :meth:`Monitor.iteration`."""
        x, patience = weights().copy(), self.objective.plan.patience
        self.losses.append(self.objective.error_at(x))
        if self.held_out is None:  # the loss never rises
            self.best, self.best_step = x, step
        else:
            self.held.append(self._held_out_error(x))
            if self.held[-1] < self.held[self.best_step]:
                self.best, self.best_step = x, step
        told = self.held[-1] if self.held else self.losses[-1]
        stop = self.run.monitor.iteration(step, lambda: self.show(x), told, total=total)
        self.stopped = stop or bool(patience and step - self.best_step >= patience)
        return self.stopped


def descend(
    network: Network,
    weights: np.ndarray,
    rows: np.ndarray,
    plan: Plan,
    run: FitContext,
    *,
    held_out: np.ndarray | None,
    show: Callable[[np.ndarray], np.ndarray],
) -> Trained:
    """Train by L-BFGS in float64; corrupted values are drawn once."""
    seen = rows if plan.corrupt is None else plan.corrupt(rows, np.arange(len(rows)), run.rng)
    objective = Objective(network, seen, rows, plan, run.threads)
    watch = _Watch(objective, weights, held_out, run, show)
    minimize(objective, weights, max_iter=plan.n_epochs, tol=TOL, monitor=cast(Monitor, watch))
    return Trained(watch.best, np.array(watch.losses), np.array(watch.held), watch.best_step)


def halves_of(network: Network) -> tuple[Network, Network]:
    """Encoder and decoder, each with its own matrices."""
    middle = network.n_layers // 2
    sizes, activations = network.sizes, network.activations
    return (
        Network(sizes[: middle + 1], activations[:middle]),
        Network(sizes[middle:], activations[middle:]),
    )


class Halves(NamedTuple):
    """Weights of the encoder and of the decoder."""

    encoder: np.ndarray
    decoder: np.ndarray


def untied(network: Network, weights: np.ndarray) -> Halves:
    """Both halves with their own matrices, in float64."""
    middle = network.n_layers // 2
    parts = [network.part(weights, 0, middle), network.part(weights, middle, network.n_layers)]
    return Halves(*(w.astype(np.float64) for _, w in parts))


def oriented(
    network: Network, halves: Halves, Z: np.ndarray, code: np.ndarray, sparse: bool, run: FitContext
) -> Halves:
    """The same network, whose code has mean 0, variance 1 and uncorrelated axes in a defined order.

    A code is defined up to a linear map, which the neighboring layers undo. Of all codes with unit
    covariance this is the one whose axes are uncorrelated as predictors of the columns: the first
    explains the most variance of the standardized rows Z by a line, and so on. Signs make the
    largest covariance with a column positive. For a linear network these are the principal axes.
    A sparse code keeps its axes and its zero.
    """
    code = code.astype(np.float64)
    mean, into, back = (_scaled if sparse else _whitened)(Z, code, run.threads)
    middle = network.n_layers // 2
    n_in, q, n_out = network.sizes[middle - 1 : middle + 2]
    encoder, decoder = halves.encoder.copy(), halves.decoder.copy()
    with limit_blas(1):
        last = encoder[-(n_in + 1) * q :]  # W, then b: a view
        W, b = last[: n_in * q].reshape(n_in, q), last[n_in * q :]
        W[...], b[...] = W @ into, (b - mean) @ into
        V, c = decoder[: q * n_out].reshape(q, n_out), decoder[q * n_out : (q + 1) * n_out]
        c[...] += mean @ V  # before V changes
        V[...] = back @ V
    return Halves(encoder, decoder)


def _whitened(
    Z: np.ndarray, code: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m, T and P with (code - m) T the wanted code, and that times P the old one minus m."""
    n, q = code.shape
    mean = code.mean(axis=0)
    off = code - mean
    found = all_eigenpairs(products.transpose_times(off, np.zeros(q), off, threads) / n)
    varies = found.values > NO_VARIANCE * max(float(found.values[0]), 1e-300)
    r, sizes = int(varies.sum()), np.sqrt(np.where(varies, found.values, 1.0))
    into, back = np.zeros((q, q)), np.zeros((q, q))
    if r == 0:
        return mean, into, back
    with limit_blas(1):
        spread = found.vectors[:, :r] / sizes[:r]
        B = _covariances(Z, off, threads) @ spread  # (p, r)
        turn = all_eigenpairs(B.T @ B).vectors
        turn *= _signs(B @ turn)
        into[:, :r] = spread @ turn
        back[:r] = turn.T @ (found.vectors[:, :r] * sizes[:r]).T
    return mean, into, back


def _scaled(
    Z: np.ndarray, code: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with a mean of 0 and axes that are only divided by their size and reordered."""
    q = code.shape[1]
    sizes = np.sqrt(np.mean(code**2, axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    B = _covariances(Z, code, threads) / sizes
    order = np.argsort(-np.sum(B**2, axis=0), kind="stable")
    turn = np.eye(q)[:, order] * _signs(B[:, order])
    return np.zeros(q), turn / sizes[:, None], turn.T * sizes


def _covariances(Z: np.ndarray, code: np.ndarray, threads: int) -> np.ndarray:
    return products.transpose_times(Z, np.zeros(Z.shape[1]), code, threads) / len(Z)


def _signs(B: np.ndarray) -> np.ndarray:
    largest = B[np.argmax(np.abs(B), axis=0), np.arange(B.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)


# What an autoencoder chooses by itself: sizes of layers, the solver, epochs, first weights.


ROWS_PER_UNIT = 4  # of the first hidden layer, "auto"
SMALL_WORK = 4e6  # rows times weights, up to which L-BFGS is chosen
FEW_WEIGHTS = 100_000  # the same for the number of weights: L-BFGS keeps 40 vectors of them
STEPS = 300  # of L-BFGS, "auto"
MOST_EPOCHS, LEAST_EPOCHS, EPOCHS_OF_ONE_ROW = 500, 10, 10_600


def hidden_units(n: int, p: int, q: int = 2) -> list[int]:
    """Two layers; a unit of the first has at least 4 rows. None is narrower than the code."""
    first = min(256, max(32, p), max(4, n // ROWS_PER_UNIT))
    return [max(q, first), max(q, min(64, max(4, first // 2)))]


def start(network: Network, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random weights; those of columns that do not vary are 0, and training leaves them there."""
    weights = first_weights(network, rng)
    layers, constant = network.layers(weights), np.all(rows == rows[:1], axis=0)
    layers[0].W[constant] = 0
    layers[-1].W[:, constant] = 0
    layers[-1].b[constant] = 0
    return weights


def is_small(n: int, network: Network) -> bool:
    """Whether L-BFGS is chosen."""
    return n * network.n_weights <= SMALL_WORK and network.n_weights <= FEW_WEIGHTS


def epochs(n: int) -> int:
    """The cost of all epochs grows as n^1.5."""
    return round(min(MOST_EPOCHS, max(LEAST_EPOCHS, EPOCHS_OF_ONE_ROW / np.sqrt(n))))


def training_estimate(n: int, p: int) -> Estimate:
    """What a fit with defaults costs: passes forward and backward over all rows."""
    whole = network_of(p, hidden_units(n, p), 2, "tanh", False)
    network = network_of(seen_columns(n, p), hidden_units(n, p), 2, "tanh", False)
    w, small = network.n_weights, is_small(n, whole)
    passes = STEPS if small else epochs(n)
    steps = passes if small else passes * (1 + n // 128)
    seconds = (6e-10 if small else 8e-11) * passes * n * w + (4e-4 if small else 6e-5) * steps
    rows = n * (p + 2) * (16 if small else 12) + min(n, 4096) * sum(network.sizes) * 16
    training = Estimate(0.02 + seconds, rows + w * (360 if small else 48))
    return row_space_cost(n, p) + training.holding(24 * whole.n_weights)

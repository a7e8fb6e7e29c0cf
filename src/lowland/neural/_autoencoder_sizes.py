"""What an autoencoder chooses by itself: sizes of layers, the solver, epochs, first weights."""

from __future__ import annotations

import numpy as np

from lowland._core.card import Estimate
from lowland._engines.network.layers import Network, first_weights
from lowland._engines.network.row_space import row_space_cost, seen_columns
from lowland.neural._autoencoder_training import network_of

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


def decay_for(n: int) -> float:
    """A weight decay that many rows outweigh, as they do a prior."""
    return min(0.001, 0.1 / n)


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

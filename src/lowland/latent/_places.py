"""Where rows belong in the map of a Gaussian process, each row by itself.

    max over x of  log N(y; mean(x), (var(x) + noise) I) + log N(x; 0, diag(d^2))

Each row descends from several places: fitted ones, or beyond them, where its density is highest.
The descent is that of :mod:`lowland._engines.gaussian_processes.places`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._engines.gaussian_processes.places import place_rows
from lowland._engines.gaussian_processes.posterior import Posterior
from lowland._engines.linalg import products
from lowland._engines.linalg.blocks import row_blocks, rows_within

N_STARTS, FIRST_STEPS, N_FINISHED = 8, 6, 3  # those lowest after the first steps go on
START_INPUTS = 4000  # starts times inputs: of many inputs there are fewer starts, at least 2
APART = 0.3  # starts of one row are so many deviations of the map, or a length scale, apart
MOST_ANCHORS = 500  # fitted places among which the starts of a row are chosen
OUTSIDE = (1.25, 2.0, 4.0)  # some of them are also tried so many times farther from the center
N_OUTSIDE = 100
MOST_STEPS = 200
FARTHEST = 1e8  # standardized values beyond this are set to it: their squares hide all others
BLOCK_BYTES = 2**26


class Process(NamedTuple):
    """A posterior, and the standard deviations d (q,) of the prior of places."""

    posterior: Posterior
    deviations: np.ndarray


class Placed(NamedTuple):
    """Places (n, q), and log p(y | x) of each standardized row there (n,)."""

    X: np.ndarray
    log_densities: np.ndarray


def placed_rows(process: Process, anchors: np.ndarray, Y: np.ndarray, threads: int) -> Placed:
    """Places of standardized rows Y (n, D); ``anchors`` (a, q) are places of fitted rows."""
    Y, posterior = np.clip(Y, -FARTHEST, FARTHEST), process.posterior
    D = Y.shape[1]
    anchors = _with_places_outside(anchors)
    images = posterior.mean(anchors, threads)
    spread = posterior.variance(anchors, threads) + posterior.noise
    X, energy = np.empty((len(Y), posterior.covariance.q)), np.empty(len(Y))
    per_row = 8 * (3 * len(anchors) + 2 * N_STARTS * D)
    with np.errstate(all="ignore"):
        for at in row_blocks(len(Y), rows_within(per_row, BLOCK_BYTES)):
            starts = _starts(process, anchors, images, spread, Y[at], threads)
            X[at], energy[at] = _lowest(process, anchors[starts], Y[at], threads)
        prior = 0.5 * np.sum((X / process.deviations) ** 2, axis=1)
    return Placed(X, prior - energy - 0.5 * D * np.log(2 * np.pi))


def _with_places_outside(anchors: np.ndarray) -> np.ndarray:
    """Some anchors, and places around the map: rows unlike all others belong where s^2 is large."""
    some = anchors[:: -(-len(anchors) // MOST_ANCHORS)]
    few, center = anchors[:: -(-len(anchors) // N_OUTSIDE)], anchors.mean(axis=0)
    return np.concatenate([some, *(center + times * (few - center) for times in OUTSIDE)])


def _starts(
    process: Process,
    anchors: np.ndarray,
    images: np.ndarray,
    spread: np.ndarray,
    Y: np.ndarray,
    threads: int,
) -> np.ndarray:
    """Numbers of anchors (s, n), far from each other.

    In turn that where the density is highest and that whose image is nearest to the row: with
    little noise, the density at a fitted place is low for every other row, however near it is.
    """
    D = Y.shape[1]
    E = products.times(np.ascontiguousarray(Y), np.zeros(D), -2 * images.T, threads)
    E += np.sum(images**2, axis=1)
    E += np.einsum("ij,ij->i", Y, Y)[:, None]
    squares = E.copy()
    E /= 2 * spread
    E += 0.5 * D * np.log(spread) + 0.5 * np.sum((anchors / process.deviations) ** 2, axis=1)
    posterior = process.posterior
    lengths = posterior.covariance.parameters(posterior.theta)[1]
    scaled = anchors / np.maximum(np.minimum(lengths, APART * anchors.std(axis=0)), 1e-300)
    found = []
    for number in range(min(N_STARTS, max(2, START_INPUTS // len(posterior.inputs)))):
        lowest = np.argmin(squares if number % 2 else E, axis=1)
        found.append(lowest)
        gaps = np.zeros(E.shape)
        for coordinate in scaled.T:
            gaps += (coordinate[lowest][:, None] - coordinate) ** 2
        for heights in (E, squares):
            heights[gaps < 1] = np.inf  # once all are, the first anchor is tried again
    return np.array(found)


def _lowest(
    process: Process, starts: np.ndarray, Y: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest minimum below those starts (s, n, q) that are the lowest after a few steps."""
    X, energy = _descended(process, starts, Y, FIRST_STEPS, threads)
    finished = max(1, N_FINISHED * len(starts) // N_STARTS)
    order = np.argsort(energy, axis=0, kind="stable")[:finished]
    chosen = np.take_along_axis(X, order[:, :, None], axis=0)
    X, energy = _descended(process, chosen, Y, MOST_STEPS, threads)
    best, each = np.argmin(energy, axis=0), np.arange(len(Y))
    return X[best, each], energy[best, each]


def _descended(
    process: Process, starts: np.ndarray, Y: np.ndarray, n_steps: int, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """From each start (s, n, q) of each row: the places reached, and minus the log density."""
    n_starts, n, q = starts.shape
    found = place_rows(
        *(process.posterior, np.tile(Y, (n_starts, 1)), starts.reshape(-1, q)),
        n_steps=n_steps,
        threads=threads,
        criterion="likelihood",
        deviations=process.deviations,
    )
    return found.X.reshape(starts.shape), found.energy.reshape(n_starts, n)

"""Noise on rows, as long as the way to their neighbors, which makes a network smooth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland._engines.neighbors.graph import NeighborGraph

LONGEST = 3.0  # of the noise of a row, in medians over the rows


class Noise(NamedTuple):
    """The length s_i of the noise of each row, and the share u of each column, |u| = 1."""

    lengths: np.ndarray
    shares: np.ndarray

    def added_to(
        self, rows: np.ndarray, numbers: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The rows of these numbers with noise; a new array."""
        noise = rng.standard_normal(rows.shape, dtype=np.float32)
        noise *= self.shares
        noise *= self.lengths[numbers, None]
        noise += rows
        return noise


def neighbor_noise(inputs: np.ndarray, graph: NeighborGraph, size: float) -> Noise:
    """Noise as long as ``size`` times the distance to the nearest neighbor that is not equal.

    Columns share in it as they share in the differences of neighbors.
    """
    n = len(inputs)
    nearest = graph.indices[np.arange(n), np.argmax(graph.distances > 0, axis=1)]
    lengths, squares = np.zeros(n), np.zeros(inputs.shape[1])
    for rows in row_blocks(n, rows_within(16 * inputs.shape[1])):
        apart = inputs[rows].astype(np.float64) - inputs[nearest[rows]]
        lengths[rows] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        known = lengths[rows] > 0
        squares += np.square(apart[known] / lengths[rows][known, None]).sum(axis=0)
    if not squares.any():
        return Noise(np.zeros(n, np.float32), np.zeros(len(squares), np.float32))
    lengths = size * np.minimum(lengths, LONGEST * np.median(lengths[lengths > 0]))
    shares = np.sqrt(squares / squares.sum())
    return Noise(lengths.astype(np.float32), shares.astype(np.float32))

"""An order of the points of a map in which neighbors in the map are near in memory."""

from __future__ import annotations

import numpy as np

from lowland import _native

KEY_BITS = 30


def map_order(Y: np.ndarray) -> np.ndarray:
    """The points in the order of a curve through at most three coordinates.

    Through two coordinates it is Hilbert's curve, which never jumps, and through three Morton's,
    both on a grid over the map. O(n log n).
    """
    axes = min(Y.shape[1], 3)
    bits = KEY_BITS // axes
    low = Y[:, :axes].min(axis=0)
    span = max(float((Y[:, :axes].max(axis=0) - low).max()), float(np.finfo(np.float32).tiny))
    cells = np.minimum((Y[:, :axes] - low) / span * 2**bits, 2**bits - 1).astype(np.uint32)
    keys = _hilbert_keys(cells[:, 0], cells[:, 1], bits) if axes == 2 else _morton_keys(cells, bits)
    return np.argsort(keys, kind="stable").astype(np.int32)


def _morton_keys(cells: np.ndarray, bits: int) -> np.ndarray:
    """The bits of all coordinates interleaved."""
    keys = np.zeros(len(cells), np.uint32)
    axes = cells.shape[1]
    for bit in range(bits):
        for axis in range(axes):
            keys |= ((cells[:, axis] >> np.uint32(bit)) & np.uint32(1)) << np.uint32(
                bit * axes + axis
            )
    return keys


def _hilbert_keys(x: np.ndarray, y: np.ndarray, bits: int) -> np.ndarray:
    """The place of each cell along a Hilbert curve.

    A quarter of the square is found from one bit of both coordinates. The curve within the two
    lower quarters is a mirror image, so their coordinates are exchanged, and in the last quarter
    complemented, too.
    """
    x, y, keys = x.copy(), y.copy(), np.zeros(len(x), np.uint32)
    for bit in reversed(range(bits)):
        right, upper = (x >> np.uint32(bit)) & np.uint32(1), (y >> np.uint32(bit)) & np.uint32(1)
        keys = (keys << np.uint32(2)) | ((np.uint32(3) * right) ^ upper)
        lower = upper - np.uint32(1)  # all bits set where the point is in a lower quarter
        turned = lower & (np.uint32(0) - right)
        exchanged = (x ^ y) & lower
        x ^= exchanged ^ turned
        y ^= exchanged ^ turned
    return keys


class EdgeOrder:
    """Edges of points (starts, columns, weights) in the order of the points in a map.

    The memory of an earlier order is used again: fresh pages take longer than the edges that are
    moved. The edges that the caller gave first are never written to.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._own = False  # whether the edges of the last call are memory of this object
        self._spare: tuple[np.ndarray, np.ndarray] | None = None

    def follow(
        self, Y: np.ndarray, starts: np.ndarray, columns: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The order, and the edges in it; point i is then the former point ``order[i]``."""
        order = map_order(Y)
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=np.int32)
        new_starts = np.concatenate([[0], np.cumsum(np.diff(starts)[order])])
        to = self._spare or (np.empty_like(columns), np.empty_like(weights))
        _native.permute_edges(starts, columns, weights, order, place, new_starts, *to, self.threads)
        self._spare, self._own = (columns, weights) if self._own else None, True
        return order, new_starts, *to

"""An order of the points of a map in which neighbors in the map are near in memory."""

from __future__ import annotations

import numpy as np

__all__ = ["map_order"]

KEY_BITS = 30


def map_order(Y: np.ndarray) -> np.ndarray:
    """The points in the order of a Morton curve through at most three coordinates.

    The sort key interleaves the bits of the coordinates on a grid over the map. O(n log n).
    """
    axes = min(Y.shape[1], 3)
    bits = KEY_BITS // axes
    low = Y[:, :axes].min(axis=0)
    span = max(float((Y[:, :axes].max(axis=0) - low).max()), float(np.finfo(np.float32).tiny))
    cells = np.minimum((Y[:, :axes] - low) * (2**bits / span), 2**bits - 1).astype(np.uint32)
    keys = np.zeros(len(Y), np.uint32)
    for bit in range(bits):
        for axis in range(axes):
            keys |= ((cells[:, axis] >> np.uint32(bit)) & np.uint32(1)) << np.uint32(
                bit * axes + axis
            )
    return np.argsort(keys, kind="stable").astype(np.int32)

"""Where a falling curve of variances flattens, and what chance alone would give."""

from __future__ import annotations

import numpy as np


def elbow(values: np.ndarray) -> int:
    """The number of the entry, from 1, at which a curve bends most.

    Both axes are scaled to [0, 1], and the entry farthest from the straight line between the first
    and the last one is taken (Satopää et al. 2011); of equals the first. A straight line, and a
    curve of fewer than three entries, bends nowhere: 1.
    """
    values = np.asarray(values, dtype=np.float64)
    values = values / (float(np.abs(values).max()) or 1.0)  # differences do not overflow
    height = abs(float(values[0]) - float(values[-1]))
    if len(values) < 3 or height == 0:
        return 1
    fallen = np.abs(values - values[0]) / height
    apart = fallen - np.linspace(0.0, 1.0, len(values))
    return int(np.argmax(apart)) + 1 if apart.max() > 1e-9 else 1


def broken_stick(n_pieces: int) -> np.ndarray:
    """Expected lengths, longest first, of a stick of length 1 broken at random: sum_{i>=k} 1/i / p.

    >>> broken_stick(3).round(3)
    array([0.611, 0.278, 0.111])
    """
    return np.cumsum(1.0 / np.arange(n_pieces, 0, -1))[::-1] / n_pieces

"""Where the data neighbors of a point lie in the map: its home."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["KINDS", "PointHome"]

KINDS = ("fine", "misplaced", "torn", "pressed")


class PointHome(NamedTuple):
    """Missing neighbors, strangers and home of every point; NaN and kind -1 where not measured."""

    missing: np.ndarray  # (n,) share of the data's k nearest not among the map's K nearest
    strangers: np.ndarray  # (n,) share of the map's k nearest not among the data's K nearest
    home: np.ndarray  # (n, q) medoid of the map positions of the k data neighbors
    spread: np.ndarray  # (n,) median distance of these positions to it
    kind: np.ndarray  # (n,) index into KINDS, -1 for a row that is not measured
    chance: float  # mean of missing, and of strangers, in a random map
    n_neighbors: int  # k
    reach: int  # K

"""A curve or a grid in the space of the data, as it is drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Net(NamedTuple):
    """Points (n_nodes, p), and the pairs of them that are joined."""

    nodes: np.ndarray
    edges: np.ndarray | None  # None: a curve through the nodes in their order
    closed: bool = False  # a curve whose end is its beginning

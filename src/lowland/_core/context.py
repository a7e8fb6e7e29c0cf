"""What one call of ``fit`` or ``transform`` carries through the engines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.monitor import Monitor

__all__ = ["FitContext", "SharedWork"]


class SharedWork:
    """Intermediate results of a fit for the caller who asked for them (``Estimator.sharing``).

    Attributes
    ----------
    graph : NeighborGraph or None
        Neighbors of all fitted rows, in the columns and the metric that the method was given.
    """

    graph: Any = None


class FitContext(NamedTuple):
    """Random generator, number of threads, progress monitor and shared results of one call."""

    rng: np.random.Generator
    threads: int
    monitor: Monitor
    shared: SharedWork | None = None  # if the caller asked for it

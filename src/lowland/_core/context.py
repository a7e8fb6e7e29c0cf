"""What one call of ``fit`` or ``transform`` carries through the engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._core.monitor import Monitor
from lowland._core.prepared import Prepared


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
    kept: Prepared | None = None  # what the estimator keeps between calls

    def prepared(
        self, name: str, sources: tuple[Any, ...], options: Any, make: Callable[[], Any]
    ) -> Any:
        """What ``make`` computes from these arrays and options, or the estimator has from before.

        ``name`` says what it is; each estimator keeps one result of a name.
        """
        if self.kept is None:
            return make()
        return self.kept.get(name, sources, options, make)

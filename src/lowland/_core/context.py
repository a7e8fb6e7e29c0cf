"""What one call of ``fit`` or ``transform`` carries through the engines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.monitor import Monitor

__all__ = ["FitContext"]


class FitContext(NamedTuple):
    """Random generator, number of threads and progress monitor of one call."""

    rng: np.random.Generator
    threads: int
    monitor: Monitor

"""The time of a run, stage by stage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

STAGES = (
    *("reading", "preparing", "fitting", "measuring", "judging", "checking", "drawing", "writing"),
)
# Rows that are read leaf by leaf are placed after the fit.
EVERY = (*STAGES[:3], "placing", *STAGES[3:])


class Stages:
    """Seconds that each stage of a run has taken so far."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + time.perf_counter() - start

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage, in their order; a stage that has not run is left out."""
        return {stage: self._seconds[stage] for stage in EVERY if stage in self._seconds}

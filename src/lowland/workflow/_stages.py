"""The stages of a run: their time and memory, and what becomes of those that fail.

Once there is a map, a later stage that fails or is interrupted is noted, and the map is kept.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from lowland._base.interrupts import Stop, ends_stage, noticed

STAGES = (
    *("reading", "preparing", "fitting", "measuring", "judging", "checking", "drawing", "writing"),
)
# Rows that are read in chunks are placed after the fit.
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


# Peak memory of a piece of work.


class Peak:
    """Bytes above the memory in use at the start; None where the system does not report them."""

    n_bytes: int | None = None


@contextlib.contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the peak memory of the block.

    Linux keeps the high-water mark of a process, and writing 5 to ``clear_refs`` resets it.
    """
    peak = Peak()
    before = None
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
    yield peak
    after = _status("VmHWM")
    if before is not None and after is not None:
        peak.n_bytes = max(0, after - before)


def _status(name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None


Made = TypeVar("Made")
STOPPED = "it was stopped by Ctrl-C"
WITHOUT = {  # what the map is without, by stage
    "measures": "the map was not measured",
    "points": "the points of the map were not judged",
    "check": "the map was not made again, so that stability and chance are not known",
    "held_out": "the alignment was not tried on held-out pairs",
    "labels": "the picture of the labels was not drawn",
    "picture": "the picture was not drawn",
    "report": "the report was not written",
    "trust": "the table of the points was not written",
    "h5ad": "the map was not added to a copy of the H5AD file",
    "model": "the model was not saved, so that new rows cannot be placed in this map",
}


class OptionalStages:
    """Stages after a map is finished; ``lost`` has the parts that could not be made, and why."""

    def __init__(self) -> None:
        self.lost: dict[str, str] = {}
        self._stop = Stop()  # whether Ctrl-C came while something was done that is never left out

    def attempt(
        self,
        what: str,
        work: Callable[[], Made],
        otherwise: Made,
        *,
        path: Path | None = None,
        interruptible: bool = True,
    ) -> Made:
        """The result of a stage; if it fails, a warning, and ``otherwise``.

        Ctrl-C ends the stage, if it is ``interruptible``. A file that was begun is deleted.
        """
        try:
            if self._stop.asked and interruptible:
                raise KeyboardInterrupt
            with ends_stage() if interruptible else contextlib.nullcontext():
                return work()
        except KeyboardInterrupt:
            reason = STOPPED
        except Exception as error:
            reason = reason_of(error)
        if path is not None:
            path.unlink(missing_ok=True)
        self.lost[what] = reason
        warnings.warn(
            f"{WITHOUT.get(what, what)}: {reason.rstrip('.')}; the map is kept", stacklevel=2
        )
        return otherwise

    @contextlib.contextmanager
    def left_out_after_interrupt(self) -> Iterator[None]:
        """While the block runs, Ctrl-C only leaves out the stages that have not begun yet."""
        with noticed() as self._stop:
            yield
        self._stop = Stop()

    def log(self) -> list[str]:
        """What is missing and why, as lines of a log."""
        return [f"{WITHOUT.get(what, what)}: {reason}" for what, reason in self.lost.items()]


def reason_of(error: BaseException) -> str:
    """The message of an error; an unexpected one is preceded by its kind."""
    said = " ".join(str(error).split())
    if isinstance(error, OSError | MemoryError) or type(error).__module__.startswith("lowland"):
        return said or type(error).__name__
    return f"{type(error).__name__}: {said}"

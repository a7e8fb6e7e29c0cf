"""What is finished is kept: a later stage that fails or is interrupted is noted, not fatal."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

# The time of a run, stage by stage.


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
LACKS = {
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


class Interrupted(BaseException):
    """Ctrl-C ends the stage that is under way, and no other."""


class Keeper:
    """Stages after a map is finished; ``lost`` has the parts that could not be made, and why."""

    def __init__(self) -> None:
        self.lost: dict[str, str] = {}
        self._asked = False  # Ctrl-C came while something was done that is never left out

    def attempt(
        self,
        what: str,
        work: Callable[[], Made],
        otherwise: Made,
        *,
        path: Path | None = None,
        patient: bool = False,
    ) -> Made:
        """The result of a stage; if it fails, a warning, and ``otherwise``.

        Ctrl-C ends the stage, unless ``patient``. A file that was begun is deleted.
        """
        try:
            if self._asked and not patient:
                raise Interrupted
            with contextlib.nullcontext() if patient else interruptible():
                return work()
        except (Interrupted, KeyboardInterrupt):  # polars raises the second one by itself
            reason = STOPPED
        except Exception as error:
            reason = reason_of(error)
        if path is not None:
            path.unlink(missing_ok=True)
        self.lost[what] = reason
        warnings.warn(
            f"{LACKS.get(what, what)}: {reason.rstrip('.')}; the map is kept", stacklevel=2
        )
        return otherwise

    @contextlib.contextmanager
    def patience(self) -> Iterator[None]:
        """While the block runs, Ctrl-C only leaves out the stages that are not begun yet.

        A second Ctrl-C does what it did before.
        """

        def remember(before: Callable[[], None]) -> None:
            if self._asked:
                before()
            self._asked = True

        with on_interrupt(remember):
            yield
        self._asked = False

    def log(self) -> list[str]:
        """What is missing and why, as lines of a log."""
        return [f"{LACKS.get(what, what)}: {reason}" for what, reason in self.lost.items()]


def reason_of(error: BaseException) -> str:
    """The message of an error; one that nobody foresaw is preceded by its kind."""
    said = " ".join(str(error).split())
    if isinstance(error, OSError | MemoryError) or type(error).__module__.startswith("lowland"):
        return said or type(error).__name__
    return f"{type(error).__name__}: {said}"


def interruptible() -> contextlib.AbstractContextManager[None]:
    """While the block runs, Ctrl-C raises :class:`Interrupted`."""
    return on_interrupt(_interrupt)


def _interrupt(before: Callable[[], None]) -> None:
    raise Interrupted


@contextlib.contextmanager
def on_interrupt(act: Callable[[Callable[[], None]], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C calls ``act`` with what it did before.

    Signals reach the main thread only; in another thread nothing is changed. A signal that the
    shell decided to ignore, as for a job in the background, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):
        yield
        return

    def handle(number: int, frame: Any) -> None:
        def usual() -> None:
            if callable(before):
                before(number, frame)
            else:
                raise KeyboardInterrupt

        act(usual)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# Ctrl-C during an optimization keeps the map computed so far.


class Stop:
    """Whether the user asked to stop."""

    asked = False


@contextlib.contextmanager
def stopped_by_interrupt(estimator: Any) -> Iterator[Stop]:
    """While the block runs, the first Ctrl-C cancels the fit; the second does what it did before.

    Signals reach the main thread only; in another thread nothing is changed.
    """
    stop = Stop()

    def cancel(before: Callable[[], None]) -> None:
        if not stop.asked and estimator.cancel():
            stop.asked = True
        else:
            before()

    with on_interrupt(cancel):
        yield stop

"""What is finished is kept: a later stage that fails or is interrupted is noted, not fatal."""

from __future__ import annotations

import contextlib
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

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

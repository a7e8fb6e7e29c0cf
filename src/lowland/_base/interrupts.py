"""Ctrl-C, and a request to terminate: what they do, and the only file that handles signals.

In Python, Ctrl-C raises KeyboardInterrupt, as always. The program runs in :class:`Signals`: Ctrl-C
and SIGTERM raise :class:`Ended`, which ends it in one line and with exit code 130 or 143.
For the time of a block, Ctrl-C does something else:
- during a fit, the first one cancels it, and the map so far is kept (:func:`stopped_by_interrupt`);
- during an optional stage, it raises KeyboardInterrupt, which ends that stage (:func:`ends_stage`);
- while a map is written, the first one leaves out the stages that have not begun (:func:`noticed`);
- while files are moved, or removed after a failure, it waits (:func:`uninterrupted`).
The second Ctrl-C of a fit or of writing does what Ctrl-C did before the block. What is ignored
stays ignored, as in a job in the background; signals reach only the main thread.

This module imports next to nothing, because it has to be there before the slow imports begin.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
AGAIN = 0.01  # seconds until a lost signal comes again
KEPT = "kept"  # the note on an interrupt of a run that can go on
WRITTEN = "written"  # the note on an interrupt that came after the files were in place


class Ended(BaseException):
    """A signal asks the program to end.

    It is no KeyboardInterrupt, which typer turns into a silent exit, and no Exception, which
    libraries catch and forget.
    """

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


class Signals:
    """While the block runs, SIGINT and SIGTERM raise :class:`Ended`.

    A signal that the caller ignores, as a shell does for jobs in the background, stays ignored. If
    ``final``, nothing but the end of the process follows, and signals are ignored from then on.
    """

    def __init__(self, *, final: bool) -> None:
        self.final = final
        self.before: dict[int, object] = {}

    def __enter__(self) -> Signals:
        usual = (signal.default_int_handler, signal.SIG_DFL)
        for number in CODES:
            if signal.getsignal(number) in usual:
                try:
                    self.before[number] = signal.signal(number, _end)
                except ValueError:  # not the main thread, which alone gets signals
                    break
        self.hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        return self

    def __exit__(self, *details: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, signal.SIG_IGN if self.final else handler)  # type: ignore[arg-type]
        sys.unraisablehook = self.hook

    def _unraisable(self, found: object) -> None:
        """An interrupt inside a destructor or a callback would be lost; it is sent again.

        Not at once: what is raised in here would be lost, too.
        """
        error = getattr(found, "exc_value", None)
        if isinstance(error, Ended):
            _thread.start_new_thread(_send_again, (error.number,))
        else:
            self.hook(found)  # type: ignore[arg-type]


def _end(number: int, frame: object) -> None:
    raise Ended(number)


def _send_again(number: int) -> None:
    time.sleep(AGAIN)
    os.kill(os.getpid(), number)


def farewell(error: Ended) -> int:
    """Say in one line that the program was interrupted, and return its exit code."""
    for number in CODES:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not cut the line
    notes = getattr(error, "__notes__", ())
    what = "the results were written before" if WRITTEN in notes else "nothing was written"
    if KEPT in notes and WRITTEN not in notes:
        what = "what is finished is kept, and --resume goes on"
    try:
        sys.stderr.write(f"lowland: error: {WORDS[error.number]}; {what}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed
        pass
    return CODES[error.number]


class Stop:
    """Whether the user asked to stop."""

    asked = False


@contextlib.contextmanager
def noticed(act: Callable[[], bool] = lambda: True) -> Iterator[Stop]:
    """While the block runs, the first Ctrl-C calls ``act``; the result records it.

    The second one does what it did before, and so does the first if ``act`` returns False.
    """
    stop = Stop()

    def first(usual: Callable[[], None]) -> None:
        if not stop.asked and act():
            stop.asked = True
        else:
            usual()

    with _on_interrupt(first):
        yield stop


def stopped_by_interrupt(estimator: object) -> contextlib.AbstractContextManager[Stop]:
    """While the block runs, the first Ctrl-C cancels the fit, if one is under way."""
    return noticed(estimator.cancel)  # type: ignore[attr-defined]


def ends_stage() -> contextlib.AbstractContextManager[None]:
    """While the block runs, Ctrl-C raises KeyboardInterrupt, in the program, too."""
    return _on_interrupt(_raise_interrupt)


def _raise_interrupt(usual: Callable[[], None]) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _on_interrupt(act: Callable[[Callable[[], None]], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C calls ``act`` with what it did before."""
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN) or not _in_main_thread():
        yield
        return

    def handle(number: int, frame: object) -> None:
        def usual() -> None:
            if callable(before):
                before(number, frame)  # type: ignore[arg-type]
            else:
                raise KeyboardInterrupt

        act(usual)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block ends, so that it is done as a whole."""
    if not _in_main_thread():
        yield
        return
    waiting: list[int] = []
    before = {}
    for number in CODES:
        handler = signal.getsignal(number)
        if handler not in (None, signal.SIG_IGN):
            before[number] = handler
            signal.signal(number, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

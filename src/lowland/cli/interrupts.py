"""Ctrl-C and a request to terminate, from the first moment of the program to its last.

This module imports next to nothing, because it has to be there before the slow imports begin.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

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

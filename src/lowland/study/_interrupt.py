"""Ctrl-C during an optimization keeps the map computed so far."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["Stop", "stopped_by_interrupt"]


class Stop:
    """Whether the user asked to stop."""

    asked = False


@contextlib.contextmanager
def stopped_by_interrupt(estimator: Any) -> Iterator[Stop]:
    """While the block runs, the first Ctrl-C cancels the fit; the second does what it did before.

    Signals reach the main thread only; in another thread nothing is changed.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def on_interrupt(number: int, frame: Any) -> None:
        if not stop.asked and estimator.cancel():
            stop.asked = True
        elif callable(before):
            before(number, frame)
        else:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):  # as the shell decided for a job in the background
        yield stop
        return
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)

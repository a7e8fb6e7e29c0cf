"""Ctrl-C during an optimization keeps the map computed so far."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from lowland.study._keeping import on_interrupt


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

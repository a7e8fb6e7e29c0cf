"""Progress, callback and cancellation: the one object that engines hand through.

    with Monitor("TSNE", verbose=True, callback=keep_frame) as monitor:
        with monitor.phase("neighbors", total=n_blocks) as phase:
            for block in blocks:
                ...
                phase.advance()
        for i in range(1, max_iter + 1):
            ...
            if monitor.iteration(i, Y, loss, total=max_iter):
                break

A monitor belongs to one run. ``Monitor()`` is silent and costs next to nothing per call.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from lowland._base.errors import StoppedError

# How a verbose run looks: a bar on a terminal, plain lines in a log file or notebook.


def open_display(label: str, stream: TextIO | None = None) -> Display | None:
    """The display that suits ``stream`` (None: standard error); None when there is no stream."""
    stream = sys.stderr if stream is None else stream
    if stream is None or stream.closed:  # a program without a console has no standard error
        return None
    if stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        return Bar(label, stream)
    return Lines(label, stream)


def format_seconds(seconds: float) -> str:
    """A duration for people.

    >>> format_seconds(0.42), format_seconds(12.3), format_seconds(200), format_seconds(9000)
    ('0.4 s', '12 s', '3.3 min', '2.5 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7170 else f"{seconds / 3600:.1f} h"


def _loss(phase: Phase) -> str:
    return "" if phase.loss is None else f"loss {float(phase.loss):.4g}"


def _time_left(phase: Phase, now: float) -> str:
    if not phase.total or not phase.first < phase.done < phase.total:
        return ""
    left = (now - phase.started) / (phase.done - phase.first) * (phase.total - phase.done)
    return f"ETA {format_seconds(left)}"


class Display:
    """What a monitor reports: a phase begins, moves on, and ends when its work is complete."""

    INTERVAL = 0.0  # seconds between two signs of one phase

    def __init__(self, label: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.label, self.clock, self.last = label, clock, clock()

    def begin(self, phase: Phase) -> None:
        phase.started = self.clock()

    def show(self, phase: Phase) -> None:
        now = self.clock()
        if now - self.last >= self.INTERVAL:
            self.last = now
            self.write(phase, _time_left(phase, now))

    def end(self, phase: Phase) -> None:
        self.last = self.clock()
        self.write(phase, format_seconds(self.last - phase.started))

    def write(self, phase: Phase, duration: str) -> None:
        """Show how far the phase is."""
        raise NotImplementedError

    def close(self) -> None:
        """Show nothing more."""
        raise NotImplementedError


class Lines(Display):
    """One line when a phase ends, and while it runs at most one every ``INTERVAL`` seconds.

    A stream that cannot be written any more (closed, disk full) silences the display: progress
    is not worth losing the run for.
    """

    INTERVAL = 2.0

    def __init__(
        self, label: str, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(label, clock)
        self.stream: TextIO | None = stream

    def close(self) -> None:
        self.stream = None

    def write(self, phase: Phase, duration: str) -> None:
        count = f"{phase.done}" if phase.total is None else f"{phase.done}/{phase.total}"
        fields = [self.label, f"{phase.name} {count}", _loss(phase), duration]
        if self.stream is not None:
            try:
                self.stream.write("  ".join(field for field in fields if field) + "\n")
                self.stream.flush()
            except (OSError, ValueError):
                self.stream = None


class Bar(Display):
    """A bar per phase with percentage, loss and remaining time, drawn by rich."""

    INTERVAL = 0.05  # faster updates would only cost time

    def __init__(self, label: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        super().__init__(label)
        label_, name, loss, left = (
            TextColumn(f"{{task.{field}}}", markup=False)
            for field in ("fields[label]", "description", "fields[loss]", "fields[time]")
        )
        columns = (label_, name, BarColumn(), TaskProgressColumn(), loss, left)
        # the program's own output is not ours to reroute
        self.progress = Progress(
            *columns, console=Console(file=stream), redirect_stdout=False, redirect_stderr=False
        )
        self.progress.start()

    def begin(self, phase: Phase) -> None:
        super().begin(phase)
        phase.task = self.progress.add_task(
            phase.name, total=phase.total, label=self.label, loss="", time=""
        )

    def end(self, phase: Phase) -> None:
        phase.total = phase.done if phase.total is None else phase.total
        super().end(phase)
        self.progress.stop_task(phase.task)

    def close(self) -> None:
        self.progress.stop()

    def write(self, phase: Phase, duration: str) -> None:
        self.progress.update(
            phase.task, completed=phase.done, total=phase.total, loss=_loss(phase), time=duration
        )


class Monitor:
    """Carries progress, the user's callback and the cancel flag through one run.

    Parameters
    ----------
    label : str
        What is running; the first word of every progress line.
    verbose : bool
        Show progress: a bar on a terminal, else a line about every 2 seconds.
    callback : callable or None
        ``callback(iteration, embedding, loss)`` after each step of an optimization. It gets a
        read-only view, which the next step overwrites: copy it to keep it. Returning ``True``
        (only that, not any truthy value) stops early and keeps the map; an exception propagates.
    stream : text file or None
        Where progress goes; ``None`` is ``sys.stderr`` at the time of use.

    Attributes
    ----------
    stopped : bool
        Whether the callback or a cancellation ended the run early.
    """

    def __init__(
        self,
        label: str = "",
        verbose: bool = False,
        callback: Callable[[int, np.ndarray, float | None], Any] | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self.label, self.verbose, self.stream = label, verbose, stream
        self.callback = callback
        self.stopped = False
        # A plain attribute, not a threading.Event: setting it takes no lock, so a signal handler
        # may do it whatever the interrupted code was holding.
        self._cancelled = False
        self._has_map = False  # whether any step was reported: then there is something to keep
        self._display: Display | None = None
        self._steps: Phase | None = None  # the optimization on display

    def __enter__(self) -> Monitor:
        if self.verbose:
            self._display = open_display(self.label, self.stream)
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if self._display is not None:
            try:
                if kind is None:
                    self._end_steps()
            finally:
                self._display.close()
                self._display = self._steps = None

    @property
    def cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the run to stop as soon as it can; callable from any thread or signal handler."""
        self._cancelled = True

    def phase(self, name: str, total: int | None = None) -> Phase:
        """A part of the work of ``total`` units (None: unknown number); use it with ``with``."""
        return Phase(self, name, total)

    def iteration(
        self,
        i: int,
        embedding: np.ndarray | Callable[[], np.ndarray],
        loss: float | None = None,
        total: int | None = None,
    ) -> bool:
        """Report that step ``i`` (the first is 1) is done; True: stop now, keep the present state.

        ``embedding`` may be a function that makes the array; it is called only for a callback.
        Once stopped, every later call is True and the callback rests, so that a run of several
        stages ends as a whole.
        """
        self._has_map = True
        if self.callback is not None and not self.stopped:
            view = np.asarray(embedding() if callable(embedding) else embedding).view()
            view.flags.writeable = False
            answer = self.callback(i, view, loss)
            self.stopped = answer is True or (isinstance(answer, np.bool_) and bool(answer))
        if self._cancelled:
            self.stopped = True
        if self._display is not None:
            self._show_step(i, loss, total)
        return self.stopped

    def _show_step(self, i: int, loss: float | None, total: int | None) -> None:
        assert self._display is not None
        if self._steps is not None and i <= self._steps.done:  # a new stage counts from 1 again
            self._end_steps()
        if self._steps is None:
            self._steps = Phase(self, "iteration", total)
            self._steps.first = i  # reported when done: how long it took is not known
            self._display.begin(self._steps)
        self._steps.done, self._steps.total, self._steps.loss = i, total, loss
        if self.stopped or i == total:
            self._end_steps()
        else:
            self._display.show(self._steps)

    def _end_steps(self) -> None:
        if self._display is not None and self._steps is not None:
            self._display.end(self._steps)
            self._steps = None


class Phase:
    """A part of the work, and how much of it is done; made by :meth:`Monitor.phase`."""

    def __init__(self, monitor: Monitor, name: str, total: int | None) -> None:
        self._monitor, self._display = monitor, monitor._display
        self.name, self.total, self.done = name, total, 0
        self.first = 0  # what was done before the time was taken
        self.loss: float | None = None
        self.started = 0.0  # these two belong to the display
        self.task: Any = None

    def __enter__(self) -> Phase:
        self._monitor._end_steps()
        if self._display is not None:
            self._display.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if self._display is not None and kind is None:
            self._display.end(self)

    def advance(self, n: int = 1) -> None:
        """``n`` more units are done.

        Raises ``StoppedError`` after a cancellation, unless an optimization has already reported
        a step: then its map is worth keeping, and the work that follows it is allowed to finish.
        """
        self.done += n
        monitor = self._monitor
        if monitor._cancelled and not monitor._has_map:
            monitor.stopped = True
            run = f"{monitor.label}: " if monitor.label else ""
            raise StoppedError(
                f"{run}cancelled in phase {self.name!r}, before there was a map to keep; "
                "run it again to get one."
            )
        if self._display is not None:
            self._display.show(self)

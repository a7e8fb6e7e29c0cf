"""How a verbose run looks: a bar on a terminal, plain lines in a log file or notebook."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from lowland._core.monitor import Phase


class Display(Protocol):
    """What a monitor tells: a phase begins, moves on, and ends when its work is complete."""

    def begin(self, phase: Phase) -> None: ...
    def show(self, phase: Phase) -> None: ...
    def end(self, phase: Phase) -> None: ...
    def close(self) -> None: ...


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


class Lines:
    """One line when a phase ends, and while it runs at most one every ``INTERVAL`` seconds.

    A stream that cannot be written any more (closed, disk full) silences the display: progress
    is not worth losing the run for.
    """

    INTERVAL = 2.0

    def __init__(
        self, label: str, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.label = label
        self.clock = clock
        self.stream: TextIO | None = stream
        self.last = clock()

    def begin(self, phase: Phase) -> None:
        phase.started = self.clock()

    def show(self, phase: Phase) -> None:
        now = self.clock()
        if now - self.last < self.INTERVAL:
            return
        self._write(phase, _time_left(phase, now))

    def end(self, phase: Phase) -> None:
        self._write(phase, format_seconds(self.clock() - phase.started))

    def close(self) -> None:
        self.stream = None

    def _write(self, phase: Phase, duration: str) -> None:
        self.last = self.clock()
        count = f"{phase.done}" if phase.total is None else f"{phase.done}/{phase.total}"
        fields = [self.label, f"{phase.name} {count}", _loss(phase), duration]
        if self.stream is not None:
            try:
                self.stream.write("  ".join(field for field in fields if field) + "\n")
                self.stream.flush()
            except (OSError, ValueError):
                self.stream = None


class Bar:
    """A bar per phase with percentage, loss and remaining time, drawn by rich."""

    INTERVAL = 0.05  # faster updates would only cost time

    def __init__(self, label: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self.last = 0.0
        self.progress = Progress(
            TextColumn("{task.fields[label]}", markup=False),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[loss]}", markup=False),
            TextColumn("{task.fields[time]}", markup=False),
            console=Console(file=stream),
            redirect_stdout=False,  # the program's own output is not ours to reroute
            redirect_stderr=False,
        )
        self.label = label
        self.progress.start()

    def begin(self, phase: Phase) -> None:
        phase.started = time.monotonic()
        phase.task = self.progress.add_task(
            phase.name, total=phase.total, label=self.label, loss="", time=""
        )

    def show(self, phase: Phase) -> None:
        now = time.monotonic()
        if now - self.last >= self.INTERVAL:
            self.last = now
            self._update(phase, phase.total, _time_left(phase, now))

    def end(self, phase: Phase) -> None:
        total = phase.done if phase.total is None else phase.total
        self._update(phase, total, format_seconds(time.monotonic() - phase.started))
        self.progress.stop_task(phase.task)

    def close(self) -> None:
        self.progress.stop()

    def _update(self, phase: Phase, total: int | None, duration: str) -> None:
        self.progress.update(
            phase.task, completed=phase.done, total=total, loss=_loss(phase), time=duration
        )

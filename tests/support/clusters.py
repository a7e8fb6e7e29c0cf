"""Tables and processes for tests of clusters: chunks that wait at gates, a scheduler to kill."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from lowland._base.rows.chunks import Block
from lowland._base.rows.table import Rows

PATIENCE = 60  # seconds until a test gives up


def until(condition, what):
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


class Gate:
    """A folder in which tasks announce themselves, and wait until the test opens it."""

    def __init__(self, folder, litter=None):
        self.folder = Path(folder)
        self.litter = litter  # a folder where a task has left an unfinished part when it waits
        self.folder.mkdir(parents=True, exist_ok=True)

    def pass_through(self, number):
        if self.litter is not None and not (self.folder / "open").exists():
            (self.litter / f".part-{number:06d}.parquet-{os.getpid()}.part").touch()
        (self.folder / f"{number}-{os.getpid()}.waits").touch()
        until((self.folder / "open").exists, "the gate to open")

    def open(self):
        (self.folder / "open").touch()

    def waiting(self):
        """Process ids of the workers that wait."""
        return {int(path.stem.split("-")[1]) for path in self.folder.glob("*.waits")}


class GatedChunk:
    """Rows made from a counter; some chunks wait at a gate before they are read."""

    def __init__(self, number, n_rows=50, n_columns=6, gate=None, fatal=False):
        self.number, self.n_rows, self.n_columns = number, n_rows, n_columns
        self.gate, self.fatal = gate, fatal

    @property
    def identity(self):  # a gate is not part of the table
        return ("counter", self.number, self.n_rows, self.n_columns)

    @property
    def source(self):
        return f"file-{self.number}.parquet"

    def read(self, start):
        if self.gate is not None:
            self.gate.pass_through(self.number)
        if self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        rng = np.random.default_rng(self.number)
        X = rng.standard_normal((self.n_rows, self.n_columns)) * 10.0 ** rng.integers(-3, 4)
        return Block(X, start, None, None, self.source)


def counted_rows(n_chunks=40, *, gate=None, at=(), fatal=None, n_rows=50):
    """A table of one task per chunk; the chunks ``at`` wait at the gate."""
    chunks = [
        GatedChunk(i, n_rows, gate=gate if i in at else None, fatal=i == fatal)
        for i in range(n_chunks)
    ]
    return Rows(chunks, 6, task_rows=n_rows)


def kill(pids):
    """End processes as if their machines had failed."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def running_scheduler(folder, n_workers=2):
    """A scheduler and workers, each a process of its own: the address, and the scheduler."""
    file = Path(folder) / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    where = ["--scheduler-file", str(file), "--no-dashboard"]
    started = []

    def start(program, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *where, *options]
        started.append(subprocess.Popen(command, env=environment, **quiet))

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        until(file.exists, "the scheduler")
        for _ in range(n_workers):
            start("worker", "--nthreads", "1", "--no-nanny")
        yield file.read_text().split('"address": "')[1].split('"')[0], started[0]
    finally:
        for process in started:
            process.kill()
            process.wait()

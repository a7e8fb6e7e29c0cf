"""Many runs of the program at the price of one start: each runs in a fork.

A run that crashes, hangs or takes all memory ends itself, and only itself. The process that forks
has imported the libraries but never used them, so that no thread of theirs is lost by forking.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

DOCUMENTED = {0, 1, 2, 130, 141, 143}  # 3 is a defect
NOISE = ("Traceback", "panicked", "RUST_BACKTRACE", "HDF5-DIAG", "Fatal Python error")


class Run(NamedTuple):
    """How a run ended: its exit code (negative: the signal that killed it), and what it took."""

    arguments: list[str]
    code: int
    out: str
    err: str
    seconds: float
    peak_mb: int


def run_all(commands: Iterable[Sequence[object]], folder: Path, seconds: float = 60) -> list[Run]:
    """The outcome of each command, run in ``folder``; after ``seconds`` it is killed."""
    lines = [json.dumps([str(argument) for argument in command]) for command in commands]
    done = subprocess.run(
        [sys.executable, __file__, str(folder), str(seconds)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "LOWLAND_DEBUG"},
    )
    assert done.returncode == 0, done.stderr
    return [Run(*json.loads(line)) for line in done.stdout.splitlines()]


def check(run: Run, *, most_seconds: float = 60, most_mb: int = 700) -> None:
    """A run ends with a documented code, and says why in one line of ours, in bounds."""
    assert run.code in DOCUMENTED, (run.code, run.err)
    assert not any(noise in run.err + run.out for noise in NOISE), run.err
    lines = run.err.splitlines()
    assert all(line.startswith("lowland: ") for line in lines), run.err
    errors = [line for line in lines if line.startswith("lowland: error: ")]
    assert len(errors) == (run.code not in (0, 1, 141)), (run.code, run.err)
    assert run.seconds < most_seconds, run.seconds
    assert run.peak_mb < most_mb, run.peak_mb


def _serve(folder: str, seconds: float) -> None:
    import h5py  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import PIL.Image  # noqa: F401
    import polars  # noqa: F401
    import scipy.io
    import scipy.sparse  # noqa: F401

    import lowland.cli.app
    import lowland.workflow  # noqa: F401
    from lowland._base import registry

    registry.all_methods()  # imports all of them
    os.chdir(folder)
    for line in sys.stdin:
        arguments = json.loads(line)
        sys.stdout.write(json.dumps([arguments, *_outcome(arguments, seconds)]) + "\n")
        sys.stdout.flush()


def _outcome(arguments: list[str], seconds: float) -> tuple[int, str, str, float, int]:
    import tempfile
    import time

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            _run(arguments, out.fileno(), err.fileno())
        ended, deadline = 0, start + seconds
        while not ended:
            ended, status, usage = os.wait4(child, os.WNOHANG)
            if not ended and time.monotonic() > deadline:
                os.kill(child, 9)
                ended, status, usage = os.wait4(child, 0)
            time.sleep(0.002)
        took = time.monotonic() - start
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return os.waitstatus_to_exitcode(status), *texts, took, usage.ru_maxrss // 1024


def _run(arguments: list[str], out: int, err: int) -> None:
    """Run the program in the fork and leave."""
    code = 99
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, descriptor in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(source, descriptor)
        from lowland.cli import main

        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1], float(sys.argv[2]))

"""Ctrl-C keeps the map there is, in a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._base.interrupts import stopped_by_interrupt


@pytest.fixture
def slow(tmp_path):
    X = np.random.default_rng(0).standard_normal((2000, 10)).astype(np.float32)
    np.save(tmp_path / "t.npy", X)
    return X


# The program, which leaves a file behind once its optimization has come to step 20.
TELLING = """
import pathlib, sys
from lowland._base.monitor import Monitor
from lowland.cli import main

iteration = Monitor.iteration

def telling(self, i, *details, **named):
    if i == 20:
        pathlib.Path("running").touch()
    return iteration(self, i, *details, **named)

Monitor.iteration = telling
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_during_optimization_keeps_the_partial_map(slow, tmp_path):
    arguments = ["map", "t.npy", "-o", "out", "--max-iter", "1000000", "--tol", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", TELLING, *arguments],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "running").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 1, err
    assert "stopped; the map computed so far is kept" in err
    assert "stopped early" in out
    frame = pl.read_csv(tmp_path / "out" / "map.csv")
    assert frame.height == 2000
    assert frame.select(pl.col("x", "y").is_finite().all()).row(0) == (True, True)
    assert "stopped early" in (tmp_path / "out" / "report.html").read_text()


DELAYS = (0.12, 0.3, 0.6, 1.0, 1.5)
ENDINGS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_a_signal_at_any_time_ends_in_one_line_and_no_half_written_file(tmp_path):
    """Earlier than the first delay there may be no Python yet that could say something."""
    started = []
    for number in ENDINGS:
        for delay in DELAYS:
            folder = tmp_path / f"{number.name}-{delay}"
            folder.mkdir()
            command = [sys.executable, "-m", "lowland", "map", "iris", "-m", "pca", "-o", "out"]
            process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            _await_python(process)
            time.sleep(delay - DELAYS[0])
            process.send_signal(number)
            started.append((number, folder, process))
    for number, folder, process in started:
        _, err = process.communicate(timeout=120)
        code, word = ENDINGS[number]
        files = sorted(path.name for path in folder.rglob("*") if path.is_file())
        assert not list(folder.rglob(".lowland*")), files
        if process.returncode == 0:  # it was done before
            assert err == ""
            assert len(files) == 5
            continue
        if number == signal.SIGINT and process.returncode == 1:  # the map was made already
            assert err.startswith("lowland: warning: the ")
            assert err.endswith("it was stopped by Ctrl-C; the map is kept\n")
            assert {"map.csv", "model.lowland"} <= set(files)
            continue
        assert process.returncode == code, err
        assert err.startswith(f"lowland: error: {word}; ")
        assert err.count("\n") == 1
        written = "results were written" in err
        assert len(files) == (5 if written else 0)


def _await_python(process):
    """Wait until the process handles signals: Python asks for its own handler of SIGTERM."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                caught = next(line for line in status if line.startswith("SigCgt")).split()[1]
        except OSError:  # no such files outside of Linux
            time.sleep(1)
            return
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.002)
    raise AssertionError("the program does not handle signals")


def test_signals_are_handled_before_the_slow_imports():
    code = (
        "import signal, sys; import lowland.cli; slow = [m for m in ('typing', 'typer', 'numpy') "
        "if m in sys.modules]; sys.exit(' '.join(slow) or 0)"
    )
    # without site-packages, whose own start may import anything
    paths = {"PYTHONPATH": os.path.dirname(os.path.dirname(lowland.__file__))}
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **paths})
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_while_files_are_moved_waits_until_all_are_in_place(tmp_path, monkeypatch):
    import lowland.tables.writing as writing

    original = writing._move_all

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        original(*arguments)

    monkeypatch.setattr(writing, "_move_all", interrupted)
    targets = [tmp_path / "a", tmp_path / "b"]

    def write():
        with writing.staged_outputs(targets) as staged:
            for path in staged:
                path.write_text("whole")

    with pytest.raises(KeyboardInterrupt) as caught:
        write()
    assert "written" in caught.value.__notes__
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_job_in_the_background_ignores_interrupts(tmp_path):
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "from lowland.cli import main; from lowland._base import registry; "
        "fit = registry.get('pca').fit_transform; "
        "registry.get('pca').fit_transform = lambda *a: "
        "(os.kill(os.getpid(), signal.SIGINT), fit(*a))[1]; "
        "sys.exit(main(['map', 'iris', '-m', 'pca', '--no-report', '-o', 'out']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


class Running:
    """Something that can be cancelled, or not."""

    def __init__(self, runs):
        self.runs = runs

    def cancel(self):
        return self.runs


def test_the_second_interrupt_ends_the_program():
    with stopped_by_interrupt(Running(True)) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_when_nothing_runs_ends_the_program():
    with stopped_by_interrupt(Running(False)) as stop:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert not stop.asked


def test_the_old_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with stopped_by_interrupt(lowland.PCA()):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_cancel_keeps_the_map_of_a_running_optimization():
    X = np.random.default_rng(0).standard_normal((200, 5))
    model = lowland.TSNE(max_iter=100_000, tol=0, random_state=0)
    model.set_params(callback=lambda step, Y, loss: model.cancel() if step == 30 else None)
    model.fit(X)
    assert model.n_iter_ <= 31
    assert np.isfinite(model.embedding_).all()
    assert not model.cancel()  # nothing runs: nothing happens


def test_an_interrupt_inside_a_destructor_is_not_lost():
    """Python drops what a destructor raises."""
    program = """
import os, signal, time
from lowland._base.interrupts import Ended, Signals

class Slow:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)

try:
    with Signals(final=True):
        Slow()
        time.sleep(20)
except Ended as ended:
    print(ended.number)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("2\n", "")

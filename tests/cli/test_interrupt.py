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
from lowland.study._interrupt import stopped_by_interrupt


@pytest.fixture
def slow(tmp_path):
    X = np.random.default_rng(0).standard_normal((2000, 10)).astype(np.float32)
    np.save(tmp_path / "t.npy", X)
    return X


def test_an_interrupt_during_optimization_keeps_the_partial_map(slow, tmp_path):
    command = [
        sys.executable, "-m", "lowland.cli", "map", "t.npy", "-o", "out", "--max-iter", "1000000",
        "--tol", "0",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        time.sleep(8)  # the optimization alone would take an hour
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

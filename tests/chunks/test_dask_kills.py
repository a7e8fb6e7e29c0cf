"""Workers killed in the middle of a run: same bytes, each row once, no stray files.

Tasks wait at a gate until all four workers wait there. The test then kills some of the workers and
opens the gate, so every kill happens mid-run, whatever the speed of the machine.
"""

from __future__ import annotations

import threading

import numpy as np
import polars as pl
import pytest

from lowland import PCA
from lowland.chunks import Dask
from lowland.errors import ClusterError
from support.clusters import Gate, counted_rows, kill, until

pytest.importorskip("distributed")

N_CHUNKS = 24
GATED = range(6, N_CHUNKS)


class Killing(threading.Thread):
    """Kills n of four workers when all of them wait at the gate, then opens it."""

    def __init__(self, gate, n):
        super().__init__()
        self.gate, self.n = gate, n
        self.start()

    def run(self):
        until(lambda: len(self.gate.waiting()) == 4, "four workers at the gate")
        kill(sorted(self.gate.waiting())[: self.n])
        self.gate.open()


def has_four_workers(client):
    until(lambda: len(client.nthreads()) == 4, "four workers")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    rows = counted_rows(N_CHUNKS)
    pca = PCA(3).fit(rows)
    out = tmp_path_factory.mktemp("kills") / "out"
    pca.transform(rows).write(out)
    return pca, {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize("n", [2, 4])
def test_killed_workers_do_not_change_a_fit(cluster, expected, tmp_path, n):
    pca, _ = expected
    has_four_workers(cluster)
    gate = Gate(tmp_path / "fit")
    killing = Killing(gate, n)
    with Dask(cluster):
        fitted = PCA(3).fit(counted_rows(N_CHUNKS, gate=gate, at=GATED))
    killing.join()
    for name in ("components_", "mean_", "explained_variance_"):
        assert getattr(fitted, name).tobytes() == getattr(pca, name).tobytes()


@pytest.mark.parametrize("n", [1, 4])
def test_killed_workers_do_not_change_what_is_written(cluster, expected, tmp_path, n):
    pca, files = expected
    has_four_workers(cluster)
    out = tmp_path / "out"
    gate = Gate(tmp_path / "write", litter=out)
    placed = pca.transform(counted_rows(N_CHUNKS, gate=gate, at=GATED))
    killing = Killing(gate, n)
    with Dask(cluster):
        parts = placed.write(out)
    killing.join()
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files
    found = pl.concat([pl.read_parquet(path) for path in parts.files])
    assert np.array_equal(found["row"].to_numpy(), np.arange(N_CHUNKS * 50))


def test_a_task_that_ends_its_workers_is_named(cluster):
    has_four_workers(cluster)
    before = cluster.run_on_scheduler(_allow_failures, n=0)
    try:
        with (
            Dask(cluster),
            pytest.raises(ClusterError, match=r"^file-0\.parquet .*a worker died") as caught,
        ):
            PCA(2).fit(counted_rows(1, fatal=0))
    finally:
        cluster.run_on_scheduler(_allow_failures, n=before)
    assert "\n" not in str(caught.value)
    assert "memory" in str(caught.value)


def _allow_failures(n, dask_scheduler=None):
    before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, n
    return before

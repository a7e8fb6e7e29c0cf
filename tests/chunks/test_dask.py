"""Tables gone through by workers: the bytes of one process, errors in one line, nothing left."""

from __future__ import annotations

import functools
import operator
import os
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import polars as pl
import pytest

import lowland
from lowland import PCA
from lowland._base import registry
from lowland._base.monitor import Monitor
from lowland._base.rows.engines import Stream, using
from lowland._base.threads import available_cpus, limit_threads, resolve_n_jobs
from lowland.chunks import Dask, open_rows
from lowland.chunks.connection import Connection
from lowland.chunks.dask_engine import INLINE, task_digest
from lowland.errors import ClusterError, DataError, ParameterError, StoppedError
from support.cases import each
from support.clusters import Gate, counted_rows, running_scheduler, until
from support.rows import labeled_rows, suited, target_for
from support.states import assert_same_state, fitted_state

pytest.importorskip("distributed")

FITTING = [cls for cls in (*registry.all_methods(), *registry.all_selectors()) if cls.fits_rows]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(3)
    for i in range(7):
        X = rng.standard_normal((230, 6)) * 10.0**i
        pl.from_numpy(X, schema=[f"c{j}" for j in range(6)], orient="row").write_parquet(
            folder / f"{i}.parquet"
        )
    return folder


@pytest.fixture(scope="module")
def streamed(files, tmp_path_factory):
    rows = open_rows(files / "*.parquet", task_rows=60)
    pca = PCA(3).fit(rows)
    out = tmp_path_factory.mktemp("streamed") / "out"
    pca.transform(rows).write(out)
    return rows, pca, contents(out)


def check_same(engine, streamed, folder):
    rows, pca, expected = streamed
    with engine:
        again = PCA(3).fit(rows)
        again.transform(rows).write(folder)
    for name in ("components_", "mean_", "explained_variance_"):
        assert getattr(again, name).tobytes() == getattr(pca, name).tobytes()
    assert contents(folder) == expected


@pytest.mark.smoke
def test_four_workers_give_the_bytes_of_one_process(cluster, streamed, tmp_path):
    check_same(Dask(cluster), streamed, tmp_path / "out")


@each("method", FITTING, ids=lambda cls: cls.__name__)
def test_every_fit_of_workers_has_the_bytes_of_a_stream(cluster, method):
    rng = np.random.default_rng(4)
    X = rng.gamma(2.0, size=(120, 5)) * [5.0, 3.0, 2.0, 1.4, 1.0]
    y = target_for(method, len(X))
    rows, name = labeled_rows(X, y), None if y is None else "kind"
    here = method(**suited(method, len(X))).fit(rows, name)
    with Dask(cluster):
        there = method(**suited(method, len(X))).fit(rows, name)
    assert_same_state(fitted_state(here), fitted_state(there))


@pytest.mark.slow
@each("n", [1, 2])
def test_any_number_of_processes_gives_these_bytes(streamed, tmp_path, n):
    check_same(Dask(f"local:{n}"), streamed, tmp_path / f"out{n}")


@each("n_chunks", [1, 7, 8, 9, 65])
def test_merges_have_the_shape_of_the_tree(cluster, n_chunks):
    rows = counted_rows(n_chunks)
    f, merge = functools.partial(_first_value), _paired
    with Dask(cluster):
        found = rows.total(f, merge)
    assert found == rows.total(f, merge)


def _first_value(block):
    return f"{block.start}"


def _paired(a, b):
    return f"({a} {b})"


def test_results_come_in_the_order_of_the_tasks(cluster):
    rows = counted_rows(90)
    with Dask(cluster):
        assert list(rows.results(_late)) == [block.start for block in rows.blocks()]


def _late(blocks, argument):
    block = next(blocks)
    time.sleep(0.02 * (block.start // 50 % 3))
    return block.start


def test_large_objects_go_through_scratch_and_leave_nothing(cluster, tmp_path):
    rows = counted_rows(5).map(functools.partial(_shifted, np.ones(INLINE)))
    seen = []
    with Dask(cluster, scratch=tmp_path / "scratch"):
        for value in rows.results(_first_number):
            seen.append(value)
            stored = list((tmp_path / "scratch").iterdir())
            assert [path.suffix for path in stored] == [".pickle"]
            assert stored[0].stat().st_size > 8 * INLINE
    assert seen == list(rows.results(_first_number))
    assert not list((tmp_path / "scratch").iterdir())


def _shifted(large, X):
    return X + large[0]


def _first_number(blocks, argument):
    return float(next(blocks).X[0, 0])


def test_an_error_about_data_names_the_file(cluster):
    rows = counted_rows(20).map(_refusing)
    with Dask(cluster), pytest.raises(DataError, match=r"^file-\d+\.parquet: too large$") as caught:
        PCA(2).fit(rows)
    assert "\n" not in str(caught.value)
    assert_forgotten(cluster)


def _refusing(X):
    if np.abs(X).max() > 1000:
        raise DataError("too large")
    return X


def assert_forgotten(client):
    until(lambda: not client.run_on_scheduler(_n_tasks), "the scheduler to forget all tasks")


def _n_tasks(dask_scheduler=None):
    return len(dask_scheduler.tasks)


def test_a_file_that_workers_cannot_read_is_named(cluster, files, tmp_path):
    copy = tmp_path / "gone.parquet"
    copy.write_bytes((files / "0.parquet").read_bytes())
    rows = open_rows(copy)
    copy.unlink()
    with Dask(cluster), pytest.raises(DataError, match=r"gone\.parquet: no such file"):
        PCA(2).fit(rows)


def test_a_cancelled_run_leaves_no_tasks(cluster, tmp_path):
    gate = Gate(tmp_path)
    rows = counted_rows(60, gate=gate, at=range(60))
    monitor = Monitor()
    threading.Thread(target=lambda: (until(gate.waiting, "tasks"), monitor.cancel())).start()
    with Dask(cluster), pytest.raises(StoppedError):
        rows.total(_first_value, _paired, monitor)
    gate.open()
    assert_forgotten(cluster)


def test_an_interrupted_iteration_leaves_no_tasks(cluster):
    with Dask(cluster):
        results = counted_rows(60).results(_first_number)
        next(results)
        results.close()
    assert_forgotten(cluster)


def test_tasks_have_the_threads_they_were_given(cluster):
    with Dask(cluster):
        assert set(counted_rows(6).results(_threads)) == {1}
    with Dask(cluster, threads=2):
        assert set(counted_rows(6).results(_threads)) == {min(2, available_cpus())}


def _threads(blocks, argument):
    return resolve_n_jobs(None)


def test_a_limit_of_threads_holds_within_its_block():
    every = resolve_n_jobs(None)
    with limit_threads(1):
        with limit_threads(5):
            assert (resolve_n_jobs(None), resolve_n_jobs(-1), resolve_n_jobs(7)) == (1, 1, 7)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(resolve_n_jobs(None)))
        thread.start()
        thread.join()
    assert resolve_n_jobs(None) == every == seen[0]


def test_keys_differ_with_everything_that_results_depend_on(monkeypatch):
    first, second = counted_rows(2).tasks
    other = first._replace(chunks=second.chunks)
    given = [(b"data", first), (b"date", first), (b"data", other)]
    found = {task_digest("work", *parts) for parts in given} | {task_digest("more", *given[0])}
    assert task_digest("work", *given[0]) in found
    monkeypatch.setattr(lowland, "__version__", "99")
    found.add(task_digest("work", *given[0]))
    assert len(found) == 5


def test_workers_with_another_version_are_refused(cluster, monkeypatch):
    monkeypatch.setattr(lowland, "__version__", "99.1")
    with (
        pytest.raises(ClusterError, match=r"worker has lowland \S+, but this process 99\.1"),
        Dask(cluster),
    ):
        pass


def test_mixed_instruction_sets_are_told_once(cluster):
    connection = Connection(cluster, "tcp://here:1", is_local=False)
    connection.known["tcp://elsewhere:1"] = ("baseline", "other")
    with pytest.warns(UserWarning, match=r"tcp://here:1: .*different instruction sets \(.*other"):
        connection.inspect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert connection.inspect() == 4


@each("scheduler", ["local:0", "local:99999", "local:9" * 9, "here", 4, None, "", "tcp://x"])
def test_what_is_no_scheduler_is_refused(scheduler):
    with pytest.raises(ParameterError, match=r"scheduler=.*is not allowed"), Dask(scheduler):
        pass


@each("options", [{"threads": 0}, {"threads": 2**40}, {"retries": -1}, {"timeout": 0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ParameterError, match=f"Dask: {next(iter(options))}="):
        Dask("local:2", **options)


def test_an_address_where_nobody_listens_is_named():
    with (
        pytest.raises(ClusterError, match=r"^tcp://127\.0\.0\.1:1: no scheduler answers") as caught,
        Dask("tcp://127.0.0.1:1", timeout=0.5),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'lowland\[dask\]'"), Dask("local:2"):
        pass


def test_an_engine_outside_of_its_block_is_refused():
    engine = Dask("local:2")
    with using(engine), pytest.raises(ParameterError, match="with block"):
        counted_rows(2).total(_first_value, operator.add)


def test_importing_lowland_distributed_does_not_import_dask():
    code = "import sys, lowland.chunks; assert not {'dask', 'distributed'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_a_scheduler_without_workers_is_not_waited_for_forever(tmp_path):
    with (
        running_scheduler(tmp_path, n_workers=0) as (address, _),
        pytest.raises(ClusterError, match=rf"^{address}: .*no workers for 1 s"),
        Dask(address, timeout=1),
    ):
        PCA(2).fit(counted_rows(3))


@pytest.mark.slow
def test_a_killed_scheduler_is_one_line_and_resume_ends_with_the_same_bytes(tmp_path):
    gate = Gate(tmp_path / "gate")
    plain = counted_rows(12)
    pca = PCA(2).fit(plain)
    pca.transform(plain).write(tmp_path / "whole")
    gated = pca.transform(counted_rows(12, gate=gate, at=[5]))  # one of two workers goes on
    out = tmp_path / "out"
    with running_scheduler(tmp_path) as (address, scheduler):

        def kill_late():
            until(lambda: len(list(out.glob("part-*"))) == 11, "all parts but one")
            scheduler.kill()

        killing = threading.Thread(target=kill_late)
        killing.start()
        with Dask(address), pytest.raises(ClusterError, match="the scheduler ended") as caught:
            gated.write(out)
        killing.join()
    assert "\n" not in str(caught.value)
    parts = pca.transform(plain).write(out, resume=True)
    assert parts.n_kept == 11
    assert contents(out) == contents(tmp_path / "whole")


def test_streams_are_used_outside_of_the_block(cluster):
    rows = counted_rows(3)
    with Dask(cluster):
        assert os.getpid() not in set(rows.results(_process))
    assert set(rows.results(_process)) == {os.getpid()}
    assert set(Stream().run(rows.job("rows", _process, rows.tasks), Monitor())) == {os.getpid()}


def _process(blocks, argument):
    return os.getpid()

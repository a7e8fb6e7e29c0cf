"""Tables in chunks: cuts, the tree of merges, samples, fits, placement, part files."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import lowland
from lowland import PCA
from lowland._base.rows.arrays import array_rows
from lowland._base.rows.chunks import chunk_rows, tasks_of
from lowland._base.rows.folding import FAN_IN, TreeFold, row_keys, sampled_rows
from lowland.errors import DataError, ParameterError
from support.cases import each


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((1003, 7)) @ rng.standard_normal((7, 7)) + 3


def test_tasks_have_each_row_once_and_in_order(X):
    rows = array_rows(X, task_rows=100)
    seen = [block for task in rows.tasks for block in task.blocks()]
    assert [block.start for block in seen] == [*range(0, 1003, 100)]
    assert np.array_equal(np.concatenate([block.X for block in seen]), X)


@each("n", [1, 7, 8, 9, 63, 64, 65, 600])
def test_the_tree_fed_in_order_is_the_tree_built_level_by_level(n):
    def merge(a, b):
        return f"({a}{b})"

    level = [chr(0x4E00 + i) for i in range(n)]
    tree = TreeFold(merge)
    for value in level:
        tree.add(value)
    while len(level) > 1:
        groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
        level = []
        for first, *others in groups:
            for other in others:
                first = merge(first, other)
            level.append(first)
    assert tree.result() == level[0]


def test_the_tree_may_merge_whole_groups():
    letters = [chr(0x4E00 + i) for i in range(600)]
    pairs, groups = TreeFold(lambda a, b: f"({a}{b})"), TreeFold(None, _nested)
    for letter in letters:
        pairs.add(letter)
        groups.add(letter)
    assert groups.result() == pairs.result()
    with pytest.raises(DataError, match="there are no rows"):
        TreeFold(max).result()


def _nested(group):
    """A whole group as its members would be merged one by one."""
    found, *others = group
    for other in others:
        found = f"({found}{other})"
    return found


def test_a_task_takes_small_files_together(X):
    chunks = [chunk for i in range(0, 1000, 10) for chunk in array_rows(X[i : i + 10]).chunks]
    tasks = tasks_of(chunks, 7, task_rows=95)
    assert [task.n_rows for task in tasks] == [90] * 11 + [10]
    assert [task.start for task in tasks] == [*range(0, 1000, 90)]


def test_chunks_of_wide_tables_are_short():
    assert [chunk_rows(p) for p in (1, 50, 1000, 100_000)] == [1 << 18, 1 << 17, 1 << 13, 256]


def test_a_sample_has_the_smallest_keys():
    keys = row_keys(0, 5000, 3)
    assert len(set(keys.tolist())) == 5000
    chosen = sampled_rows(5000, 40, 3)
    assert np.array_equal(chosen, np.sort(np.argsort(keys)[:40]))
    assert set(chosen) <= set(sampled_rows(5000, 400, 3))
    assert not np.array_equal(chosen, sampled_rows(5000, 40, 4))


def test_a_sample_is_uniform():
    counts = sum(np.bincount(sampled_rows(50, 10, seed), minlength=50) for seed in range(2000))
    expected = 400.0
    chi_square = ((counts - expected) ** 2 / (expected * 0.8)).sum()
    assert chi_square < 86  # 0.999 of a chi-square distribution with 49 degrees of freedom


@each("n", [0, -1, 2.5, True, 2**70])
def test_a_sample_of_nonsense_is_refused(X, n):
    with pytest.raises(ParameterError, match="sample: n="):
        array_rows(X).sample(n)


def test_sampled_rows_are_rows_of_the_table(X):
    rows = array_rows(X, task_rows=64)
    assert np.array_equal(rows.sample(50, seed=2), X[sampled_rows(1003, 50, 2)])
    assert np.array_equal(rows.sample(5000), X)


def test_a_later_fit_does_not_change_places_that_are_computed_later(X):
    pca = PCA(2).fit(X)
    before, placed = pca.transform(X), pca.transform(array_rows(X))
    pca.fit(X[:100])
    assert np.array_equal(placed.to_numpy(), before)


def test_parts_hold_each_row_once_and_a_second_run_keeps_them(X, tmp_path):
    beside = pl.DataFrame({"kind": ["a", "b", "c"] * 334 + ["d"]})
    placed = PCA(2).fit(X).transform(array_rows(X, beside=beside, task_rows=300))
    parts = placed.write(tmp_path / "out")
    found = pl.concat([pl.read_parquet(path) for path in parts.files])
    assert found.columns == ["row", "pca0", "pca1", "kind"]
    assert found["row"].to_list() == [*range(1003)]
    assert np.array_equal(found.select("pca0", "pca1").to_numpy(), placed.to_numpy())
    parts.files[1].unlink()
    again = placed.write(tmp_path / "out", resume=True)
    assert again.n_kept == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_lowland.json",
        *(f"part-{i:06d}.parquet" for i in range(4)),
    ]


def test_the_digest_of_a_table_is_the_same_in_another_process(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    text = (
        "import sys, numpy as np\n"
        "from lowland import PCA\n"
        "from lowland._base.rows.arrays import array_rows\n"
        "X = np.load(sys.argv[1])\n"
        "print(PCA(2, n_jobs=1).fit(X).transform(array_rows(X)).digest())\n"
    )
    command = [sys.executable, "-c", text, str(tmp_path / "X.npy")]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    pca = PCA(2).fit(X)
    pca.save(tmp_path / "pca.lowland")
    loaded = lowland.load(tmp_path / "pca.lowland")
    rows = array_rows(X)
    assert pca.transform(rows).digest() == loaded.transform(rows).digest() == there
    assert PCA(2, whiten=True).fit(X).transform(rows).digest() != there
    assert pca.transform(array_rows(X + 1)).digest() != there


def test_parts_of_another_table_are_refused(X, tmp_path):
    pca = PCA(2).fit(X)
    pca.transform(array_rows(X)).write(tmp_path / "out")
    with pytest.raises(DataError, match="is not empty"):
        pca.transform(array_rows(X)).write(tmp_path / "out")
    with pytest.raises(DataError, match="holds parts of another run"):
        PCA(2).fit(X[:50]).transform(array_rows(X)).write(tmp_path / "out", resume=True)

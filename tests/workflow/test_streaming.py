"""Maps of tables that are read in chunks: the same map, resumed, measured against all rows."""

from __future__ import annotations

import functools
import hashlib
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.text import Text

import lowland
from lowland import PCA, TSNE
from lowland._base.rows.arrays import array_rows
from lowland._base.rows.engines import Stream, using
from lowland._base.rows.folding import sampled_rows
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.metrics import (
    Comparison,
    continuity,
    mean_relative_rank_errors,
    neighbor_recall,
    trustworthiness,
)
from lowland.preparation.preparation import Preparation
from lowland.tables import coordinate_names
from lowland.tables.options import TableOptions
from lowland.workflow import make_map, placing
from lowland.workflow._display import grouped
from lowland.workflow.options import RunOptions, RunSettings
from lowland.workflow.outputs import RunFolder
from lowland.workflow.placing import stream_placement
from lowland.workflow.run import MemoryRows, run_map
from lowland.workflow.streaming import roles, rows
from lowland.workflow.streaming.measuring import chance_values, measure_rows, measured_numbers
from support.cases import each

ROWS, TASK = 900, 128


def table(n=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    X = rng.standard_normal((n, 5)) * [1, 2, 3, 40, 500] + 5 * kind[:, None]
    columns = {f"c{i}": X[:, i] for i in range(5)}
    names = [f"r{i}" for i in range(n)]
    return pl.DataFrame({"name": names, **columns, "kind": [f"k{i}" for i in kind]})


def written(frame, folder, n_files=3):
    """The frame in some files of a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    step = -(-frame.height // n_files)
    paths = [folder / f"part{i}.parquet" for i in range(n_files)]
    for i, path in enumerate(paths):
        frame[i * step : (i + 1) * step].write_parquet(path)
    return [str(path) for path in paths]


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(rows, "TASK_ROWS", TASK)
    monkeypatch.setattr(placing, "TASK_ROWS", TASK)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return written(table(), tmp_path_factory.mktemp("files"))


def streamed(paths, cls=PCA, parameters=None, stream=None, home=None, **options):
    how = TableOptions(**options)
    settings = RunSettings(**{"engine": "stream", "n_jobs": 1, "measure": False, **(stream or {})})
    return run_map(rows.ChunkRows(paths, RunOptions(how, settings), home), cls, parameters or {})


def whole(result):
    return pl.concat([pl.read_parquet(path) for path in result.parts.files])


def digests(folder):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path(folder).iterdir()
        if path.suffix == ".parquet"
    }


# --- the same map ---------------------------------------------------------------------------


def test_pca_of_chunks_is_that_of_the_table_with_labels_and_ids(files):
    result, expected = streamed(files, id_column="name"), make_map(files, "pca", id_column="name")
    found = whole(result)
    assert len(result.parts.files) == 9  # files of 300 rows, in chunks of 128
    assert found.select(expected.map.columns).drop("x", "y").equals(expected.map.drop("x", "y"))
    np.testing.assert_allclose(found.select("x", "y"), expected.coordinates, atol=1e-6)
    assert result.map.equals(found.select(result.map.columns))
    assert result.fitted_rows == result.n_rows == ROWS
    assert result.log[-1] == "fitted on all 900 rows, which were read in chunks"
    assert repr(result) == "MapResult(PCA of 900 rows, 2 dimensions)"
    assert result.model.transform(table().select(f"c{i}" for i in range(5))).shape == (ROWS, 2)


def test_a_sample_is_fitted_and_all_rows_are_placed_by_its_model(files):
    result = streamed(files, TSNE, {"max_iter": 30, "perplexity": 10.0}, {"sample": 200})
    found = whole(result)
    assert found.height == ROWS
    assert found["row"].to_list() == [*range(ROWS)]
    features = table().select(f"c{i}" for i in range(5))
    placed = result.model.transform(features)
    assert np.array_equal(found.select("x", "y").to_numpy(), placed)
    assert result.estimator.embedding_.shape == (200, 2)
    said = "fitted on 200 of 900 rows; the others are placed in the map of these"
    assert result.log[-1] == said
    prepared = result.model.steps[0].transform(features)
    assert np.array_equal(result.estimator.fitted_rows_, prepared[sampled_rows(ROWS, 200, 0)])


def test_text_takes_part_as_in_memory(tmp_path):
    frame = table().select("c0", "kind", pl.Series("size", ["low", "high", "mid"] * 300))
    paths = written(frame, tmp_path / "in")
    how = {"categories": "one-hot", "order": {"size": ["low", "mid", "high"]}}
    expected = make_map(paths, "pca", **how)
    np.testing.assert_allclose(
        whole(streamed(paths, **how)).select("x", "y"), expected.coordinates, atol=1e-6
    )


def test_wide_tables_are_reduced_by_pca_of_all_rows(tmp_path):
    X = np.random.default_rng(1).standard_normal((300, 60))
    paths = written(pl.from_numpy(X, schema=[f"c{i}" for i in range(60)]), tmp_path / "in")
    given = {"max_iter": 20, "perplexity": 10.0}
    result = streamed(paths, TSNE, given, {"sample": 100})
    assert [type(step).__name__ for step in result.model.steps] == ["PCA", "TSNE"]
    assert result.model.steps[0].n_samples_seen_ == 300
    expected = make_map(paths, "tsne", **given).model.steps[0]
    np.testing.assert_allclose(result.model.steps[0].components_, expected.components_, atol=1e-8)
    assert any("reduced from 60 to 50 columns by PCA" in line for line in result.log)


def test_names_of_labels_give_way_to_coordinates(tmp_path):
    frame = table().rename({"kind": "x", "name": "y"})
    result = streamed(written(frame, tmp_path / "in"), id_column="y")
    assert sorted(whole(result).columns) == ["file", "x", "x_label", "y", "y_id"]
    assert {*result.map.columns} == {*whole(result).columns}


def test_the_preparation_of_a_sample_says_so(files, monkeypatch):
    monkeypatch.setattr(roles, "LOOKED_AT", 250)
    result = streamed(files)
    assert "prepared as a sample of 250 of 900 rows suggests" in result.log
    assert any(line.startswith("900 rows, 5 columns of numbers") for line in result.log)
    assert len(result.map) == 250
    assert whole(result).filter(pl.col("row").is_in(result.map["row"].to_list()))[
        "x"
    ].to_list() == pytest.approx(result.map["x"].to_list())
    texts = [" ".join(text.get_text().split()) for text in result.picture().findobj(Text)]
    assert "part0.parquet and 2 more files: PCA of a sample of 250 of 900 rows" in texts
    summary = result.summary()
    assert summary["title"] == "part0.parquet and 2 more files: PCA of 900 rows"
    assert summary["streamed"]["rows"] == 900
    assert summary["streamed"]["shown"] == 250


# --- hostile files --------------------------------------------------------------------------


@each(
    ("value", "message"),
    [
        (None, r"1 missing value in .*'c3' \(1\).*mean"),
        (np.inf, r"1 infinite value in .*'c3' \(1\)"),
    ],
)
def test_bad_values_outside_the_sample_are_refused_with_file_and_column(
    tmp_path, monkeypatch, value, message
):
    monkeypatch.setattr(roles, "LOOKED_AT", 50)
    looked = sampled_rows(ROWS, 50, roles.LOOK_SEED)
    bad = next(i for i in range(650, ROWS) if i not in looked)
    spoiled = pl.when(pl.int_range(pl.len()) == bad).then(value).otherwise(pl.col("c3"))
    paths = written(table().with_columns(spoiled.alias("c3")), tmp_path / "in")
    with pytest.raises(DataError, match=rf"part2\.parquet, rows 0 to 127: {message}"):
        streamed(paths)
    if value is None:
        found = whole(streamed(paths, missing="mean"))
        assert np.isfinite(found.select("x", "y").to_numpy()).all()


@each("kind", ["empty", "corrupt", "lacks", "text", "more"])
def test_a_file_unlike_the_others_is_named(kind, tmp_path):
    paths = written(table(), tmp_path / kind)
    frame, bad = pl.read_parquet(paths[1]), paths[1]
    if kind == "corrupt":
        Path(bad).write_bytes(b"PAR1 no table PAR1")
    else:
        changed = {
            "empty": frame.head(0),
            "lacks": frame.drop("c2"),
            "text": frame.with_columns(pl.col("c2").cast(pl.String)),
            "more": frame.with_columns(extra=pl.lit(1.0)),
        }
        changed[kind].write_parquet(bad)
    with pytest.raises(DataError, match=r"part1\.parquet: ") as refused:
        streamed(paths)
    assert "\n" not in str(refused.value)


# --- resume ---------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


def test_a_stopped_run_goes_on_without_a_fit_and_gives_the_same_bytes(files, tmp_path, monkeypatch):
    given, how = {"max_iter": 20, "perplexity": 10.0}, {"sample": 150, "resume": True}
    make = functools.partial(streamed, files, TSNE, given, how)
    whole_run = make(home=RunFolder(tmp_path / "a", resume=True, force=False))
    expected = digests(whole_run.parts.folder)
    assert len(expected) == 9

    calls = []
    place = rows.Place.__call__

    def stop_at_fifth(self, frame):
        if self.model is None or isinstance(self.model, Preparation):  # before the fit
            return place(self, frame)
        calls.append(frame.height)
        if len(calls) == 5:
            raise StoppedError
        return place(self, frame)

    monkeypatch.setattr(rows.Place, "__call__", stop_at_fifth)
    home = RunFolder(tmp_path / "b", resume=True, force=False)
    with pytest.raises(StoppedError):
        make(home=home)
    monkeypatch.setattr(rows.Place, "__call__", place)
    assert len(digests(home.parts)) == 4
    monkeypatch.setattr(TSNE, "_fit", None)  # a second fit would fail
    again = make(home=home)
    assert again.parts.n_kept == 4
    assert digests(home.parts) == expected
    assert again.log == whole_run.log
    assert again.fitted_rows == 150
    assert not list(home.folder.rglob("*.part"))
    (home.parts / "part-000002.parquet").unlink()
    assert make(home=home).parts.n_kept == 8
    assert digests(home.parts) == expected


def test_another_run_is_not_resumed(files, tmp_path):
    home = RunFolder(tmp_path / "a", resume=True, force=False)
    streamed(files, home=home)
    for other in ({"scale": "none"}, {"drop": ("c1",)}):
        with pytest.raises(DataError, match="holds another run"):
            streamed(files, home=home, **other)
    with pytest.raises(DataError, match=r"exists already.*--resume"):
        streamed(files, home=RunFolder(tmp_path / "a", resume=False, force=False))
    streamed(files, home=RunFolder(tmp_path / "a", resume=False, force=True), scale="none")


def test_the_files_of_a_result_can_be_written_elsewhere(files, tmp_path):
    result = streamed(files)
    before = digests(result.parts.folder)
    written_files = result.write(tmp_path / "out")
    assert digests(written_files.map) == before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("map", "map.png", "model.lowland", "report.html")
    ]
    assert lowland.load(written_files.model).transform(
        table().select("c0", "c1", "c2", "c3", "c4")
    )[:, 0] == pytest.approx(whole(result)["x"].to_list())
    with pytest.raises(DataError, match="exists already"):
        result.write(tmp_path / "out")


# --- which engine ---------------------------------------------------------------------------


def test_auto_streams_what_memory_does_not_hold(files, monkeypatch):
    expected = make_map(files, "pca", measure=False)
    assert expected.parts is None
    assert (expected.engine, expected.n_rows, expected.fitted_rows) == ("memory", ROWS, ROWS)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "12kB")
    monkeypatch.setattr(roles, "FEWEST", 20)
    result = make_map(files, "pca", measure=False)
    assert result.engine == "stream"
    with pytest.raises(MemoryLimitError):
        make_map(files, "pca", engine="memory")
    with pytest.raises(MemoryLimitError, match="cannot be read in chunks: missing='drop' needs"):
        make_map(files, "pca", missing="drop")
    assert make_map("iris", "pca", measure=False).map.height == 150


def test_a_method_that_does_not_fit_in_memory_gets_a_sample(files, monkeypatch):
    def refused(*_):
        raise MemoryLimitError(
            "distances of 900 rows need 9 GB, but the process may use 3 GB; wait."
        )

    monkeypatch.setattr(MemoryRows, "fit", refused)
    result = make_map(files, "classical_mds", metric="manhattan", measure=False)
    assert result.engine == "stream"
    assert result.coordinates.shape == (ROWS, 2)
    assert result.fitted_rows == ROWS
    with pytest.raises(MemoryLimitError, match="need 9 GB"):
        make_map(files, "classical_mds", measure=False, engine="memory")


def test_a_sample_means_stream(files):
    result = make_map(files, "pca", sample=300, n_jobs=1)
    assert result.engine == "stream"
    assert result.fitted_rows == 300
    assert result.quality["trustworthiness"].value > 0.7
    assert result.to_dict()["parts"]["files"] == 9


@each(
    ("given", "message"),
    [
        ({"engine": "cloud"}, "engine: 'cloud' is not allowed; expected auto, memory"),
        ({"sample": 0}, "sample: 0 is not allowed"),
        ({"sample": True}, "sample: True is not allowed"),
        ({"sample": 2.5}, "sample: 2.5 is not allowed"),
        ({"sample": 2**70}, "is not allowed; expected an integer"),
        ({"sample": 10, "engine": "memory"}, "sample: is for rows that are read in chunks"),
        ({"scheduler": "local:2"}, "scheduler: is for engine='dask'"),
        ({"engine": "dask"}, "needs a scheduler"),
    ],
)
def test_nonsense_options_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        make_map("iris", "pca", **given)


def test_what_cannot_be_streamed_says_why(files):
    for given, reason in (
        ({"transpose": True}, "transpose needs the whole table"),
        ({"missing": "drop"}, "missing='drop' needs the whole table"),
        ({"labels": np.zeros(ROWS)}, "labels needs the whole table"),
        ({"orient": "north=1"}, "orient needs the whole table"),
    ):
        with pytest.raises(DataError, match=f"engine='stream': .* in chunks: {reason}"):
            make_map(files, "pca", engine="stream", **given)
    with pytest.raises(DataError, match="iris is not a file"):
        make_map("iris", "pca", sample=10)
    with pytest.raises(DataError, match="data in memory"):
        make_map(table(), "pca", engine="stream")


def test_rows_are_fitted_as_time_and_memory_allow(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "16GB")
    assert rows.fitted_rows(TSNE, 10**7, 50) == 500_000
    assert rows.fitted_rows(TSNE, 700, 50) == 700
    few = rows.fitted_rows(lowland.Isomap, 10**7, 50)
    assert lowland.Isomap.estimate(few, 50).seconds <= 300
    assert lowland.Isomap.estimate(2 * few, 50).seconds > 300 or (
        lowland.Isomap.estimate(2 * few, 50).n_bytes > 7e9
    )
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1GB")
    assert 1000 <= rows.fitted_rows(TSNE, 10**7, 50) < 200_000


def test_maps_of_other_methods_are_not_refined(files):
    with pytest.raises(ParameterError, match="refine: not available for PCA"):
        streamed(files, stream={"refine": 3})


def test_steps_on_all_rows_move_the_map_and_are_written(files, tmp_path):
    given = {"max_iter": 50, "perplexity": 10.0}
    home = RunFolder(tmp_path / "out", resume=False, force=False)
    placed = streamed(files, TSNE, given, {"sample": 300})
    moved = streamed(files, TSNE, given, {"sample": 300, "refine": 60}, home)
    assert any("moved by 60 steps of t-SNE on all rows" in line for line in moved.log)
    before, after = whole(placed), whole(moved)
    assert before.drop("x", "y").equals(after.drop("x", "y"))
    assert not before.equals(after)
    assert sorted(path.name for path in home.folder.iterdir()) == [
        "map",
        "model.lowland",
        "run.json",
    ]


def test_numbers_for_people():
    assert [grouped(n) for n in (7, 9999, 10_000, 1_234_567)] == [
        "7",
        "9999",
        "10 000",
        "1 234 567",
    ]


class Elsewhere(Stream):
    """An engine whose work, steps and results travel by pickle, as those of workers do."""

    def __init__(self, scheduler):
        self.scheduler, self.jobs = scheduler, []

    def __enter__(self):
        self.context = using(self)
        return self.context.__enter__()

    def __exit__(self, *details):
        return self.context.__exit__(*details)

    def run(self, job, monitor):
        self.jobs.append(job.name)
        for result in super().run(pickle.loads(pickle.dumps(job)), monitor):
            yield pickle.loads(pickle.dumps(result))


def test_dask_goes_through_rows_with_the_same_bytes(files, monkeypatch):
    engines = []

    def engine(scheduler):
        engines.append(Elsewhere(scheduler))
        return engines[-1]

    monkeypatch.setattr("lowland.chunks.Dask", engine, raising=False)
    here = make_map(files, "pca", engine="stream", n_jobs=1)
    there = make_map(files, "pca", engine="dask", scheduler="local:2", n_jobs=1)
    assert there.engine == "dask"
    assert engines[0].scheduler == "local:2"
    assert {"sample", "covariance", "placing", "neighbors", "ranks"} <= {*engines[0].jobs}
    assert digests(there.parts.folder) == digests(here.parts.folder)
    assert there.quality.to_dict() == here.quality.to_dict()


# --- new rows -------------------------------------------------------------------------------


def test_new_rows_have_the_bytes_of_memory(files, tmp_path):
    given = {"max_iter": 20, "perplexity": 10.0}
    model = streamed(files, TSNE, given, {"sample": 150}).model
    shuffled = table(seed=5).select("kind", "c4", "c3", "c2", "c1", "c0", "name")
    paths = written(shuffled.with_columns(more=pl.lit(1.5)), tmp_path / "new")
    from lowland.workflow import place_rows

    expected = place_rows(model, paths).map
    placed = stream_placement(
        model, paths, tmp_path / "out", TableOptions(), RunSettings(engine="stream")
    )
    found = pl.concat([pl.read_parquet(path) for path in placed.parts.files])
    assert found.select(expected.columns).equals(expected)
    assert placed.unused == ["more"]
    assert placed.method == "TSNE"
    assert "left out: more" in placed.notes[-1]


def test_new_rows_of_a_model_without_names_are_found_by_their_number(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 4)).astype(np.float32)
    model = PCA(3).fit(X)
    paths = written(pl.from_numpy(X, schema=list("abcd")), tmp_path / "new")
    placed = stream_placement(
        model, paths, tmp_path / "out", TableOptions(), RunSettings(engine="stream")
    )
    found = pl.concat([pl.read_parquet(path) for path in placed.parts.files])
    assert np.array_equal(found.select(coordinate_names(3)).to_numpy(), model.transform(X))


# --- quality --------------------------------------------------------------------------------


def in_memory(X, Y, numbers, metric="euclidean"):
    """A comparison in memory of the same rows."""
    compared = Comparison(X, Y, metric=metric, sample=len(numbers), n_jobs=1)
    compared.data = compared.options.view_from(X, numbers)
    compared.map = compared._view_of_map(Y)
    compared.rows = numbers
    compared._forget()
    return compared


@each("kind", ["numbers", "ties", "copies", "single", "wide", "far", "manhattan"])
def test_the_quality_of_chunks_is_that_of_the_table(kind):
    rng = np.random.default_rng(3)
    X = {
        "ties": lambda: rng.integers(0, 3, (700, 4)).astype(float),
        "copies": lambda: np.repeat(rng.standard_normal((35, 4)), 20, axis=0),
        "single": lambda: rng.standard_normal((700, 20)).astype(np.float32),
        "wide": lambda: rng.standard_normal((700, 150)),
        "far": lambda: rng.standard_normal((700, 4)) + 1e5,
    }.get(kind, lambda: rng.standard_normal((700, 6)))()
    metric = "manhattan" if kind == "manhattan" else "euclidean"
    Y = np.round(X[:, :2] + rng.standard_normal((700, 2)), 1).astype(X.dtype)
    numbers, pca = sampled_rows(700, 150, 9), PCA(2).fit(X)
    found = measure_rows(
        *(array_rows(X, task_rows=90), array_rows(Y, task_rows=250), numbers),
        metric=metric,
        pca=pca,
        n_jobs=1,
    )
    beside = pca.transform(X)
    for Z, side in ((Y, "value"), (beside, "pca")):
        compared = in_memory(X, Z, numbers, metric)
        errors = mean_relative_rank_errors(compared)
        expected = {
            "trustworthiness": trustworthiness(compared),
            "continuity": continuity(compared),
            "neighbor_recall": neighbor_recall(compared),
            "false_rank_error": errors.false,
            "missing_rank_error": errors.missing,
        }
        for name, value in expected.items():
            measured = getattr(found.table[name], side)
            assert (measured, measured.standard_error) == (value, value.standard_error), name
    assert found.per_point["trustworthiness"].mean() == found.table["trustworthiness"].value


def test_chance_is_the_mean_of_random_maps():
    rng = np.random.default_rng(0)
    X, n = rng.standard_normal((60, 5)), 60
    values = []
    for _ in range(60):
        both = Comparison(X, rng.standard_normal((n, 2)), sample=None, n_jobs=1)
        errors = mean_relative_rank_errors(both, None, 5)
        values.append(
            [trustworthiness(both, None, 5), neighbor_recall(both, None, 5), errors.false]
        )
    chance = chance_values(n, 5)
    expected = [chance[name] for name in ("trustworthiness", "neighbor_recall", "false_rank_error")]
    errors = np.std(values, axis=0) / np.sqrt(60)
    assert (np.abs(np.mean(values, axis=0) - expected) < 4 * errors).all()


def test_as_many_rows_are_measured_as_half_of_the_time_pays_for():
    few, many = (len(measured_numbers(10**7, 50, seconds, 0)) for seconds in (1, 10**5))
    assert 100 <= few < many <= 10_000
    assert len(measured_numbers(500, 50, 1.0, 0)) == 500
    assert len(measured_numbers(10**6, 20_000, 10**6, 0)) < 1000

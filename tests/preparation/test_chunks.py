"""Preparation of tables in chunks: as in memory, from blocks of arrays and of data frames."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from lowland import PCA
from lowland._base.chain import Chain
from lowland.errors import DataError, ParameterError
from lowland.preparation.preparation import Preparation
from lowland.workflow.orienting import Orientation
from support.cases import each
from support.rows import Passes, frame_rows, labeled_rows

N = 301


def mixed(seed: int = 0) -> pl.DataFrame:
    """Numbers in several units, 0/1, text, yes and no, steps, dates as text and typed, hours."""
    rng = np.random.default_rng(seed)
    days = [date(2019, 3, 1) + timedelta(int(d)) for d in rng.integers(0, 900, N)]
    late = np.where(np.arange(N) < 250, "x", "y")  # a level that only the last chunks have
    return pl.DataFrame(
        {
            "mass": rng.gamma(2.0, 500.0, N),
            "share": rng.random(N) + 1e3,
            "bit": (rng.random(N) < 0.3).astype(np.int64),
            "kind": [["a", "b", None][i] for i in rng.integers(0, 3, N)],
            "late": late,
            "smokes": [["No", "yes "][i] for i in rng.integers(0, 2, N)],
            "size": [["low", "mid", "high"][i] for i in rng.integers(0, 3, N)],
            "day": [f"{d:%d.%m.%Y}" for d in days],
            "typed": days,
            "hour": rng.integers(0, 24, N),
            "same": np.full(N, 4.2),
        }
    )


ENCODED = {"order": {"size": ["low", "mid", "high"]}, "cyclic": {"hour": 24}, "dates": ["day"]}


def with_gaps(frame: pl.DataFrame) -> pl.DataFrame:
    holes = np.random.default_rng(1).random(N) < 0.2
    return frame.with_columns(
        pl.when(pl.Series(holes)).then(None).otherwise(pl.col("mass")).alias("mass"),
        pl.when(pl.Series(~holes)).then(None).otherwise(pl.col("bit")).alias("bit"),
    )


def assert_same(there: Preparation, here: Preparation) -> None:
    for name in there.fitted_attributes:
        expected, found = getattr(there, name), getattr(here, name)
        if isinstance(expected, np.ndarray) and expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)
        else:
            assert np.array_equal(found, expected), (name, found, expected)
    assert there.column_names_out() == here.column_names_out()


@each("scale", ["auto", "none", "standard", "gower"])
@each("missing", ["refuse", "mean", "keep"])
def test_frames_are_learned_as_in_memory(scale, missing):
    frame = mixed() if missing == "refuse" else with_gaps(mixed())
    there = Preparation(scale=scale, missing=missing, **ENCODED).fit(frame)
    here = Preparation(scale=scale, missing=missing, **ENCODED).fit(frame_rows(frame))
    assert_same(there, here)
    assert here.levels_.tolist() == ["a", "b", "missing", "x", "y"]


@each("scale", ["auto", "standard"])
def test_prepared_rows_have_the_bytes_of_memory(scale):
    frame, new = with_gaps(mixed()), with_gaps(mixed(3))
    ready = Preparation(scale=scale, missing="mean", **ENCODED).fit(frame)
    placed = ready.transform(frame_rows(new))
    assert list(placed.names) == ready.column_names_out()
    assert placed.to_numpy().tobytes() == ready.transform(new).tobytes()


@each("dtype", [np.float32, np.float64])
@each("missing", ["refuse", "mean"])
@each("normalize", [None, ["cpm", "log1p"], ["l2"]])
@each("scale", ["auto", "standard"])
def test_arrays_are_learned_as_in_memory(dtype, missing, normalize, scale):
    rng = np.random.default_rng(2)
    X = (rng.gamma(2.0, size=(N, 5)) + np.array([0, 1e6, 3, 0, 0])).astype(dtype)
    X[:, 3], X[[5, 250]] = 2.5, 0.0
    if missing == "mean":
        X[rng.random(X.shape) < 0.1] = np.nan
    choices = {"missing": missing, "normalize": normalize, "scale": scale}
    there, here = Preparation(**choices).fit(X), Preparation(**choices).fit(labeled_rows(X))
    assert_same(there, here)
    assert here.transform(labeled_rows(X)).to_numpy().dtype == dtype


def test_sparse_rows_stay_sparse():
    X = scipy.sparse.random(N, 6, 0.3, random_state=0, format="csr")
    there = Preparation(scale="standard").fit(X)
    here = Preparation(scale="standard").fit(labeled_rows(X))
    assert_same(there, here)
    blocks = [block.X for block in here.transform(labeled_rows(X)).blocks()]
    assert all(scipy.sparse.issparse(block) for block in blocks)
    expected = here.transform(X).toarray()
    assert np.array_equal(scipy.sparse.vstack(blocks).toarray(), expected)


def test_named_arrays_have_codes_and_cycles_by_name():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"age": rng.gamma(2.0, 9.0, N), "hour": rng.integers(0, 24, N) * 1.0})
    frame = frame.with_columns(pl.when(pl.col("age") < 4).then(-1.0).otherwise("age").alias("age"))
    choices = {"missing": "mean", "missing_values": ["age=-1"], "cyclic": {"hour": 24}}
    there, here = Preparation(**choices).fit(frame), Preparation(**choices).fit(labeled_rows(frame))
    assert_same(there, here)
    assert here.n_filled_ > 0
    assert np.array_equal(here.transform(labeled_rows(frame)).to_numpy(), here.transform(frame))


def test_numbers_are_read_once(monkeypatch):
    passes = Passes(monkeypatch)
    X = np.random.default_rng(4).random((N, 3))
    Preparation(missing="mean", scale="standard").fit(labeled_rows(X))
    assert passes.count == 1


@each("value", ["31.12.2019", "12/13/2019"])
def test_the_form_of_dates_is_that_of_all_chunks(value):
    """One value of the last chunk tells day from month, or that there is no form."""
    texts = [f"{1 + i % 12:02d}/{1 + i % 11:02d}/2019" for i in range(N - 1)] + [value]
    frame = pl.DataFrame({"day": texts})
    ready = [Preparation(dates=["day"]) for _ in range(2)]
    if value.startswith("31"):
        for one, table in zip(ready, (frame, frame_rows(frame)), strict=True):
            with pytest.raises(DataError, match="not dates or times of one form"):
                one.fit(table)
    else:
        assert_same(ready[0].fit(frame), ready[1].fit(frame_rows(frame)))


def test_the_unit_of_dates_is_that_of_all_chunks():
    """All chunks but the last span seconds, all of them together days."""
    texts = [f"2020-01-01 00:00:{i % 50:02d}" for i in range(N - 1)] + ["2020-03-01 00:00:00"]
    frame = pl.DataFrame({"day": texts})
    here = Preparation(dates=["day"]).fit(frame_rows(frame))
    assert_same(Preparation(dates=["day"]).fit(frame), here)
    assert here.date_units_.tolist() == [86400.0]


@each("choice", [{"missing": "median"}, {"missing": "neighbors"}, {"scale": "robust"}])
def test_what_needs_all_rows_names_a_sample(choice):
    with pytest.raises(ParameterError, match=r"rows\.sample"):
        Preparation(**choice).fit(labeled_rows(np.eye(50)))


def test_gaps_are_refused_with_their_rows():
    X = np.ones((N, 3))
    X[200, 1] = np.nan
    with pytest.raises(DataError, match=r"rows 185 to 221: missing values in 1 columns: .column 1"):
        Preparation().fit(labeled_rows(X))


def test_a_column_without_values_is_refused():
    X = np.ones((N, 3))
    X[:, 2] = np.nan
    with pytest.raises(DataError, match=r"all values are missing in .column 2"):
        Preparation(missing="mean").fit(labeled_rows(X))


def test_a_chain_places_chunks_as_memory():
    frame = mixed()
    ready = Preparation(**ENCODED).fit(frame)
    X = ready.transform(frame)
    pca = PCA(2).fit(X)
    turned = Orientation().fit(pca.transform(X), pca.transform(X)[:, ::-1])
    chain = Chain([ready, pca, turned])
    placed = chain.transform(frame_rows(frame))
    assert list(placed.names) == ["pca0", "pca1"]
    assert placed.to_numpy().tobytes() == chain.transform(frame).tobytes()

"""Dates, times and cycles: labels by default, numbers when they are asked for."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from lowland.cli import main
from lowland.errors import DataError, ParameterError
from lowland.preparation._dates import date_format, seconds_in
from lowland.preparation.preparation import Preparation
from lowland.workflow import make_map, place_rows
from support.cases import each

N = 60
START = dt.datetime(2020, 1, 30, 6)
RNG = np.random.default_rng(0)
MOMENTS = [START + dt.timedelta(hours=int(h)) for h in RNG.integers(0, 24 * 90, N)]


def table(form: str | None = "%Y-%m-%d %H:%M") -> pl.DataFrame:
    """Two numbers, an hour and a moment, as text or typed."""
    when = pl.Series(MOMENTS) if form is None else pl.Series([f"{m:{form}}" for m in MOMENTS])
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "a": rng.normal(size=N),
            "b": rng.normal(size=N),
            "hour": [m.hour for m in MOMENTS],
            "when": when,
        }
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def days() -> np.ndarray:
    first = min(MOMENTS)
    return np.array([(m - first) / dt.timedelta(days=1) for m in MOMENTS])


def numbers(made, frame: pl.DataFrame) -> dict[str, np.ndarray]:
    """Columns of the prepared rows by name."""
    first = made.model.steps[0]
    ready = first.transform(frame.select(first.feature_names_in_.tolist()))
    return dict(zip(first.column_names_out(), ready.T, strict=True))


@each("form", ["%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M", "%Y-%m-%dT%H:%M:%SZ", None])
def test_a_date_is_a_label_until_it_is_used(form):
    frame = table(form)
    frame.write_parquet("t.parquet")
    made = make_map("t.parquet", "pca", measure=False)
    assert list(made.model.feature_names_in_) == ["a", "b", "hour"]
    assert "when" in made.map.columns
    made = make_map("t.parquet", "pca", use="when", scale="none", measure=False)
    assert "when is mapped as the number of days since its first" in made.log
    np.testing.assert_allclose(numbers(made, frame)["when"], days(), atol=1e-9)


def test_a_date_of_new_rows_is_read_in_the_form_of_the_fitted_rows():
    frame = table("%d.%m.%Y %H:%M")
    made = make_map(frame, "pca", use="when", measure=False)
    rows = [i for i, m in enumerate(MOMENTS) if m.day <= 12][:5]  # may be month/day, too
    for new in (frame[rows], table(None)[rows]):  # typed dates are the same moments
        placed = place_rows(made.model, new).coordinates
        np.testing.assert_allclose(placed, made.coordinates[rows], atol=1e-9)
    with pytest.raises(DataError, match="times in the form of the fitted rows: 'yesterday'"):
        place_rows(made.model, frame.head(2).with_columns(when=pl.lit("yesterday")))


@each(
    ("texts", "form"),
    [
        (["2020-01-05", "2020-12-31"], "%Y-%m-%d"),
        (["05.01.2020", "1.2.2020"], "%d.%m.%Y"),
        (["5/1/2020", "31/12/2020"], "%d/%m/%Y"),
        (["1/5/2020", "12/31/2020"], "%m/%d/%Y"),
        (["12/31/2020 9:05", "1/5/2020 23:59"], "%m/%d/%Y %H:%M"),
        (["2020-01-05 10:11:12", "2020-01-05 10:11:12.5"], "%Y-%m-%d %H:%M:%S%.f"),
        (["9:05", "23:59"], "%H:%M"),
        (["10:11:12", "00:00:00"], "%H:%M:%S%.f"),
    ],
)
def test_the_form_of_text_is_found(texts, form):
    assert date_format(pl.Series("t", [*texts, None])) == form


def test_what_may_be_two_dates_or_none_is_refused():
    with pytest.raises(DataError, match=r"'1/5/2020' may be day/month or month/day"):
        date_format(pl.Series("t", ["1/5/2020", "2/6/2020"]))
    for texts in (["soon", "late"], ["2020-01-01", "5.1.2020"], ["12", "13"], ["1-2", "3-4"]):
        with pytest.raises(DataError, match="not dates or times of one form"):
            date_format(pl.Series("t", texts))


@each(
    ("values", "unit", "expected"),
    [
        ([dt.date(2020, 1, 1), dt.date(2020, 3, 1)], "days", [0, 60]),
        ([dt.datetime(2020, 1, 1, 5), dt.datetime(2020, 1, 1, 12)], "hours", [0, 7]),
        ([dt.time(10, 0), dt.time(10, 30)], "minutes", [0, 30]),
        ([dt.datetime(2020, 1, 1, 5, 0, 1), dt.datetime(2020, 1, 1, 5, 0, 31)], "seconds", [0, 30]),
        ([dt.timedelta(days=4), dt.timedelta(days=9)], "days", [0, 5]),
    ],
)
def test_the_unit_is_that_of_the_span(values, unit, expected):
    frame = pl.DataFrame({"t": [*values, values[0]], "a": [1.0, 2.0, 4.0]})
    ready = Preparation(scale="none").fit(frame)
    np.testing.assert_allclose(ready.transform(frame)[:2, 0], expected)
    made = make_map(frame, "pca", use="t", scale="none", measure=False)
    assert f"t is mapped as the number of {unit} since its first" in made.log


def test_seconds_are_those_of_the_clock_in_any_zone():
    naive = pl.Series("t", MOMENTS)
    zoned = naive.dt.replace_time_zone("Asia/Tokyo")
    np.testing.assert_array_equal(seconds_in(zoned, ""), seconds_in(naive, ""))
    expected = [(m - dt.datetime(1970, 1, 1)).total_seconds() for m in MOMENTS]
    np.testing.assert_array_equal(seconds_in(naive, ""), expected)


def test_a_cycle_is_a_point_on_a_circle_also_for_new_rows():
    frame = table()
    made = make_map(frame, "pca", scale="none", cyclic={"hour": 24, "when": "week"})
    assert "hour is mapped as a point on a circle (sin, cos); its period is 24" in made.log
    assert "when is mapped as a point on a circle (sin, cos); its period is week" in made.log
    found = numbers(made, frame)
    angle = 2 * np.pi * frame["hour"].to_numpy() / 24
    np.testing.assert_allclose(found["sin(hour)"], np.sin(angle), atol=1e-12)
    np.testing.assert_allclose(found["cos(hour)"], np.cos(angle), atol=1e-12)
    week = np.array([(m - dt.datetime(1970, 1, 1)) / dt.timedelta(days=7) for m in MOMENTS])
    np.testing.assert_allclose(found["sin(when)"], np.sin(2 * np.pi * week), atol=1e-6)
    np.testing.assert_allclose(found["cos(when)"], np.cos(2 * np.pi * week), atol=1e-6)
    # an hour later by one day, a moment later by one week: the same places
    later = [f"{m + dt.timedelta(days=7):%Y-%m-%d %H:%M}" for m in MOMENTS]
    new = frame.with_columns(pl.col("hour") + 24, when=pl.Series(later))
    placed = place_rows(made.model, new).coordinates
    np.testing.assert_allclose(placed, made.coordinates, atol=1e-6)


def test_every_period_changes_the_map():
    frame = table()
    periods = ("minute", "hour", "day", "week", "year")
    maps = [
        make_map(frame, "pca", cyclic={"when": period}, measure=False).coordinates
        for period in periods
        if period not in ("minute", "hour")  # full hours have one phase
    ]
    for i, one in enumerate(maps):
        for other in maps[:i]:
            assert np.abs(np.abs(one) - np.abs(other)).max() > 0.01


def test_periods_that_do_not_fit_a_column_are_refused(capsys):
    frame = table()
    with pytest.raises(DataError, match="'when' holds dates or times, and 24 is not one of their"):
        make_map(frame, "pca", cyclic={"when": 24})
    with pytest.raises(DataError, match="'hour' of numbers cannot have the period 'day'"):
        make_map(frame, "pca", cyclic={"hour": "day"})
    with pytest.raises(DataError, match=r"cyclic: unknown column 'hours'; did you mean 'hour'\?"):
        make_map(frame, "pca", cyclic={"hours": 24})
    for wrong in ({"hour": 0}, {"hour": -1}, {"when": "month"}, {"hour": True}, {1: 24}):
        with pytest.raises(ParameterError, match=r"cyclic: .* is not allowed"):
            make_map(frame, "pca", cyclic=wrong)
    frame.write_csv("t.csv")
    options = ["--cyclic", "hour=24", "--cyclic", "when=week", "--no-report"]
    assert main(["map", "t.csv", "-m", "pca", *options]) == 0
    said = capsys.readouterr().out
    for name, period in (("hour", "24"), ("when", "week")):
        assert f"{name} is mapped as a point on a circle (sin, cos); its period is {period}" in said
    assert main(["map", "t.csv", "--cyclic", "hour"]) == 2
    assert "expected a column and its period, such as 'hour=24'" in capsys.readouterr().err
    assert main(["map", "t.csv", "--cyclic", "hour=nan"]) == 2
    assert "--cyclic" in capsys.readouterr().err


def test_missing_dates_are_missing_numbers():
    frame = table().with_columns(
        when=pl.when(pl.int_range(N) == 7).then(None).otherwise(pl.col("when"))
    )
    with pytest.raises(DataError, match=r"missing value in 1 column: 'when' \(1\)"):
        make_map(frame, "pca", use="when")
    for options in ({"use": "when"}, {"cyclic": {"when": "week"}}):
        dropped = make_map(frame, "pca", missing="drop", measure=False, **options)
        assert dropped.dropped_rows == [7]
        filled = make_map(frame, "pca", missing="mean", measure=False, **options)
        assert np.isfinite(filled.coordinates).all()
        placed = place_rows(filled.model, frame.slice(7, 1))
        np.testing.assert_allclose(placed.coordinates[0], filled.coordinates[7], atol=1e-9)


def test_text_that_looks_like_dates_is_no_category():
    frame = pl.DataFrame(
        {
            "kind": ["a", "b", "c", "a"] * 10,
            "pet": ["cat", "dog"] * 20,
            "day": ["2020-01-01", "2020-01-02"] * 20,
        }
    )
    made = make_map(frame, "pca", categories="one-hot", measure=False)
    assert list(made.model.feature_names_in_) == ["kind", "pet"]
    named = make_map(frame, "pca", one_hot=["pet", "day"], measure=False)
    assert "day=2020-01-02" in named.model.steps[0].column_names_out()

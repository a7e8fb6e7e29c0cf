"""A map of what is left is refused if most of the table was set aside and nobody asked for it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland._base.errors import DataError
from lowland.workflow import compare_methods, describe_table, make_map
from support.cases import each

ROWS = 40
RNG = np.random.default_rng(0)


def numbers(k, start=0):
    return {f"n{i}": RNG.normal(size=ROWS).round(3) for i in range(start, start + k)}


def few(k, values=3):
    """Columns of text whose values recur."""
    return {f"kind{i}": [f"v{(j * (i + 1)) % values}" for j in range(ROWS)] for i in range(k)}


def many(k):
    """Columns of text without an equal value."""
    return {f"text{i}": [f"row {j} says {i}" for j in range(ROWS)] for i in range(k)}


def unread(k):
    """Numbers that were written in a way that cannot be read."""
    return {f"m{i}": [f"{j},{i + 1}5 q" for j in range(ROWS)] for i in range(k)}


ID = {"id": list(range(ROWS))}
MAPPED = {
    "iris": numbers(4) | few(1),
    "two coordinates and three labels": numbers(2) | few(3),
    "penguins": few(3) | numbers(4),
    "as many categories as numbers and three": ID | numbers(4) | few(7),
    "one column and its names": numbers(1) | {"town": many(1)["text0"]},
    "one column and its classes": numbers(1) | few(1),
    "names of rows": numbers(2) | many(1) | few(2),
    "titanic": ID | numbers(6) | few(2) | many(3),
    "all numbers": numbers(3),
    "categories beside one number": numbers(1) | few(9),
}
REFUSED = {
    "4 of 20": (numbers(4) | unread(16), "text that looks like numbers, such as '0,15 q'"),
    "more texts than numbers": (ID | numbers(2) | many(3), "text of many values"),
    "more categories than numbers": (numbers(4) | few(8), "'kind0', 'kind1'"),
    "lists": (ID | numbers(1) | {"vectors": [[{"a": "b"}]] * ROWS}, "lists, records or bytes"),
    "one of an id, a class and texts": (
        ID | numbers(1) | {"class": [1, 2] * (ROWS // 2)} | many(1),
        "its name is that of a class",
    ),
}


@each("name", list(MAPPED))
def test_ordinary_tables_are_mapped(name):
    frame = pl.DataFrame(MAPPED[name])
    assert make_map(frame, "pca", measure=False).coordinates.shape[0] == ROWS
    assert describe_table(frame)["refused"] is None


@each("name", list(REFUSED))
def test_remains_are_refused_with_what_was_set_aside(name):
    columns, reason = REFUSED[name]
    frame = pl.DataFrame(columns)
    with pytest.raises(DataError, match="Set aside automatically") as caught:
        make_map(frame, "pca")
    message = str(caught.value)
    assert reason in message
    assert "columns names the columns to map" in message
    assert "\n" not in message
    assert describe_table(frame)["refused"] == message


def test_the_message_counts_columns_and_names_the_ways_out():
    frame = pl.DataFrame(ID | numbers(2) | few(4) | many(2) | unread(3))
    with pytest.raises(DataError) as caught:
        make_map(frame, "pca")
    message = str(caught.value)
    assert "only 2 of 12 columns would be mapped ('n0', 'n1')" in message
    parts = [
        "'m0', 'm1', 'm2' (text that looks",
        "'text0', 'text1' (text of many",
        "'kind0', 'kind1', 'kind2', 'kind3' (text or dates",
        "'id' (its name is",
        "labels=['m0', 'm1', 'm2', 'text0',",
        "drop leaves columns out",
        "categories='one-hot' maps text of few values",
        "use=['id'] maps ids or classes",
    ]
    assert [part for part in parts if part not in message] == []


def test_every_way_out_works():
    frame = pl.DataFrame(numbers(2) | few(8))
    names = [name for name in frame.columns if name.startswith("kind")]
    with pytest.raises(DataError, match="only 2 of 10 columns"):
        make_map(frame, "pca")
    for way in (
        {"columns": ["n0", "n1"]},
        {"labels": names},
        {"drop": names[:4]},
        {"one_hot": names[:4]},
    ):
        assert make_map(frame, "pca", measure=False, **way).coordinates.shape == (ROWS, 2)


def test_one_column_that_was_asked_for_is_mapped():
    frame = pl.DataFrame(ID | numbers(1) | {"group": [1, 2] * (ROWS // 2)})
    with pytest.raises(DataError, match="only 1 of 3 columns"):
        make_map(frame, "pca")
    for way in ({"columns": "n0"}, {"labels": ["group"]}, {"use": ["group"]}, {"drop": "id"}):
        assert make_map(frame, "pca", measure=False, **way).coordinates.shape[0] == ROWS


def test_compare_refuses_the_same_tables():
    with pytest.raises(DataError, match="only 4 of 20 columns"):
        compare_methods(pl.DataFrame(numbers(4) | unread(16)), ["pca"])

"""NDJSON files, whole and broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import read_table
from support.cases import each


@pytest.fixture(params=["t.ndjson", "t.jsonl"])
def path(request, tmp_path):
    return tmp_path / request.param


def test_numbers_are_features_and_text_is_a_label(path):
    path.write_text('{"a": 1, "b": 0.5, "kind": "u"}\n\n{"kind": "v", "b": 2, "a": -1e3}\n')
    table = read_table(path)
    assert table.feature_names == ("a", "b")
    assert table.features.rows() == [(1.0, 0.5), (-1000.0, 2.0)]
    assert table.labels["kind"].to_list() == ["u", "v"]


def test_a_key_that_appears_late_is_a_column_with_missing_values(path):
    path.write_text('{"a": 1}\n' * 3000 + '{"a": 1, "b": 2}\n')
    with pytest.raises(DataError, match=r"missing .*'b' \(3000, first in row 0\)"):
        read_table(path)


@given(
    rows=st.lists(
        st.tuples(st.floats(-1e9, 1e9), st.integers(-(2**40), 2**40), st.text(max_size=5)),
        min_size=1,
        max_size=8,
    )
)
def test_what_json_wrote_comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "any.ndjson"
    path.write_text("".join(json.dumps(dict(zip("xyk", r, strict=True))) + "\n" for r in rows))
    table = read_table(path)
    assert table.features.rows() == [(x, float(y)) for x, y, _ in rows]
    assert table.labels["k"].to_list() == [text for *_, text in rows]


@each(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a":\n', "line 2: not JSON: Expecting value"),
        (b'{"a": 1}\n\n[1, 2]\n', "line 3: holds a list, expected an object"),
        (b'{"a": 1}\n5\n', "line 2: holds a int, expected an object"),
        (b'{"a": 1}\n{"a": NaN}\n', "line 2: not JSON: NaN is not a JSON number; write null"),
        (b'{"a": 1} {"a": 2}\n', "line 1: not JSON: Extra data"),
        (b'{"a": 1}\n{"a": "caf\xe9"}\n', "line 2: not UTF-8 text .byte 0xe9 at position 10"),
        (b"\n\n", "the file is empty"),
        (b'{"a": "x"}\n', r"no column of numbers; found 'a' \(String\)"),
        (b'{"a": 1}\n{"a": 1e999}\n', "t.ndjson"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_the_place(tmp_path, content, message):
    path = tmp_path / "t.ndjson"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_table(path)
    assert "t.ndjson" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_files_never_end_in_another_error(path, damage):
    path.write_text("".join(f'{{"a": {i}, "b": {i / 3}, "kind": "k{i}"}}\n' for i in range(20)))
    assert damage(path, read_table) > 50


def test_a_file_too_large_for_memory_is_refused_unread(path, little_memory):
    path.write_text('{"a": 1}\n' * 100_000)
    with pytest.raises(MemoryLimitError, match=f"{path.name}: reading"):
        read_table(path)

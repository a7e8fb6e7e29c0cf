"""NPY and NPZ files, whole and broken."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base.errors import DataError
from lowland.tables import read_table
from lowland.tables.formats import arrays
from support.cases import each

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def saved(path, *args, **arrays):
    (np.savez if arrays else np.save)(path, *args, **arrays)
    return path


def test_an_npy_array_has_no_names_and_stays_an_array(tmp_path):
    table = read_table(saved(tmp_path / "t.npy", X))
    assert table.feature_names is None
    np.testing.assert_array_equal(table.features, X)
    assert table.ids.to_list() == [0, 1]


@each(("given", "kept"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("?", "f8")])
def test_float32_stays_and_other_numbers_become_float64(tmp_path, given, kept):
    table = read_table(saved(tmp_path / "t.npy", X.astype(given)))
    assert table.features.dtype == np.dtype(kept)


def test_a_square_array_is_not_transposed_when_it_gets_names(tmp_path):
    square = np.array([[1.0, 2.0], [3.0, 4.0]])
    table = read_table(saved(tmp_path / "t.npy", square), columns=["a", "b"])
    np.testing.assert_array_equal(table.features.to_numpy(), square)


def test_names_must_be_as_many_as_the_columns_of_an_array(tmp_path):
    with pytest.raises(DataError, match="has 3 columns where 2 are needed"):
        read_table(saved(tmp_path / "t.npy", X), columns=["a", "b"])


def test_npz_takes_X_and_keeps_arrays_of_its_length_as_labels(tmp_path):
    path = saved(
        tmp_path / "t.npz", X=X, other=X.T, y=np.array([0, 1]), kind=["u", "v"], w=np.ones(5)
    )
    table = read_table(path)
    np.testing.assert_array_equal(table.features, X)
    assert table.labels.columns == ["y", "kind"]
    assert "other, w" in table.notes[0]


def test_npz_takes_the_only_matrix_and_its_feature_names(tmp_path):
    path = saved(tmp_path / "t.npz", data=X, feature_names=["a", "b", "c"])
    assert read_table(path).feature_names == ("a", "b", "c")


def test_a_label_with_the_name_of_a_feature_is_renamed(tmp_path):
    path = saved(tmp_path / "t.npz", X=X, y=[0, 1], feature_names=["x", "y", "z"])
    assert read_table(path).labels.columns == ["y_label"]


def test_pickled_labels_are_left_aside_but_never_loaded(tmp_path):
    path = saved(tmp_path / "t.npz", X=X, y=np.array(["a", None], dtype=object))
    table = read_table(path)
    assert table.labels.columns == []
    assert "not used: y" in table.notes[0]


def test_the_place_of_a_bad_number_is_right_in_a_square_array(tmp_path):
    with pytest.raises(DataError, match=r"missing .*'column_1' \(1, first in row 0\)"):
        read_table(saved(tmp_path / "t.npy", np.array([[1.0, np.nan], [3.0, 4.0]])))
    with pytest.raises(DataError, match=r"infinite .*'column_0' \(1, first in row 1\)"):
        read_table(saved(tmp_path / "t.npy", np.array([[1.0, 2.0], [np.inf, 4.0]])))


@each(
    ("array", "message"),
    [
        (np.arange(4), r"shape \(4,\), expected two dimensions"),
        (np.zeros((2, 2, 2)), "expected two dimensions"),
        (np.zeros((0, 3)), "is empty"),
        (np.array([["a"]]), "expected real numbers"),
        (np.ones((2, 2), dtype=complex), "expected real numbers"),
        (np.zeros(2, dtype=[("a", "f8")]), "expected real numbers"),
        (np.array([[1, None]], dtype=object), "pickled objects, which are never loaded"),
    ],
)
def test_an_array_that_is_no_matrix_of_numbers_is_refused(tmp_path, array, message):
    with pytest.raises(DataError, match=message):
        read_table(saved(tmp_path / "t.npy", array))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": X, "b": X}, r"exactly one two-dimensional array; found a \(2, 3\), b \(2, 3\)"),
        ({"a": np.ones(3)}, "found a"),
        ({"X": np.array([[None]], dtype=object)}, "pickled objects, never loaded"),
    ],
)
def test_an_archive_without_one_matrix_is_refused(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        read_table(saved(tmp_path / "t.npz", **arrays))


@each("name", ["t.npy", "t.npz"])
def test_damaged_files_never_end_in_another_error(tmp_path, damage, name):
    named = {"X": X, "y": np.arange(2)} if name == "t.npz" else {}
    path = saved(tmp_path / name, *([] if named else [X]), **named)
    assert damage(path, read_table, trials=300, flips=3) > 100


def test_a_part_of_an_archive_is_chosen_by_name(tmp_path):
    path = saved(tmp_path / "t.npz", X=X, other=X.T, y=[0, 1], z=[1, 2, 3])
    table = read_table(path, part="other")
    np.testing.assert_array_equal(table.features, X.T)
    assert table.labels.columns == ["z"]
    assert table.notes == ("arrays that are not used: X, y",)
    with pytest.raises(DataError, match="unknown array 'othr'; did you mean 'other'"):
        read_table(path, part="othr")
    with pytest.raises(DataError, match=r"array 'y': the array has shape \(2,\)"):
        read_table(path, part="y")


def test_only_containers_have_parts(tmp_path):
    for source in (saved(tmp_path / "t.npy", X), "iris"):
        with pytest.raises(DataError, match=r"has no parts, .* \.h5ad, .* and \.xlsx files have"):
            read_table(source, part="X")


def test_arrays_that_are_not_needed_are_not_unpacked(tmp_path, monkeypatch):
    path = saved(tmp_path / "t.npz", X=X, bulk=np.zeros((9, 9)), y=[0, 1])
    loaded, load = [], arrays._load
    monkeypatch.setattr(arrays, "_load", lambda *args: loaded.append(args[1]) or load(*args))
    read_table(path)
    assert loaded == ["X", "y"]


def test_names_that_occur_twice_get_numbers(tmp_path):
    path = saved(tmp_path / "t.npz", X=X, feature_names=["a", "a-1", "a"])
    table = read_table(path)
    assert table.feature_names == ("a", "a-1", "a-2")
    assert "several columns are called 'a'" in table.notes[0]


def test_a_header_that_promises_more_than_the_file_holds_is_refused(tmp_path):
    path = saved(tmp_path / "t.npy", X)
    path.write_bytes(path.read_bytes().replace(b"(2, 3)", b"(9, 9)"))
    with pytest.raises(DataError, match=r"cut short: .* cannot hold an array \(9, 9\)"):
        read_table(path)

"""Matrices of distances in every shape that files give them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist, squareform

from lowland import datasets
from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import holds_distances, read_distances
from support.cases import each

CITIES = ["Sydney", "Adelaide", "Brisbane"]
ROADS = np.array([[0.0, 1166, 752], [1166, 0, 1622], [752, 1622, 0]])
POINTS = np.random.default_rng(0).standard_normal((9, 3))
D = squareform(pdist(POINTS))


@pytest.fixture
def read(tmp_path):
    """Write a text and read it back as distances."""

    def write_and_read(content, name="d.csv", **options):
        path = tmp_path / name
        path.write_text(content)
        return read_distances(path, **options)

    return write_and_read


def text(header, corner, first_column, separator=","):
    """The roads with or without names around them."""
    lines = [[*([corner] if first_column else []), *CITIES]] if header else []
    for name, row in zip(CITIES, ROADS, strict=True):
        lines.append([*([name] if first_column else []), *(f"{d:g}" for d in row)])
    return "".join(separator.join(line) + "\n" for line in lines)


@each(
    ("header", "corner", "first_column"),
    [(True, "", True), (True, "city", True), (True, None, False), (False, None, True)],
)
@each(("name", "separator"), [("d.csv", ","), ("d.csv", ";"), ("d.tsv", "\t")])
def test_names_around_the_distances_become_ids(read, header, corner, first_column, name, separator):
    table = read(text(header, corner, first_column, separator), name)
    np.testing.assert_array_equal(table.features, ROADS)
    assert table.ids.to_list() == CITIES
    assert table.feature_names is None


@pytest.mark.parametrize("corner", ["", "id"])
def test_names_may_be_numbers(read, corner):
    table = read(f"{corner},7,8\n7,0,5\n8,5,0\n")
    np.testing.assert_array_equal(table.features, [[0, 5], [5, 0]])
    assert table.ids.to_list() == ["7", "8"]


@pytest.mark.parametrize(
    "content",
    [
        ",Sydney,Adelaide,Brisbane\nSydney,,,\nAdelaide,1166,,\nBrisbane,752,1622,\n",
        "Sydney,Adelaide,Brisbane\n0,1166,752\nNA,0,1622\n?,,0\n",
    ],
)
def test_one_side_of_the_diagonal_is_enough_and_the_table_says_so(read, content):
    table = read(content)
    np.testing.assert_array_equal(table.features, ROADS)
    assert table.notes == ("3 distances are given on one side of the diagonal only",)


def test_an_unknown_distance_is_refused_or_stays_nan(read):
    content = text(True, "", True).replace("1622", "")
    with pytest.raises(
        DataError, match=r"row 'Adelaide', column 'Brisbane' is not known.* first of 2"
    ):
        read(content)
    features = read(content, allow_missing=True).features
    assert np.isnan(features[1, 2])
    assert np.isnan(features[2, 1])
    assert np.isnan(features).sum() == 2


@pytest.mark.parametrize(
    "content", ["1166\n752\n1622\n", "distance\n1166\n752\n1622\n", "1166,752,1622\n"]
)
def test_a_condensed_matrix_is_expanded(read, content):
    table = read(content)
    np.testing.assert_array_equal(table.features, ROADS)
    assert table.notes == ("3 rows from a condensed matrix of distances",)


def test_arrays_come_back_as_they_were_saved(tmp_path):
    np.save(tmp_path / "d.npy", D.astype(np.float32))
    features = read_distances(tmp_path / "d.npy").features
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, D.astype(np.float32))
    np.save(tmp_path / "condensed.npy", pdist(POINTS))
    np.testing.assert_array_equal(read_distances(tmp_path / "condensed.npy").features, D)
    np.savez(tmp_path / "d.npz", D=D, other=np.ones((2, 2)), kind=np.arange(9))
    table = read_distances(tmp_path / "d.npz", part="D")
    np.testing.assert_array_equal(table.features, D)
    assert table.labels["kind"].to_list() == list(range(9))
    np.savez(tmp_path / "c.npz", D=pdist(POINTS))
    np.testing.assert_array_equal(read_distances(tmp_path / "c.npz").features, D)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "ndjson"])
def test_tables_hold_distances_with_or_without_a_column_of_names(tmp_path, suffix):
    write = {"parquet": "write_parquet", "arrow": "write_ipc", "ndjson": "write_ndjson"}[suffix]
    frame = pl.from_numpy(ROADS, schema=CITIES, orient="row")
    for made in (frame, pl.DataFrame({"city": CITIES}).hstack(frame)):
        getattr(made, write)(tmp_path / f"d.{suffix}")
        table = read_distances(tmp_path / f"d.{suffix}")
        np.testing.assert_array_equal(table.features, ROADS)
        assert table.ids.to_list() == CITIES


def test_sparse_distances_stay_sparse_unless_every_pair_is_there(tmp_path):
    scipy.sparse.save_npz(tmp_path / "full.npz", scipy.sparse.csr_matrix(D))
    np.testing.assert_array_equal(read_distances(tmp_path / "full.npz").features, D)
    scipy.io.mmwrite(tmp_path / "full.mtx", scipy.sparse.coo_matrix(D), symmetry="symmetric")
    np.testing.assert_allclose(read_distances(tmp_path / "full.mtx").features, D, rtol=1e-15)
    nearest = np.where(np.sort(D, axis=1)[:, [3]] >= D, D, 0.0)  # not symmetric in who is stored
    assert (nearest != nearest.T).any()
    scipy.sparse.save_npz(tmp_path / "few.npz", scipy.sparse.csc_matrix(nearest))
    table = read_distances(tmp_path / "few.npz")
    assert table.is_sparse
    np.testing.assert_array_equal(table.features.toarray(), nearest)


@given(D=arrays(np.float64, (4, 4), elements=st.sampled_from([0.0, 1.0, 2.0, -1.0, np.nan])))
def test_a_matrix_is_accepted_exactly_if_it_holds_distances(tmp_path_factory, D):
    path = tmp_path_factory.getbasetemp() / "any.npy"
    np.save(path, D)
    filled = np.where(np.isnan(D), D.T, D)
    np.fill_diagonal(filled, np.nan_to_num(np.diagonal(D)))
    fine = bool((filled >= 0).all() and (filled == filled.T).all() and not filled.trace())
    if fine:
        np.testing.assert_array_equal(read_distances(path).features, filled)
    else:
        with pytest.raises(DataError, match=r"any\.npy: the distance in row [0-3], column [0-3]"):
            read_distances(path)


def test_differences_of_rounding_are_no_asymmetry(tmp_path):
    rounded = D * (1 + 1e-7 * np.random.default_rng(1).standard_normal(D.shape))
    np.fill_diagonal(rounded, 1e-8)
    np.save(tmp_path / "d.npy", rounded)
    np.testing.assert_array_equal(read_distances(tmp_path / "d.npy").features, rounded)


@each("sparse", [False, True])
@each(
    ("row", "column", "value", "message"),
    [
        (1, 2, -4.0, r"row 1, column 2 is negative .*-4"),
        (4, 4, 0.5, r"row 4, column 4 is 0\.5, but a row is at distance 0 from itself"),
        (2, 7, 9.0, r"row 2, column 7 is 9, but \S+ the other way round"),
        (2, 7, np.inf, r"row 2, column 7 is infinite"),
    ],
)
def test_what_is_no_distance_is_refused_with_its_place(
    tmp_path, sparse, row, column, value, message
):
    bad = D.copy()
    bad[row, column] = value
    path = tmp_path / f"d.np{'z' if sparse else 'y'}"
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(bad)) if sparse else np.save(path, bad)
    with pytest.raises(DataError, match=message):
        read_distances(path)


def test_places_are_named_where_rows_have_names(read):
    with pytest.raises(
        DataError, match="row 'Sydney', column 'Brisbane' is 753, but 752 the other way round"
    ):
        read(text(True, "", True).replace("1166,752", "1166,753"))


@each(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,4\n5,6\n7,8\n", "is 4 x 2; a matrix of distances is square"),
        ("1,2,3,4\n5,6,7,8\n", "is 2 x 4; a matrix of distances is square"),
        ("1\n2\n3\n4\n", r"a condensed .* 3 for 3 rows, 6 for 4; found 4"),
        (",a,b\na,0,1\nc,1,0\n", "row 1 is called 'c', but column 1 is called 'b'"),
        (",a,b\na,0,far\nb,1,0\n", "row 0, column 'b' holds 'far', expected a distance"),
    ],
)
def test_a_text_that_holds_no_distances_is_refused(read, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read(content)
    assert "d.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@each(
    ("array", "message"),
    [
        (np.zeros((2, 3)), "is 2 x 3; a matrix"),
        (np.zeros((2, 2, 2)), "is 2 x 2 x 2; a matrix"),
        (np.zeros((0, 0)), "is 0 x 0; a matrix"),
        (np.array([["a"]]), "expected real numbers"),
    ],
)
def test_an_array_that_is_no_square_is_refused(tmp_path, array, message):
    np.save(tmp_path / "d.npy", array)
    with pytest.raises(DataError, match=message):
        read_distances(tmp_path / "d.npy")


def test_a_condensed_matrix_too_large_for_memory_is_not_expanded(tmp_path, little_memory):
    np.save(tmp_path / "d.npy", np.ones(700 * 699 // 2, np.float32))
    with pytest.raises(MemoryLimitError, match="700 rows x 700 columns"):
        read_distances(tmp_path / "d.npy")


def test_bundled_distances_are_known_to_be_distances():
    table = read_distances("eurodist")
    np.testing.assert_array_equal(table.features, datasets.eurodist().X)
    assert table.ids.to_list() == list(datasets.eurodist().row_names)
    assert read_distances("Australia").labels.columns == ["truth_1", "truth_2"]
    assert holds_distances("eurodist")
    assert not holds_distances("iris")
    assert not holds_distances("./eurodist")
    with pytest.raises(DataError, match="iris: holds columns, not distances"):
        read_distances("iris")


def test_a_folder_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        read_distances(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_distances(tmp_path / "d.csv")

"""Sparse matrices from SciPy's NPZ and MatrixMarket files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import read_table
from support.cases import each

X = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [3.5, 0.0, -1.0, 0.0], [0, 0, 0, 7.0]])
FORMATS = ["bsr", "coo", "csc", "csr", "dia"]


def saved(path, X, kind="csr", container="matrix"):
    scipy.sparse.save_npz(path, getattr(scipy.sparse, f"{kind}_{container}")(X))
    return path


def market(path, text):
    path.write_text(f"%%MatrixMarket {text}")
    return path


@each("container", ["matrix", "array"])
@each("kind", FORMATS)
def test_every_format_of_scipy_comes_back_as_csr(tmp_path, kind, container):
    table = read_table(saved(tmp_path / "t.npz", X, kind, container))
    assert table.is_sparse
    assert table.features.format == "csr"
    np.testing.assert_array_equal(table.features.toarray(), X)
    assert table.feature_names is None
    assert table.ids.to_list() == [0, 1, 2, 3]


@pytest.mark.parametrize(("given_type", "kept"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8")])
def test_float32_stays_and_other_numbers_become_float64(tmp_path, given_type, kept):
    table = read_table(saved(tmp_path / "t.npz", X.astype(given_type)))
    assert table.features.dtype == np.dtype(kept)


def test_labels_and_names_may_lie_beside_a_sparse_matrix(tmp_path):
    beside = {"kind": [1, 2, 3, 4], "feature_names": list("abcd"), "more": np.ones(9)}
    np.savez(tmp_path / "t.npz", **members(), **beside)
    table = read_table(tmp_path / "t.npz")
    np.testing.assert_array_equal(table.features.toarray(), X)
    assert table.feature_names == ("a", "b", "c", "d")
    assert table.labels["kind"].to_list() == [1, 2, 3, 4]
    assert table.notes == ("arrays that are not used: more",)


def test_small_integers_do_not_overflow_when_entries_are_summed(tmp_path):
    counts = scipy.sparse.coo_matrix((np.uint8([200, 200]), ([0, 0], [1, 1])), shape=(2, 2))
    scipy.sparse.save_npz(tmp_path / "t.npz", counts)
    assert read_table(tmp_path / "t.npz").features.data.tolist() == [400.0]


def test_names_are_given_to_a_sparse_matrix_by_the_caller(tmp_path):
    table = read_table(saved(tmp_path / "t.npz", X), columns=list("abcd"))
    assert table.feature_names == ("a", "b", "c", "d")
    assert table.column("d").to_list() == [1.0, 0.0, 0.0, 7.0]
    assert table.without_names().feature_names is None
    with pytest.raises(DataError, match="has 4 columns where 2 are needed"):
        read_table(tmp_path / "t.npz", columns=["a", "b"])


@pytest.mark.parametrize(("value", "what"), [(np.nan, "a missing"), (np.inf, "an infinite")])
def test_the_place_of_a_bad_number_is_named(tmp_path, value, what):
    bad = X.copy()
    bad[2, 2] = bad[3, 0] = value
    path = saved(tmp_path / "t.npz", bad)
    with pytest.raises(DataError, match=f"{what} value in row 2, column 'column_2', .* of 2"):
        read_table(path)


def test_missing_numbers_may_be_allowed_but_infinite_ones_not(tmp_path):
    bad = X.copy()
    bad[2, 2] = np.nan
    path = saved(tmp_path / "t.npz", bad)
    np.testing.assert_array_equal(read_table(path, allow_missing=True).features.toarray(), bad)
    bad[0, 0] = np.inf
    with pytest.raises(DataError, match="an infinite value in row 0"):
        read_table(saved(path, bad), allow_missing=True)


def members(**changed):
    A = scipy.sparse.csr_matrix(X)
    whole = {"format": b"csr", "shape": A.shape, "data": A.data, "indices": A.indices}
    return {**whole, "indptr": A.indptr, **changed}


@each(
    ("changed", "message"),
    [
        ({"format": b"lil"}, "format lil"),
        ({"format": b"coo"}, "cannot be read as NPZ: .*row"),
        ({"shape": [4]}, "cannot be read as NPZ: .*shape"),
        ({"shape": [4, -4]}, "cannot be read as NPZ: .*shape"),
        ({"shape": [0, 4], "data": X[0, :0], "indices": np.arange(0), "indptr": [0]}, "is empty"),
        ({"shape": [4, 2]}, r"malformed CSR matrix .* indices\[1\] = 3"),
        ({"indices": [1, 3, 0, 2, 99]}, r"indices\[4\] = 99"),
        ({"indices": [1, 3, 0, -2, 3]}, r"indices\[3\] = -2"),
        ({"indptr": [0, 2, 2, 9, 5]}, r"indptr\[4\] = 5"),
        ({"indptr": [0, 2]}, "cannot be read as NPZ"),
        ({"indices": np.ones(5)}, "indices that are not whole numbers"),
        ({"data": np.ones(5, complex)}, "holds complex128, expected real numbers"),
        ({"data": np.array([None] * 5)}, "holds pickled objects, which are never loaded"),
    ],
)
def test_a_forged_sparse_matrix_is_refused(tmp_path, changed, message):
    np.savez(tmp_path / "t.npz", **members(**changed))
    with pytest.raises(DataError, match=message) as caught:
        read_table(tmp_path / "t.npz")
    assert "t.npz" in str(caught.value)


@each(
    ("kind", "part"),
    [
        ("csr", "indices"),
        ("csr", "indptr"),
        ("csc", "indices"),
        ("csc", "indptr"),
        ("bsr", "indices"),
        ("bsr", "indptr"),
        ("coo", "row"),
        ("coo", "col"),
    ],
)
@each("value", [-1, 4, 5, 10**6, 2**31 - 1, -(2**31)])
def test_places_outside_the_matrix_are_refused_in_every_format(tmp_path, kind, part, value):
    matrix = scipy.sparse.csr_matrix(X).asformat(kind)
    if kind == "bsr":
        matrix = scipy.sparse.csr_matrix(X).tobsr((1, 1))
    stored = {name: getattr(matrix, name).copy() for name in ("data", *parts_of(kind))}
    stored[part].flat[2 if part == "indptr" else 1] = value
    if part == "indptr" and value in (4, 5):
        stored[part][-2] = 0  # goes back, whatever comes before
    np.savez(tmp_path / "t.npz", format=kind.encode(), shape=[4, 4], **stored)
    with pytest.raises(DataError, match=r"t\.npz"):
        read_table(tmp_path / "t.npz")


def parts_of(kind):
    return ("row", "col") if kind == "coo" else ("indices", "indptr")


@each("kind", FORMATS)
def test_damaged_files_never_end_in_another_error(tmp_path, damage, kind):
    assert damage(saved(tmp_path / "t.npz", X, kind), read_table) > 30


def test_a_matrix_that_says_it_is_huge_is_refused_unread(tmp_path, little_memory):
    for rows, refusal, words in (
        (4 * 10**6, MemoryLimitError, "reading 5 entries of 4000000 rows"),
        (10**9, DataError, "declares 1000000000 rows, but holds 5 entries"),
    ):
        five = {"row": [0] * 5, "col": [0] * 5}
        np.savez(tmp_path / "t.npz", **members(format=b"coo", shape=[rows, 4], **five))
        with pytest.raises(refusal, match=rf"t\.npz: {words}"):
            read_table(tmp_path / "t.npz")
        text = f"matrix coordinate real general\n{rows} 4 5\n" + "1 1 1\n" * 5
        with pytest.raises(refusal, match=rf"t\.mtx: {words}"):
            read_table(market(tmp_path / "t.mtx", text))


@each("kind", ["coo", "csr"])
@each("dtype", ["f8", "i8"])
def test_matrix_market_gives_a_sparse_matrix(tmp_path, kind, dtype):
    A = getattr(scipy.sparse, f"{kind}_matrix")(X.astype(dtype))
    scipy.io.mmwrite(tmp_path / "t.mtx", A)
    table = read_table(tmp_path / "t.mtx")
    assert table.features.dtype == np.float64
    np.testing.assert_array_equal(table.features.toarray(), A.toarray())


def test_symmetric_and_pattern_files_are_expanded(tmp_path):
    path = market(tmp_path / "t.mtx", "matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
    np.testing.assert_array_equal(read_table(path).features.toarray(), [[0, 1], [1, 0]])


@each(
    ("text", "message"),
    [
        (
            "matrix coordinate real general\n3 3 2\n1 1 1\n4 1 2\n",
            "line 4: Row index out of",
        ),
        ("matrix coordinate real general\n3 3 2\n1 1 1\n2 x 2\n", "line 4: Invalid integer"),
        ("matrix coordinate real general\n3 3 2\n1 1 1\n", "Truncated file. Expected another 1"),
        ("matrix array real general\n2 2\n1\n2\n3\n", "Truncated file"),
        ("matrix coordinate complex general\n1 1 1\n1 1 1 2\n", "holds complex numbers"),
        ("matrix coordinate integer general\n1 1 1\n1 1 99999999999999999999\n", "line 3: Integer"),
        ("vector coordinate real general\n3 1\n1 2\n", "Vector Matrix Market"),
        ("matrix coordinate real general\n0 3 0\n", "is empty"),
        ("matrix coordinate real general\n2 2 1\n1 2 nan\n", "a missing value in row 0, column"),
    ],
)
def test_a_broken_matrix_market_file_is_refused_with_the_place(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read_table(market(tmp_path / "t.mtx", text))
    assert "t.mtx" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_the_banner_is_refused(tmp_path):
    (tmp_path / "t.mtx").write_text("1 2 3\n")
    with pytest.raises(DataError, match="line 1: Not a Matrix Market file"):
        read_table(tmp_path / "t.mtx")


def test_damaged_matrix_market_files_never_end_in_another_error(tmp_path, damage):
    scipy.io.mmwrite(tmp_path / "t.mtx", scipy.sparse.coo_matrix(X))
    assert damage(tmp_path / "t.mtx", read_table) > 30


@given(
    X=arrays(np.float64, (5, 4), elements=st.sampled_from([0.0, 0.0, 1.0, -2.5, 1e-300])),
    kind=st.sampled_from(FORMATS),
)
def test_any_matrix_comes_back(tmp_path_factory, X, kind):
    path = saved(tmp_path_factory.getbasetemp() / "any.npz", X, kind)
    np.testing.assert_array_equal(read_table(path).features.toarray(), X)


def test_a_dense_matrix_market_file_gives_an_array(tmp_path):
    scipy.io.mmwrite(tmp_path / "t.mtx", X)
    table = read_table(tmp_path / "t.mtx")
    assert not table.is_sparse
    np.testing.assert_array_equal(table.features, X)

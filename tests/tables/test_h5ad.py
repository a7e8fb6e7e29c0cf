"""H5AD files, by the layouts that anndata has written over the years."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import read_distances, read_table
from lowland.tables.formats import h5ad
from support.cases import each

h5py = pytest.importorskip("h5py", reason="H5AD files are read by h5py")

X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 3.0], [4.0, 5.0, 0.0]], np.float32)
GENES = ["CD3E", "MS4A1", "NKG7"]
CELLS = ["c1", "c2", "c3", "c4"]
TEXT = h5py.string_dtype()


def put_sparse(group, name, matrix):
    node = group.create_group(name)
    node.attrs["encoding-type"] = f"{matrix.format}_matrix"
    node.attrs["encoding-version"] = "0.1.0"
    node.attrs["shape"] = matrix.shape
    for part in ("data", "indices", "indptr"):
        node[part] = getattr(matrix, part)


def put_frame(store, name, index, **columns):
    node = store.create_group(name)
    node.attrs["encoding-type"] = "dataframe"
    node.attrs["_index"] = "_index"
    node.attrs["column-order"] = np.array(list(columns), dtype=TEXT)
    node.create_dataset("_index", data=index, dtype=TEXT)
    for column, values in columns.items():
        if isinstance(values, dict):
            group = node.create_group(column)
            group.attrs["encoding-type"] = values["encoding"]
            for part, data in values.items():
                if part != "encoding":
                    text = isinstance(data[0], str)
                    group.create_dataset(part, data=data, dtype=TEXT if text else None)
        else:
            text = isinstance(values[0], str)
            node.create_dataset(column, data=values, dtype=TEXT if text else None)
    return node


def write(path, matrix=X, cells=CELLS, genes=GENES, **obs):
    with h5py.File(path, "w") as store:
        if isinstance(matrix, np.ndarray):
            store["X"] = matrix
        else:
            put_sparse(store, "X", matrix)
        put_frame(store, "obs", cells, **obs)
        put_frame(store, "var", genes)
    return path


def categorical(codes, categories):
    return {"encoding": "categorical", "codes": np.int8(codes), "categories": categories}


def test_a_dense_X_has_the_names_of_its_genes_and_cells(tmp_path):
    table = read_table(write(tmp_path / "t.h5ad"))
    assert table.feature_names == ("CD3E", "MS4A1", "NKG7")
    assert table.features.to_numpy().dtype == np.float32
    np.testing.assert_array_equal(table.features.to_numpy(), X)
    assert table.ids.to_list() == CELLS


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_sparse_X_stays_sparse_and_keeps_its_names(tmp_path, kind):
    table = read_table(write(tmp_path / "t.h5ad", getattr(scipy.sparse, f"{kind}_matrix")(X)))
    assert table.is_sparse
    assert table.features.format == "csr"
    assert table.features.dtype == np.float32
    np.testing.assert_array_equal(table.features.toarray(), X)
    assert table.feature_names == ("CD3E", "MS4A1", "NKG7")
    assert table.column("MS4A1").to_list() == [2.0, 0.0, 0.0, 5.0]


def test_columns_of_a_sparse_X_are_chosen_by_name_in_the_order_asked_for(tmp_path):
    path = write(tmp_path / "t.h5ad", scipy.sparse.csr_matrix(X), depth=[5, 6, 7, 8])
    table = read_table(path, columns=["NKG7", "CD3E"])
    np.testing.assert_array_equal(table.features.toarray(), X[:, [2, 0]])
    assert table.feature_names == ("NKG7", "CD3E")
    assert table.unused == ("MS4A1",)
    table = read_table(path, labels=["MS4A1"])
    assert table.labels["MS4A1"].to_list() == [2.0, 0.0, 0.0, 5.0]
    np.testing.assert_array_equal(table.features.toarray(), X[:, [0, 2]])
    with pytest.raises(DataError, match="1 needed column is missing: 'CD4'"):
        read_table(path, columns=["CD4"])
    with pytest.raises(DataError, match="'depth' is a label, not a column of the sparse matrix"):
        read_table(path, columns=["depth", "NKG7"])


def test_every_kind_of_obs_column_is_a_label(tmp_path):
    path = write(
        tmp_path / "t.h5ad",
        kind=categorical([1, 0, -1, 1], ["B", "T"]),
        cluster=categorical([0, 1, 1, 0], [10, 20]),
        depth=[5, 6, 7, 8],
        batch=["a", "b", "b", "a"],
        good=np.array([True, False, True, True]),
        age={"encoding": "nullable-integer", "values": [1, 2, 3, 4], "mask": [False, True] * 2},
    )
    labels = read_table(path).labels
    assert labels.to_dict(as_series=False) == {
        "kind": ["T", "B", None, "T"],
        "cluster": [10, 20, 20, 10],
        "depth": [5, 6, 7, 8],
        "batch": ["a", "b", "b", "a"],
        "good": [True, False, True, True],
        "age": [1, None, 3, None],
    }


def test_an_obs_column_in_an_unknown_form_is_left_aside_and_named(tmp_path):
    path = write(
        tmp_path / "t.h5ad", odd={"encoding": "awkward-array", "values": [1]}, depth=[1] * 4
    )
    table = read_table(path)
    assert table.labels.columns == ["depth"]
    assert table.notes == ("columns of obs that are not used: odd",)


def test_parts_are_chosen_by_name(tmp_path):
    path = write(tmp_path / "t.h5ad")
    pca = np.arange(8.0).reshape(4, 2)
    with h5py.File(path, "a") as store:
        store["layers/counts"] = X * 2
        store["obsm/X_pca"] = pca
        store["raw/X"] = np.hstack([X, X])
        put_frame(store, "raw/var", [*GENES, "A", "B", "C"])
        put_frame(store, "obsm/frame", CELLS, u=[1.0, 2.0, 3.0, 4.0], v=[0.5] * 4)
    layer = read_table(path, part="layers/counts")
    np.testing.assert_array_equal(layer.features.to_numpy(), X * 2)
    assert layer.feature_names == ("CD3E", "MS4A1", "NKG7")
    embedding = read_table(path, part="obsm/X_pca")
    np.testing.assert_array_equal(embedding.features, pca)
    assert embedding.feature_names is None
    assert embedding.ids.to_list() == CELLS
    assert read_table(path, part="raw/X").feature_names == (*GENES, "A", "B", "C")
    assert read_table(path, part="obsm/frame").feature_names == ("u", "v")
    with pytest.raises(DataError, match="unknown part 'obsm/X_pcaa'; did you mean 'obsm/X_pca'"):
        read_table(path, part="obsm/X_pcaa")


def test_distances_between_cells_are_read_from_obsp(tmp_path):
    path = write(tmp_path / "t.h5ad", depth=[1, 2, 3, 4])
    nearest = scipy.sparse.csr_matrix(([1.0, 1.0, 2.0], ([0, 1, 3], [1, 0, 2])), shape=(4, 4))
    with h5py.File(path, "a") as store:
        put_sparse(store, "obsp/distances", nearest)
    table = read_distances(path)
    np.testing.assert_array_equal(table.features.toarray(), nearest.toarray())
    assert table.ids.to_list() == CELLS
    assert table.labels.columns == ["depth"]
    with pytest.raises(DataError, match="in a part such as 'obsp/distances'"):
        read_distances(path, part="X")


def test_the_layout_of_anndata_0_7_is_read(tmp_path):
    path = write(tmp_path / "t.h5ad", kind=np.int8([1, 0, -1, 1]))
    with h5py.File(path, "a") as store:
        store.create_dataset("obs/__categories/kind", data=["B", "T"], dtype=TEXT)
        store["obs/kind"].attrs["categories"] = store["obs/__categories/kind"].ref
    assert read_table(path).labels["kind"].to_list() == ["T", "B", None, "T"]


def test_the_layout_before_anndata_0_7_is_read(tmp_path):
    path = tmp_path / "t.h5ad"
    with h5py.File(path, "w") as store:
        sparse = scipy.sparse.csr_matrix(X)
        node = store.create_group("X")
        node.attrs["h5sparse_format"] = b"csr"
        node.attrs["h5sparse_shape"] = X.shape
        for part in ("data", "indices", "indptr"):
            node[part] = getattr(sparse, part)
        fields = [("index", "S2"), ("depth", "f4"), ("kind", "i1")]
        rows = [(cell.encode(), i, i % 2) for i, cell in enumerate(CELLS)]
        store["obs"] = np.array(rows, dtype=fields)
        store["var"] = np.array([(g.encode(),) for g in GENES], dtype=[("index", "S9")])
        store.create_dataset("uns/kind_categories", data=["B", "T"], dtype=TEXT)
    table = read_table(path)
    np.testing.assert_array_equal(table.features.toarray(), X)
    assert table.feature_names == ("CD3E", "MS4A1", "NKG7")
    assert table.ids.to_list() == CELLS
    assert table.labels["kind"].to_list() == ["B", "T", "B", "T"]
    assert table.labels["depth"].to_list() == [0.0, 1.0, 2.0, 3.0]


def test_the_extra_is_named_where_h5py_is_not_installed(tmp_path, monkeypatch):
    path = write(tmp_path / "t.h5ad")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DataError, match=r"t\.h5ad: .* pip install 'lowland\[anndata\]'"):
        read_table(path)


def altered(path, **changes):
    """Replace nodes of a file; None takes one out."""
    with h5py.File(path, "a") as store:
        for name, value in changes.items():
            name = name.replace("__", "/")
            if name in store:
                del store[name]
            if value is not None:
                store[name] = value
    return path


@each(
    ("changes", "message"),
    [
        ({"X": None}, "has no 'X'; name one of its parts to read: none"),
        ({"X": np.ones(4)}, r"part 'X': the array has shape \(4,\)"),
        ({"X": np.array([[b"a"]])}, "part 'X': holds .* expected real numbers"),
        ({"X": np.ones((3, 3))}, "obs has 4 rows where the numbers have 3"),
        ({"X": np.ones((4, 2))}, "'X' has 2 columns, but there are 3 names"),
        ({"X": np.full((4, 3), np.nan)}, "missing values"),
        ({"obs__kind__codes": np.int8([9, 9, 9, 9])}, "cannot be read as H5AD: category 9 of 2"),
        ({"obs__kind__codes": np.int8([0])}, "its columns have different lengths: .1, 4."),
        ({"obs__kind__codes": None}, "cannot be read as H5AD"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_the_place(tmp_path, changes, message):
    path = write(tmp_path / "t.h5ad", kind=categorical([1, 0, 0, 1], ["B", "T"]), depth=[1] * 4)
    with pytest.raises(DataError, match=message) as caught:
        read_table(altered(path, **changes))
    assert "t.h5ad" in str(caught.value)
    assert "\n" not in str(caught.value)


@each(
    ("part", "value", "message"),
    [
        ("indices", [0, 9, 0, 1, 2], r"part 'X' is a malformed CSR matrix .* indices\[1\] = 9"),
        ("indptr", [0, 1, 2, 99, 5], r"part 'X' is a malformed CSR matrix .* indptr\[4\] = 5"),
        ("indptr", [0, 5], "cannot be read as H5AD"),
        ("data", [1.0], "cannot be read as H5AD"),
    ],
)
def test_a_sparse_matrix_with_wrong_places_is_refused(tmp_path, part, value, message):
    path = write(tmp_path / "t.h5ad", scipy.sparse.csr_matrix(X))
    with pytest.raises(DataError, match=rf"t\.h5ad.*{message}"):
        read_table(altered(path, **{f"X__{part}": np.array(value)}))


def test_no_hdf5_file_is_refused(tmp_path):
    (tmp_path / "t.h5ad").write_bytes(b"no hdf5")
    with pytest.raises(DataError, match="it is not an HDF5 file, or it is cut short"):
        read_table(tmp_path / "t.h5ad")


def test_a_file_that_is_cut_short_is_refused(tmp_path, damage, monkeypatch):
    path = write(tmp_path / "t.h5ad", kind=categorical([1, 0, 0, 1], ["B", "T"]))
    assert damage(path, read_table, trials=10, flips=0) == 10
    # without the look at it in another process, which takes far longer than to read it
    monkeypatch.setattr(h5ad, "_check_harmless", lambda file: None)
    assert damage(path, read_table, trials=50, flips=0) == 50


def test_a_matrix_too_large_for_memory_is_refused_unread(tmp_path, little_memory):
    path = write(tmp_path / "t.h5ad")
    with h5py.File(path, "a") as store:
        store.create_dataset("layers/big", shape=(10**6, 10**4), chunks=(100, 100), dtype="f4")
    with pytest.raises(MemoryLimitError, match=r"part 'layers/big': reading 1000000 rows .* 44 GB"):
        read_table(path, part="layers/big")


@each(
    ("program", "patience", "message"),
    [
        ("import time; time.sleep(60)", 1, "the HDF5 library did not come to an end with it"),
        ("import os; os.abort()", 60, r"the HDF5 library crashes \(signal 6\)"),
    ],
)
def test_a_file_that_libhdf5_cannot_survive_is_refused(
    tmp_path, monkeypatch, program, patience, message
):
    """The look at a file in another process loops or crashes, instead of the reader."""
    path, look = tmp_path / "cells.h5ad", tmp_path / "look.py"
    with h5py.File(path, "w") as store:
        store["X"] = X
    look.write_text(program)
    assert read_table(path).features.shape == X.shape
    monkeypatch.setattr(h5ad, "PATIENCE", patience)
    monkeypatch.setattr(h5ad.h5_program, "__file__", str(look))
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_the_look_at_a_file_reads_all_of_its_objects(tmp_path, monkeypatch):
    path, seen = tmp_path / "cells.h5ad", []
    with h5py.File(path, "w") as store:
        store["X"] = X
        put_frame(store, "obs", CELLS, kind=np.arange(4))
    read = h5py.Dataset.__getitem__
    monkeypatch.setattr(
        h5py.Dataset, "__getitem__", lambda self, key: seen.append(self.name) or read(self, key)
    )
    h5ad.h5_program.look(str(path))
    assert {*seen} == {"/X", "/obs/_index", "/obs/kind"}

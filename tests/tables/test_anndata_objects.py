"""AnnData objects in memory give the maps that their files give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lowland._base.errors import DataError
from lowland.tables import as_distances, as_table, read_table
from lowland.workflow import make_map, place_rows
from support.cases import each

anndata = pytest.importorskip("anndata", reason="its objects are the data")
pytest.importorskip("h5py", reason="H5AD files are read by h5py")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 5))
    made = anndata.AnnData(
        scipy.sparse.csc_matrix(np.maximum(values, 0).astype(np.float32)),
        obs=pd.DataFrame(
            {
                "kind": pd.Categorical(list("abc") * 10),
                "depth": np.arange(30.0),
                "lane": pd.Categorical(["T", None, "B"] * 10),
                "good": [True, False, True] * 10,
                "age": pd.array([1, None, 3] * 10, dtype="Int64"),
            },
            index=[f"cell{i}" for i in range(30)],
        ),
        var=pd.DataFrame(index=[f"gene{i}" for i in range(5)]),
    )
    made.raw = anndata.AnnData(  # all genes, of which X has some
        rng.poisson(2.0, size=(30, 7)).astype(np.float32),
        obs=made.obs,
        var=pd.DataFrame(index=[f"all{i}" for i in range(7)]),
    )
    made.layers["dense"] = values
    made.obsm["X_pca"] = values[:, :3]
    made.obsm["table"] = pd.DataFrame(values[:, :2], index=made.obs_names, columns=["u", "v"])
    made.obsp["distances"] = scipy.spatial.distance.cdist(values, values)
    return made


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("anndata") / "cells.h5ad"
    data.write_h5ad(path)
    return path


@each("part", [None, "X", "raw/X", "layers/dense", "obsm/X_pca", "obsm/table"])
def test_every_part_is_the_table_that_the_file_gives(part, data, path):
    ours, files = as_table(data, part=part), read_table(path, part=part)
    assert ours.feature_names == files.feature_names
    assert ours.labels.equals(files.labels)
    assert ours.ids.equals(files.ids)
    assert ours.part == files.part
    dense = [table.features for table in (ours, files)]
    dense = [np.asarray(X.todense() if ours.is_sparse else X) for X in dense]
    np.testing.assert_array_equal(*dense)
    assert dense[0].dtype == dense[1].dtype


def test_the_map_is_that_of_the_file(data, path):
    ours, files = make_map(data, "pca"), make_map(path, "pca")
    assert ours.map.equals(files.map)
    assert ours.log == files.log
    assert ours.color == "kind"
    assert ours.map["row"].to_list() == list(data.obs_names)
    names = make_map(data, "pca", columns=["gene1", "gene3"], color="depth")
    assert names.log[0].startswith("30 rows, 2 columns of numbers (gene1, gene3)")


def test_distances_are_a_part_too(data, path):
    given = make_map(data, "mds", distances=True)
    assert given.map.equals(make_map(path, "mds", distances=True).map)
    assert as_distances(data).part == "obsp/distances"
    with pytest.raises(DataError, match="distances are in a part"):
        as_distances(data, part="layers/dense")


def test_new_rows_are_placed_and_views_are_read(data):
    made = make_map(data, "pca", part="layers/dense")
    placed = place_rows(made.model, data[5:9], part="layers/dense")
    np.testing.assert_allclose(placed.coordinates, made.coordinates[5:9], atol=1e-12)
    assert placed.map["row"].to_list() == [f"cell{i}" for i in range(5, 9)]


def test_an_object_that_reads_from_its_file(data, path):
    backed = anndata.read_h5ad(path, backed="r")
    try:
        assert make_map(backed, "pca").map.equals(make_map(data, "pca").map)
        dense = make_map(backed, "pca", part="layers/dense")
        assert dense.map.equals(make_map(data, "pca", part="layers/dense").map)
    finally:
        backed.file.close()


def test_what_is_not_there_is_refused_by_name(data):
    with pytest.raises(DataError, match="unknown part 'layers/dens'; did you mean 'layers/dense'"):
        make_map(data, "pca", part="layers/dens")
    with pytest.raises(DataError, match="ndarray has no parts, so there is no part 'X'"):
        make_map(np.eye(4), "pca", part="X")
    empty = anndata.AnnData(obs=pd.DataFrame(index=["a", "b"]))
    with pytest.raises(DataError, match="part 'X'"):
        make_map(empty, "pca")


def test_names_that_are_no_text(data):
    odd = anndata.AnnData(np.arange(12.0).reshape(4, 3))
    odd.obs[7] = list("xyxy")
    table = as_table(odd)
    assert table.labels.columns == ["7"]
    assert table.ids.to_list() == ["0", "1", "2", "3"]

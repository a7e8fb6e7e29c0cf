"""Genes in rows: the table is transposed, with the names of its rows and columns."""

from __future__ import annotations

import gzip

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse

from lowland.errors import DataError
from lowland.tables import as_table, read_table
from lowland.workflow import make_map, place_rows

GENES = """gene,s1,s2,s3,s4,s5,s6
ACTB,10,12,9,11,40,38
GAPDH,5,6,5,7,20,22
MYC,0,1,0,2,3,1
TP53,8,7,9,8,1,0
"""
NUMBERS = np.array([line.split(",")[1:] for line in GENES.splitlines()[1:]], dtype=float)


@pytest.fixture
def genes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "genes.csv").write_text(GENES)
    return tmp_path


def test_names_of_rows_and_columns_change_places(genes):
    made = make_map("genes.csv", "pca", transpose=True, scale="none", measure=False)
    said = "transposed: 6 columns became rows, 4 rows became columns, named by 'gene'"
    assert any(said in line for line in made.log)
    counted = "6 rows, 4 columns of numbers (ACTB, GAPDH, MYC, TP53)"
    assert any(counted in line for line in made.log)
    assert made.map["row"].to_list() == ["s1", "s2", "s3", "s4", "s5", "s6"]
    expected = make_map(NUMBERS.T, "pca", measure=False).coordinates
    np.testing.assert_allclose(made.coordinates, expected, atol=1e-9)
    # new samples are given in the same way
    placed = place_rows(made.model, "genes.csv", transpose=True).coordinates
    np.testing.assert_allclose(placed, expected, atol=1e-9)


def test_columns_are_chosen_by_their_new_names(genes):
    table = read_table("genes.csv", transpose=True, columns=["MYC", "ACTB"])
    assert table.feature_names == ("MYC", "ACTB")
    np.testing.assert_array_equal(np.asarray(table.features), NUMBERS.T[:, [2, 0]])
    made = make_map("genes.csv", "pca", transpose=True, drop="MYC", measure=False)
    assert list(made.model.feature_names_in_) == ["ACTB", "GAPDH", "TP53"]
    assert made.map["row"].to_list()[0] == "s1"
    with pytest.raises(DataError, match="unknown column 'gen'; did you mean 'gene'"):
        make_map("genes.csv", "pca", transpose=True, id_column="gen")


def test_further_columns_of_text_and_missing_values(genes):
    lines = GENES.replace(",7,9,8,", ",?,9,none given,").splitlines()
    wide = [f"{line},{'chromosome' if i == 0 else 'chr7'}" for i, line in enumerate(lines)]
    (genes / "wide.csv").write_text("\n".join(wide) + "\n")
    made = make_map(
        "wide.csv", "pca", transpose=True, missing_values=["none given", "TP53=9"], missing="mean",
        measure=False,
    )  # fmt: skip
    assert any("left out: 'chromosome'" in line for line in made.log)
    assert any("filled 3 missing values" in line for line in made.log)
    assert made.map.height == 6


def test_frames_arrays_sparse_matrices_and_their_labels(genes):
    frame = pl.read_csv("genes.csv")
    kinds = ["a", "a", "b", "b", "c", "c"]
    made = make_map(frame, "pca", transpose=True, labels={"kind": kinds}, measure=False)
    assert made.map["kind"].to_list() == kinds
    assert made.map["row"].to_list() == ["s1", "s2", "s3", "s4", "s5", "s6"]
    bare = as_table(NUMBERS, transpose=True)
    np.testing.assert_array_equal(bare.features, NUMBERS.T)
    sparse = as_table(scipy.sparse.csr_matrix(NUMBERS), transpose=True)
    assert sparse.is_sparse
    np.testing.assert_array_equal(sparse.features.toarray(), NUMBERS.T)
    model = make_map(scipy.sparse.csr_matrix(NUMBERS), "pca", transpose=True, measure=False).model
    placed = place_rows(model, scipy.sparse.csr_matrix(NUMBERS), transpose=True).coordinates
    np.testing.assert_allclose(placed, model.transform(NUMBERS.T), atol=1e-9)
    pandas = frame.to_pandas().set_index("gene") if hasattr(frame, "to_pandas") else None
    if pandas is not None:
        table = as_table(pandas, transpose=True)
        assert table.feature_names == ("ACTB", "GAPDH", "MYC", "TP53")
        assert table.ids.to_list() == ["s1", "s2", "s3", "s4", "s5", "s6"]


def test_other_files(genes):
    pl.read_csv("genes.csv").write_parquet("genes.parquet")
    scipy.io.mmwrite("genes.mtx", scipy.sparse.csr_matrix(NUMBERS))
    np.save("genes.npy", NUMBERS)
    with gzip.open("genes.tsv.gz", "wt") as file:
        file.write(GENES.replace(",", "\t"))
    for name in ("genes.parquet", "genes.mtx", "genes.npy", "genes.tsv.gz"):
        table = read_table(name, transpose=True)
        assert table.shape == (6, 4), name
        values = table.features.toarray() if table.is_sparse else np.asarray(table.features)
        np.testing.assert_array_equal(values, NUMBERS.T)


def test_h5ad_has_its_names_the_other_way_round(tmp_path):
    anndata = pytest.importorskip("anndata")
    import pandas as pd

    data = anndata.AnnData(
        scipy.sparse.csr_matrix(NUMBERS.astype(np.float32)),
        obs=pd.DataFrame({"chromosome": list("abcd")}, index=["ACTB", "GAPDH", "MYC", "TP53"]),
        var=pd.DataFrame(index=[f"s{i}" for i in range(1, 7)]),
    )
    data.write_h5ad(tmp_path / "t.h5ad")
    table = read_table(tmp_path / "t.h5ad", transpose=True)
    assert table.feature_names == ("ACTB", "GAPDH", "MYC", "TP53")
    assert table.ids.to_list() == [f"s{i}" for i in range(1, 7)]
    assert any("'chromosome'" in note for note in table.notes)


def test_equal_names_get_numbers_and_text_alone_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("gene,s1,s2\nA,1,2\nA,3,4\n,5,6\n")
    table = read_table(tmp_path / "t.csv", transpose=True)
    assert table.feature_names == ("A", "A-1", "row_2")
    (tmp_path / "u.csv").write_text("gene,s1\nA,x\nB,y\n")
    with pytest.raises(DataError, match="no column of numbers to transpose; found 'gene'"):
        read_table(tmp_path / "u.csv", transpose=True)
    with pytest.raises(
        DataError, match="distances has no columns to choose, fill or scale; leave "
    ):
        make_map("eurodist", "mds", transpose=True)

"""Folders of 10x Genomics."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from lowland._base.errors import DataError
from lowland.tables import read_table
from support.cases import each

COUNTS = np.array([[0, 3, 0, 1], [2, 0, 0, 5], [0, 0, 7, 0]])  # genes x cells
BARCODES = ["AAAC-1", "AAAG-1", "AACA-1", "AACC-1"]
GENES = [
    "ENSG1\tACTB\tGene Expression",
    "ENSG2\tACTB\tGene Expression",
    "ENSG3\tCD3\tAntibody Capture",
]


def folder(path, *, packed=False, start="", genes="features.tsv", lines=GENES, counts=COUNTS):
    path.mkdir(exist_ok=True)
    matrix = path / f"{start}matrix.mtx"
    scipy.io.mmwrite(matrix, scipy.sparse.coo_matrix(counts))
    (path / f"{start}barcodes.tsv").write_text("\n".join(BARCODES) + "\n")
    (path / f"{start}{genes}").write_text("\n".join(lines) + "\n")
    if packed:
        for plain in list(path.iterdir()):
            (path / f"{plain.name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
    return path


@each(
    "how",
    [
        {"lines": ["ENSG1\tACTB", "ENSG2\tACTB", "ENSG3\tCD3"], "genes": "genes.tsv"},
        {"lines": ["ENSG1\tACTB", "ENSG2\tACTB", "ENSG3\tCD3"], "packed": True},
        {"lines": ["ENSG1\tACTB", "ENSG2\tACTB", "ENSG3\tCD3"], "start": "GSM1_"},
        {"lines": ["ENSG1\tACTB", "ENSG2\tACTB", "ENSG3\tCD3"], "counts": COUNTS.T},
    ],
)
def test_cells_are_rows_and_genes_are_columns(tmp_path_factory, how):
    path = folder(tmp_path_factory.mktemp("cells"), **how)
    matrix = next(each for each in path.iterdir() if "matrix" in each.name)
    for source in (path, matrix):
        table = read_table(source)
        assert scipy.sparse.issparse(table.features)
        np.testing.assert_array_equal(table.features.toarray(), COUNTS.T)
        assert table.feature_names == ("ACTB", "ACTB-1", "CD3")
        assert table.ids.name == "barcode"
        assert table.ids.to_list() == BARCODES
        assert any("several columns are called 'ACTB'" in note for note in table.notes)


def test_genes_are_taken_unless_another_kind_of_feature_is_named(tmp_path):
    path = folder(tmp_path / "c")
    table = read_table(path)
    assert table.feature_names == ("ACTB", "ACTB-1")
    assert any("--part takes 'Antibody Capture'" in note for note in table.notes)
    other = read_table(path, part="Antibody Capture")
    assert other.feature_names == ("CD3",)
    np.testing.assert_array_equal(other.features.toarray().ravel(), COUNTS[2])
    with pytest.raises(DataError, match="no features of kind 'Antibody'; found"):
        read_table(path, part="Antibody")


def test_files_that_do_not_fit_each_other_are_refused(tmp_path):
    path = folder(tmp_path / "c", lines=GENES[:2])
    with pytest.raises(DataError, match="has 3 rows and 4 columns, but there are 2 lines"):
        read_table(path)
    (path / "features.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError):
        read_table(path)


def test_a_matrix_without_its_files_is_a_plain_matrix(tmp_path):
    path = folder(tmp_path / "c")
    (path / "barcodes.tsv").unlink()
    assert read_table(path / "matrix.mtx").shape == (3, 4)
    with pytest.raises(DataError, match="folder without images"):
        read_table(path)


def test_several_matrices_in_a_folder_are_named(tmp_path):
    path = folder(tmp_path / "c", start="A_", lines=[*GENES[:2], "ENSG3\tCD3\tGene Expression"])
    folder(path, start="B_")
    with pytest.raises(DataError, match=r"several matrices: 'A_matrix\.mtx', 'B_matrix\.mtx'"):
        read_table(path)
    assert read_table(path / "A_matrix.mtx").shape == (4, 3)

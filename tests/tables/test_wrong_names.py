"""Files are read by what they hold, whatever their names say; and what is not read at all."""

from __future__ import annotations

import io
import os

import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse

from lowland._base.errors import DataError
from lowland.tables import read_distances, read_table
from support.cases import each

X = np.array([[1.0, 2.5], [3.0, 4.5], [5.0, 0.5]])
FRAME = pl.DataFrame(X, schema=["a", "b"])


def as_bytes(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


CONTENTS = {
    "CSV": FRAME.write_csv().encode(),
    "semicolons": FRAME.write_csv(separator=";").encode(),
    "tabs": FRAME.write_csv(separator="\t").encode(),
    "blanks": FRAME.write_csv(separator=" ").encode(),
    "Parquet": as_bytes(FRAME.write_parquet),
    "Arrow": as_bytes(FRAME.write_ipc),
    "NDJSON": FRAME.write_ndjson().encode(),
    "NPY": as_bytes(lambda stream: np.save(stream, X)),
    "NPZ": as_bytes(lambda stream: np.savez(stream, X=X)),
    "MatrixMarket": as_bytes(lambda stream: scipy.io.mmwrite(stream, scipy.sparse.coo_matrix(X))),
}


def values(path):
    features = read_table(path).features
    return features.toarray() if scipy.sparse.issparse(features) else np.asarray(features)


@each("name", ["t.csv", "t.tsv", "t.txt", "t.parquet", "t.npy", "t.ndjson", "plain", "t.CSV"])
def test_a_file_is_read_by_what_it_holds(tmp_path, name):
    for kind, content in CONTENTS.items():
        path = tmp_path / name
        path.write_bytes(content)
        np.testing.assert_array_equal(values(path), X, err_msg=kind)


def test_a_name_that_does_not_fit_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(CONTENTS["Parquet"])
    assert "read as Parquet, although its name ends in .csv" in read_table(path).notes[0]
    path.write_bytes(CONTENTS["CSV"])
    assert read_table(path).notes == ()
    path = tmp_path / "plain"
    path.write_bytes(CONTENTS["CSV"])
    assert "read as delimited text" in read_table(path).notes[0]


def test_distances_are_read_by_what_they_are(tmp_path):
    D = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.save(tmp_path / "d.npy", D)
    (tmp_path / "d.npy").rename(tmp_path / "d.csv")
    table = read_distances(tmp_path / "d.csv")
    np.testing.assert_array_equal(table.features, D)
    assert "read as NPY" in table.notes[0]


@each(
    ("name", "content"),
    [
        ("t.docx", b"a"),
        ("notes", b"just some words\nand some more of them here\n"),
        ("t.png", b"\x89PNG\r\n\x1a\n\0\0\0"),
        ("t.py", b"import os\n\nprint(os)\n"),
        ("t.html", b"<html>\n<body>\n</body>\n"),
        ("t.rds", bytes(range(256))),
        ("t.pkl", b"\x80\x04\x95\x10\0\0\0"),
        ("t.parquet", b"some words\n"),
        ("t.npz", b"PK\x03\x04 and nothing more"),
        ("t.csv", bytes(range(256)) * 3),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@each(
    "address", ["http://a.b/t.csv", "https://a.b/t.csv", "HTTPS://a.b/x", "s3://bucket/t.parquet"]
)
def test_addresses_are_refused_with_advice(address):
    for read in (read_table, read_distances):
        with pytest.raises(DataError, match="download it first"):
            read(address)


@each("kind", list(CONTENTS))
def test_standard_input_is_read_by_what_it_holds(tmp_path, kind):
    (tmp_path / "content").write_bytes(CONTENTS[kind])
    saved = os.dup(0)
    try:
        with open(tmp_path / "content", "rb") as stream:
            os.dup2(stream.fileno(), 0)
        np.testing.assert_array_equal(values("-"), X)
    finally:
        os.dup2(saved, 0)
        os.close(saved)

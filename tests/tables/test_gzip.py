"""Gzip is transparent for every kind of file."""

from __future__ import annotations

import gzip
import tempfile

import numpy as np
import pytest
import scipy.sparse

from fuzz.whole_files import whole_file
from lowland._base.errors import DataError
from lowland.tables import read_distances, read_table
from support.cases import each

NAMES = [
    *("table.csv", "table.tsv", "table.parquet", "table.arrow", "table.ndjson"),
    *("array.npy", "arrays.npz", "sparse.mtx"),
]


@pytest.fixture(autouse=True)
def temporary_files(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []  # whatever happened, nothing is left behind


def values(path):
    features = read_table(path).features
    return features.toarray() if scipy.sparse.issparse(features) else np.asarray(features)


@each("name", NAMES)
@each("form", ["{}.gz", "{}.GZ", "{}"])
def test_a_compressed_file_is_read_like_the_plain_one(tmp_path, name, form):
    plain, packed = tmp_path / name, tmp_path / "packed" / form.format(name)
    plain.write_bytes(whole_file(name))
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(whole_file(name)))
    np.testing.assert_array_equal(values(packed), values(plain))


def test_distances_may_be_compressed(tmp_path):
    path = tmp_path / "d.csv.gz"
    path.write_bytes(gzip.compress(b"0,1\n1,0\n", mtime=0))
    np.testing.assert_array_equal(read_distances(path).features, [[0, 1], [1, 0]])


@each(
    ("content", "message"),
    [
        (b"", "t.csv.gz: the file is empty"),
        (gzip.compress(b"", mtime=0), "t.csv.gz: the file is empty once unpacked"),
        (b"a,b\n1,2\n", "t.csv.gz: ends in .gz, but is not compressed by gzip"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "t.csv.gz: the gzip file is cut short"),
        (
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-8] + bytes(8),
            "t.csv.gz: the gzip file is damaged: CRC",
        ),
        (b"\x1f\x8b\x08" + bytes(50), "t.csv.gz: the gzip file"),
        (
            gzip.compress(b"a,b\n1,2\n3\n", mtime=0),
            "t.csv.gz, line 3: 1 fields where the first line has 2",
        ),
        (gzip.compress(b"a,b\n1,2\n3,\n", mtime=0), "t.csv.gz: missing values"),
    ],
)
def test_a_broken_file_is_refused_under_its_own_name(tmp_path, content, message):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_a_compressed_file_of_unknown_kind_is_refused(tmp_path):
    for name, kind in [("t.gz", "without a suffix"), ("t.tar.gz", "ending in '.tar'")]:
        (tmp_path / name).write_bytes(gzip.compress(b"a", mtime=0))
        with pytest.raises(DataError, match=f"{kind} are not read"):
            read_table(tmp_path / name)


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    import errno

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a\n1\n", mtime=0))
    monkeypatch.setattr(gzip.GzipFile, "read", full)
    with pytest.raises(DataError, match=r"t\.csv\.gz: no room to unpack it .* or set TMPDIR"):
        read_table(path)


def test_several_members_one_after_the_other_are_one_file(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n", mtime=0) + gzip.compress(b"3,4\n", mtime=0))
    assert read_table(path).features.rows() == [(1.0, 2.0), (3.0, 4.0)]

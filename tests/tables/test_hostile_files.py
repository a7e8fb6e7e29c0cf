"""Damaged, forged and bottomless files: one line, a documented exit code, in bounds."""

from __future__ import annotations

import gzip
import io
import os
import struct
import threading
import zipfile

import h5py
import numpy as np
import polars as pl
import pytest
import scipy.io
import scipy.sparse as sp

import lowland
from fuzz.whole_files import whole_file
from lowland.errors import DataError
from lowland.tables import opening, read_table
from support.cases import Cases, each
from support.programs import check, run_all

GOOD = [
    *("table.csv", "table.tsv", "table.ndjson", "table.parquet", "table.arrow", "packed.feather"),
    *("stream.arrow", "array.npy", "arrays.npz", "sparse.npz", "sparse.mtx", "dense.h5ad"),
    *("table.csv.gz", "images.png"),
]


def good_files(folder):
    """A small file of every format, by name, and a model of the numbers in ``x.npy``."""
    (folder / "x.npy").write_bytes(whole_file("array.npy"))
    model = folder / "m.lowland"
    lowland.PCA(2).fit(np.load(folder / "x.npy")).save(model)
    files = {**{name: whole_file(name) for name in GOOD}, model.name: model.read_bytes()}
    model.unlink()
    return files


def damaged(data, rng, cuts, flips):
    """The file cut short, and with single bytes changed, mostly near its ends."""
    for end in np.linspace(0, len(data) - 1, cuts).astype(int):
        yield data[:end]
    places = rng.integers(0, len(data), flips)
    places[::3] = rng.integers(0, min(200, len(data)), len(places[::3]))
    places[1::3] = len(data) - 1 - rng.integers(0, min(300, len(data)), len(places[1::3]))
    for i, place in enumerate(places):
        changed = bytearray(data)
        changed[place] ^= 0xFF if i % 2 else 1 << int(rng.integers(8))
        yield bytes(changed)


# More of them with LOWLAND_DAMAGE=10, others with LOWLAND_SEED=6.
CUTS, FLIPS = (int(os.environ.get("LOWLAND_DAMAGE", "1")) * number for number in (2, 3))


def model_for(name, folder):
    """A model that takes the rows of a good file."""
    rows = read_table(folder / name).features
    path = folder / f"{name}.lowland"
    lowland.PCA(1).fit(rows).save(path)
    return path.name


@pytest.mark.slow
def test_a_damaged_file_of_any_format_is_one_line(tmp_path):
    rng = np.random.default_rng(int(os.environ.get("LOWLAND_SEED", "5")))
    commands = []
    for name, data in good_files(tmp_path).items():
        suffix = name.partition(".")[2]
        for i, content in enumerate([data, *damaged(data, rng, CUTS, FLIPS)]):
            stem = f"{name.replace('.', '_')}_{i}"
            source = stem if suffix == "png" else f"{stem}.{suffix}"
            if suffix == "png":
                (tmp_path / stem).mkdir()
                for image in ("a.png", "c.png"):
                    (tmp_path / stem / image).write_bytes(data)
                (tmp_path / stem / "b.png").write_bytes(content)
            else:
                (tmp_path / source).write_bytes(content)
            if suffix == "lowland":
                model, source = source, "x.npy"
            elif i == 0:
                model = model_for(source, tmp_path)
            commands.append(["transform", model, source, "-o", f"{stem}-map.csv", "-q"])
    cases = Cases()
    for number, run in enumerate(run_all(commands, tmp_path)):
        cases.run(" ".join(run.arguments[1:3]), lambda run=run: check(run))
        if number % (1 + CUTS + FLIPS) == 0:  # the file as it was
            assert run.code == 0, run.err
        assert (tmp_path / run.arguments[4]).exists() == (run.code == 0)
    cases.finish()
    assert not list(tmp_path.glob(".lowland*"))  # nothing half-written


def test_a_number_without_its_end_does_not_crash_the_parser(tmp_path):
    numbers = ("4.3441E-", "4.3\x0041E-1\n", "4.3441E")
    for i, number in enumerate(numbers):
        (tmp_path / f"{i}.mtx").write_text(f"{HEADER}2 2 1\n1 1 {number}")
    for run in run_all([["info", f"{i}.mtx"] for i in range(len(numbers))], tmp_path):
        check(run)
        assert run.code == 2, run.arguments
    (tmp_path / "t.mtx").write_text(HEADER + "2 2 1\n1 1 4.5")  # without a line feed, but whole
    assert read_table(tmp_path / "t.mtx").features[0, 0] == 4.5


HEADER = "%%MatrixMarket matrix coordinate real general\n"


def forged_npy(shape, kind="<f8"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def write_h5ad(path, kind):
    with h5py.File(path, "w") as store:
        if kind == "dense":  # nothing is stored: all is the fill value
            store.create_dataset("X", (20_000, 20_000), "f4", chunks=(100, 100))
        elif kind == "sparse":
            group = store.create_group("X")
            group.attrs.update({"encoding-type": "csr_matrix", "shape": (10**9, 10**9)})
            for name in ("data", "indices", "indptr"):
                group.create_dataset(name, (2,), "i8")
        else:  # labels
            store["X"] = np.eye(5)
            group = store.create_group("obs")
            group.attrs.update({"_index": "names", "column-order": ["big"]})
            group.create_dataset("names", (5,), "i4")
            group.create_dataset("big", (10**10,), "i1", chunks=(10**6,))


BOMBS = {
    "huge.mtx": HEADER.encode() + b"1000000000 1000000000 1\n1 1 1.0\n",
    "entries.mtx": HEADER.encode() + b"10 10 1000000000\n1 1 1.0\n",
    "array.mtx": HEADER.replace("coordinate", "array").encode() + b"30000 30000\n1.0\n",
    "huge.npy": forged_npy((10**6, 10**6)),
    "overflow.npy": forged_npy((2**62, 2**62)),
    "huge.npz": zipped(X=forged_npy((10**5, 10**5)) + b"\0" * 1000),
    "lots.npz": zipped(X=forged_npy((2 * 10**4, 2 * 10**3)) + bytes(8 * 4 * 10**7)),
    "deep.ndjson": b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n",
    "many.csv": "\n".join(
        [",".join(f"c{i}" for i in range(20_000)), *[",".join("1" * 20_000)] * 3]
    ).encode(),
}
SECONDS, MEGABYTES = 30, 900  # some seconds on a machine that has nothing else to do


@pytest.mark.slow
def test_a_small_file_that_claims_much_is_refused_in_bounds(tmp_path):
    for name, content in BOMBS.items():
        (tmp_path / name).write_bytes(content)
    # 320 MB in 320 kB: parts of a gzip file may be compressed one by one
    parts = [gzip.compress(b"a,b\n"), *[gzip.compress(b"0,0\n" * 2_000_000)] * 40]
    (tmp_path / "bomb.csv.gz").write_bytes(b"".join(parts))
    for kind in ("dense", "sparse", "labels"):
        write_h5ad(tmp_path / f"{kind}.h5ad", kind)
    constant = pl.DataFrame({"a": pl.Series([0.0]).new_from_index(0, 10**8)})
    constant.write_parquet(tmp_path / "constant.parquet", row_group_size=10**7)
    constant.head(6 * 10**7).write_ipc(tmp_path / "constant.arrow", compression="zstd")
    names = sorted(path.name for path in tmp_path.iterdir())
    cases = Cases()
    runs = run_all([["info", name] for name in names], tmp_path)
    for run in runs:
        cases.run(run.arguments[1], lambda run=run: check_refused(run))
    cases.finish()


def check_refused(run):
    check(run, most_seconds=SECONDS, most_mb=MEGABYTES)
    if run.arguments[1] != "many.csv":  # is only wide
        assert run.code == 2
        assert run.arguments[1] in run.err


def test_a_harmless_matrix_with_empty_rows_is_read(tmp_path):
    """Features that were hashed into many columns are nearly all empty."""
    X = sp.csr_matrix((np.ones(40), (np.arange(40) % 20, np.arange(40) * 1000)), shape=(20, 2**20))
    sp.save_npz(tmp_path / "t.npz", X)
    scipy.io.mmwrite(tmp_path / "t.mtx", X)
    assert read_table(tmp_path / "t.npz").shape == read_table(tmp_path / "t.mtx").shape == X.shape


def test_a_file_that_unpacks_to_much_is_read_below_the_ratio(tmp_path, monkeypatch):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 10_000))
    assert read_table(tmp_path / "t.csv.gz").shape == (10_000, 2)
    monkeypatch.setattr(opening, "HARMLESS", 1000)
    with pytest.raises(DataError, match=r"t\.csv\.gz: .* unpack to more than .*gunzip"):
        read_table(tmp_path / "t.csv.gz")


def test_a_part_of_h5ad_that_lies_in_another_file_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(800))
    with h5py.File(tmp_path / "t.h5ad", "w") as store:
        store.create_dataset("X", (10, 10), "f8", external=[(str(tmp_path / "secret"), 0, 800)])
    with pytest.raises(DataError, match="refers to other files"):
        read_table(tmp_path / "t.h5ad")


posix = pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")


@posix
@each("name", [name for name in GOOD if not name.startswith(("stream", "packed", "images"))])
@each("named", [True, False])
def test_a_pipe_is_read_like_a_file(tmp_path, name, named):
    content = whole_file(name)
    (tmp_path / name).write_bytes(content)
    pipe = tmp_path / (f"pipe.{name.partition('.')[2]}" if named else "pipe")
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    found, expected = read_table(pipe), read_table(tmp_path / name)
    writer.join()
    assert found.shape == expected.shape
    assert found.labels.equals(expected.labels)
    if not found.is_sparse:
        np.testing.assert_array_equal(np.asarray(found.features), np.asarray(expected.features))


def test_a_pipe_that_nobody_writes_to_does_not_wait_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "PATIENCE", 0.2)
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"t\.csv: is a pipe to which no program writes"):
        read_table(tmp_path / "t.csv")
    writer = threading.Thread(target=lambda: (tmp_path / "t.csv").write_bytes(b""))
    writer.start()
    with pytest.raises(DataError, match=r"t\.csv: delivers nothing"):
        read_table(tmp_path / "t.csv")
    writer.join()


@posix
@each("name", ["/dev/zero", "/dev/urandom", "/dev/null", "/dev/full"])
def test_a_device_is_refused(name):
    with pytest.raises(DataError, match=f"{name}: is a device"):
        read_table(name)


@posix
def test_a_pipe_may_not_deliver_more_than_fits(tmp_path, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "10 MB")
    monkeypatch.setattr(opening, "CHUNK", 1 << 16)
    os.mkfifo(tmp_path / "t.csv")

    def write():
        with (tmp_path / "t.csv").open("wb") as out:
            try:
                for _ in range(100):
                    out.write(b"1,2\n" * 100_000)
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(DataError, match=r"delivers more than the 10 MB"):
        read_table(tmp_path / "t.csv")
    writer.join()

"""Small files of every kind that lowland reads, as bytes by name; each is made once."""

from __future__ import annotations

import functools
import gzip
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import scipy.io
import scipy.sparse

ROWS = 24
IMAGES = ("png", "pgm", "jpg", "gif", "tif", "bmp", "webp")


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _numbers() -> np.ndarray:
    return np.round(_rng().standard_normal((ROWS, 4)) * 5, 2)


def _frame() -> pl.DataFrame:
    X = _numbers()
    columns = {"id": [f"s{i}" for i in range(ROWS)]}
    columns |= {name: X[:, j].tolist() for j, name in enumerate(["height", "width", "depth", "w"])}
    kinds = [("ab"[i % 2], i % 3 == 0, i) for i in range(ROWS)]
    columns |= {"kind": [kind for kind, _, _ in kinds], "flag": [flag for _, flag, _ in kinds]}
    columns |= {"count": [count for _, _, count in kinds]}
    return pl.DataFrame(columns)


def _missing_frame() -> pl.DataFrame:
    row = pl.int_range(pl.len())
    return _frame().with_columns(pl.when(row % 7 == 1).then(None).otherwise("width").alias("width"))


def _distances() -> np.ndarray:
    X = _numbers()
    return np.round(np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2)), 4)


def _sparse() -> scipy.sparse.csr_matrix:
    X = _numbers()
    return scipy.sparse.csr_matrix(np.where(X > 1, X, 0.0))


def _written(write: Callable[..., object], *arguments: object) -> bytes:
    buffer = io.BytesIO()
    write(buffer, *arguments)
    return buffer.getvalue()


def _npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _h5ad(sparse: bool) -> bytes:
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5ad"
        with h5py.File(path, "w") as store:
            _put(store, sparse)
        return path.read_bytes()


def _put(store: object, sparse: bool) -> None:
    import h5py

    text = h5py.string_dtype()
    if sparse:
        node = store.create_group("X")
        node.attrs["encoding-type"], node.attrs["shape"] = "csr_matrix", _sparse().shape
        for part in ("data", "indices", "indptr"):
            node[part] = getattr(_sparse(), part)
    else:
        store["X"] = _numbers()
    for name, length in (("obs", ROWS), ("var", 4)):
        node = store.create_group(name)
        node.attrs["encoding-type"], node.attrs["_index"] = "dataframe", "_index"
        node.attrs["column-order"] = np.array(["kind"], dtype=text)
        node.create_dataset("_index", data=[f"{name}{i}" for i in range(length)], dtype=text)
        node.create_dataset("kind", data=["a", "b"] * (length // 2), dtype=text)


def _named_distances() -> bytes:
    names = [f"town {i}" for i in range(ROWS)]
    columns = dict(zip(names, _distances().T.tolist(), strict=True))
    return _frame().select(name="id").hstack(pl.DataFrame(columns)).write_csv().encode()


FILES: dict[str, Callable[[], bytes]] = {
    "table.csv": lambda: _frame().write_csv().encode(),
    "missing.csv": lambda: _missing_frame().write_csv().encode(),
    "semicolon.csv": lambda: _frame().write_csv(separator=";").encode(),
    "table.tsv": lambda: _frame().write_csv(separator="\t").encode(),
    "table.csv.gz": lambda: gzip.compress(_frame().write_csv().encode(), mtime=0),
    "table.parquet": lambda: _written(_frame().write_parquet),
    "plain.parquet": lambda: _written(
        lambda b: _frame().write_parquet(b, compression="uncompressed")
    ),
    "missing.parquet": lambda: _written(_missing_frame().write_parquet),
    "table.arrow": lambda: _written(_frame().write_ipc),
    "packed.feather": lambda: _written(lambda b: _frame().write_ipc(b, compression="lz4")),
    "stream.arrow": lambda: _written(_frame().write_ipc_stream),
    "table.ndjson": lambda: _written(_frame().write_ndjson),
    "array.npy": lambda: _written(np.save, _numbers()),
    "single.npy": lambda: _written(np.save, _numbers().astype(np.float32)),
    "array.npy.gz": lambda: gzip.compress(_written(np.save, _numbers()), mtime=0),
    "fortran.npy": lambda: _written(np.save, np.asfortranarray(_numbers())),
    "arrays.npz": lambda: _npz(X=_numbers(), y=np.arange(ROWS) % 3),
    "sparse.npz": lambda: _written(scipy.sparse.save_npz, _sparse()),
    "sparse.mtx": lambda: _written(scipy.io.mmwrite, _sparse()),
    "dense.mtx": lambda: _written(scipy.io.mmwrite, _numbers()),
    "sparse.mtx.gz": lambda: gzip.compress(_written(scipy.io.mmwrite, _sparse()), mtime=0),
    "dense.h5ad": lambda: _h5ad(sparse=False),
    "sparse.h5ad": lambda: _h5ad(sparse=True),
    "distances.csv": lambda: pl.DataFrame(_distances()).write_csv(include_header=False).encode(),
    "named-distances.csv": _named_distances,
    "distances.npy": lambda: _written(np.save, _distances()),
}


def names() -> list[str]:
    """Names of all files; ``images.png`` is one image of a folder of them."""
    return [*FILES, *(f"images.{kind}" for kind in IMAGES)]


@functools.cache
def whole_file(name: str) -> bytes:
    if name not in FILES:
        return _image(name.split(".")[1])
    return FILES[name]()


def _image(kind: str) -> bytes:
    from PIL import Image

    pixels = _rng().integers(0, 255, (6, 5), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(
        buffer, {"jpg": "jpeg", "tif": "tiff", "pgm": "ppm"}.get(kind, kind)
    )
    return buffer.getvalue()

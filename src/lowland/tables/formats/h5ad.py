"""H5AD (AnnData on disk): ``X``, a layer or an embedding; obs as labels. Needs only h5py.

The format: https://anndata.readthedocs.io/en/latest/fileformat-prose.html
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, unknown_name
from lowland.tables.budget import refuse_bomb, require_for_sparse, require_for_table
from lowland.tables.contents import Contents, Request, free_id, named_matrix, reading, unreadable
from lowland.tables.formats import h5_program
from lowland.tables.formats.arrays import checked_matrix, compressed_rows
from lowland.tables.opening import File

if TYPE_CHECKING:
    import polars as pl


def read_index(node: Any) -> list[str] | None:
    """The names of the rows of a frame; None if there are none."""
    if _is_compound(node):  # anndata before 0.7
        name = next((name for name in INDEX if name in node.dtype.names), None)
        return None if name is None else _texts(values_of(node)[name])
    name = node.attrs.get("_index")
    if name is None or name not in node:
        return None
    return [str(value) for value in _values(node[name])]


def read_columns(where: str, node: Any) -> tuple[pl.DataFrame, list[str]]:
    """The columns as labels, and the names of columns in an unknown form."""
    import polars as pl

    if _is_compound(node):
        values = values_of(node)
        names = [name for name in node.dtype.names if name not in INDEX]
        columns = {name: _old_column(node, name, values[name]) for name in names}
    else:
        order = node.attrs.get("column-order", [])
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in order]
        columns = {name: _column(node[name]) for name in names if name in node}
    known = {name: column for name, column in columns.items() if column is not None}
    lengths = {len(column) for column in known.values()}
    if len(lengths) > 1:
        raise DataError(f"{where}: its columns have different lengths: {sorted(lengths)}.")
    return pl.DataFrame(known), [name for name in columns if name not in known]


def values_of(node: Any) -> np.ndarray:
    """All values of a dataset; refused if it does not lie in the file itself, or is a bomb.

    A dataset may refer to bytes of other files, and HDF5 would read those.
    """
    file = node.file.filename
    if node.is_virtual or node.external:
        raise DataError(f"{file}: {node.name!r} refers to other files.")
    refuse_bomb(file, node.size * node.dtype.itemsize, os.path.getsize(file))
    return node[()]


def _column(node: Any) -> pl.Series | None:
    """One column of a frame; None if its form is not known."""
    import h5py
    import polars as pl

    if isinstance(node, h5py.Dataset):
        if "categories" in node.attrs:  # anndata 0.7: a reference to where they are
            return _categorical(values_of(node), _values(node.file[node.attrs["categories"]]))
        values = _values(node)
        return None if values is None else pl.Series(values)
    kind = node.attrs.get("encoding-type", "")
    if kind == "categorical":
        return _categorical(values_of(node["codes"]), _values(node["categories"]))
    if str(kind).startswith("nullable-"):
        values = _values(node["values"])
        return pl.Series(values).set(pl.Series(values_of(node["mask"]).astype(bool)), None)
    return None


def _categorical(codes: np.ndarray, categories: Any) -> pl.Series:
    import polars as pl

    codes = np.asarray(codes, np.int64)
    if codes.size and codes.max() >= len(categories):
        raise ValueError(f"category {codes.max()} of {len(categories)}")
    places = pl.Series(codes).set(pl.Series(codes < 0), None)
    return pl.Series(categories).gather(places)


def _old_column(node: Any, name: str, values: np.ndarray) -> pl.Series:
    """A field of a compound obs; its categories, if any, are kept in ``uns``."""
    import polars as pl

    categories = node.file.get(f"uns/{name}_categories")
    if categories is not None:
        return _categorical(values, _values(categories))
    return pl.Series(values if values.dtype.kind in "biuf" else _texts(values))


def _values(node: Any) -> Any:
    """A dataset of numbers as an array, one of text as a list; a nullable text as a list."""
    import h5py

    if not isinstance(node, h5py.Dataset):  # text of pandas 3: values and a mask
        texts, mask = _texts(values_of(node["values"])), values_of(node["mask"])
        return [None if missing else text for text, missing in zip(texts, mask, strict=True)]
    if node.ndim != 1:
        return None
    values = values_of(node)
    if values.dtype.kind in "biuf":
        return values
    return _texts(values) if values.dtype.kind in "OSU" else None


def _texts(values: np.ndarray) -> list[str]:
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values]


def _is_compound(node: Any) -> bool:
    return getattr(getattr(node, "dtype", None), "names", None) is not None


INDEX = ("index", "_index")  # the field of a compound obs that names the rows
# Where the names of the columns of each part are.
NAMES_OF = {"X": "var", "layers": "var", "raw": "raw/var"}
FOLDERS = ("layers", "obsm", "obsp")
PATIENCE = 30.0  # seconds for a look that takes less than one


def read_h5ad(file: File, request: Request) -> Contents:
    """The part asked for (``X`` by default), obs_names as ids, columns of obs as labels."""
    require_h5py(str(file))
    import h5py
    import polars as pl

    if not h5py.is_hdf5(file.path):
        raise unreadable(file, "H5AD", "it is not an HDF5 file, or it is cut short")
    _check_harmless(file)
    broken = (
        *(AttributeError, IndexError, KeyError, OSError, OverflowError, RuntimeError),
        *(TypeError, ValueError, pl.exceptions.PolarsError),
    )
    with reading(file, "H5AD", *broken), h5py.File(file.path, "r") as store:
        return _read(file, store, request.part or "X")


def require_h5py(name: str) -> None:
    """Refuse a file for which a package is missing."""
    try:
        import h5py  # noqa: F401
    except ImportError as error:
        needs = "H5AD files need the package h5py: pip install 'lowland[anndata]'"
        raise DataError(f"{name}: {needs}.") from error


def run_program(patience: float, **request: Any) -> dict[str, Any]:
    """The answer of the program that works with libhdf5; a crash of it is an error, too."""
    if not sys.executable:  # an embedded interpreter cannot start another one
        return h5_program.main(request)
    try:
        # Ctrl-C is for this process, which then ends the other one.
        done = subprocess.run(
            [sys.executable, "-P", h5_program.__file__],
            input=json.dumps(request, allow_nan=True).encode(),
            capture_output=True,
            timeout=patience,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        limit = f"{math.ceil(patience)} s"
        return {"error": f"the HDF5 library did not come to an end with it within {limit}"}
    if done.returncode < 0:
        return {"error": f"it is damaged: the HDF5 library crashes (signal {-done.returncode})"}
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        return {"error": last or f"exit code {done.returncode}"}
    return json.loads(done.stdout)


def _check_harmless(file: File) -> None:
    """Refuse a damaged file that would crash libhdf5 or keep it busy for ever."""
    answer = run_program(PATIENCE, task="look", path=str(file.path))
    if answer["error"] is not None:
        raise unreadable(file, "H5AD", answer["error"])


def _read(file: File, store: Any, part: str) -> Contents:
    matrix, names = _matrix(file, store, part)
    rows = matrix.shape[0]
    labels, notes, id_name = _observations(file, store, rows)
    if names is None and part.split("/")[0] in NAMES_OF:
        var = store.get(NAMES_OF[part.split("/")[0]])
        names = None if var is None else read_index(var)
        if names is not None and len(names) != matrix.shape[1]:
            sizes = f"{matrix.shape[1]} columns, but there are {len(names)} names"
            raise DataError(f"{file}: {part!r} has {sizes}.")
    return named_matrix(matrix, names, labels, notes, id_name)


def _matrix(file: File, store: Any, part: str) -> tuple[Any, list[str] | None]:
    """The numbers of a part, and the names of its columns if the part has them."""
    import h5py

    known = [name for name in ("X", "raw/X") if name in store]
    known += [f"{folder}/{name}" for folder in FOLDERS for name in store.get(folder, ())]
    if part not in known:
        if part == "X":
            found = ", ".join(known) or "none"
            raise DataError(f"{file}: has no 'X'; name one of its parts to read: {found}.")
        raise DataError(f"{file}: {unknown_name('part', part, known)}")
    node, where = store[part], f"{file}, part {part!r}"
    if isinstance(node, h5py.Dataset):
        if len(node.shape) == 2:
            wide = node.dtype.itemsize + (8 if node.dtype.kind != "f" else 0)
            rows, columns = node.shape
            require_for_table(where, rows, columns, columns * wide)
        return checked_matrix(np.asarray(values_of(node)), where), None
    kind = node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", ""))
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind[:3] in ("csr", "csc"):
        return _sparse(node, kind[:3], where), None
    if kind == "dataframe":
        frame, left = read_columns(where, node)
        odd = [*left, *(name for name, dtype in frame.schema.items() if not dtype.is_numeric())]
        if odd:
            raise DataError(f"{where}: column {odd[0]!r} holds no numbers.")
        return checked_matrix(frame.to_numpy(), where), frame.columns
    raise DataError(f"{where}: is neither an array nor a sparse matrix, but {kind or 'a group'!r}.")


def _sparse(node: Any, kind: str, where: str) -> Any:
    import scipy.sparse

    shape = node.attrs["shape"] if "shape" in node.attrs else node.attrs["h5sparse_shape"]
    rows, columns = (int(size) for size in shape)
    require_for_sparse(where, rows, columns, node["data"].size)
    places = [values_of(node[name]) for name in ("data", "indices", "indptr")]
    build = scipy.sparse.csr_matrix if kind == "csr" else scipy.sparse.csc_matrix
    return compressed_rows(build(tuple(places), shape=(rows, columns)), where)


def _observations(file: File, store: Any, rows: int) -> tuple[pl.DataFrame, list[str], str | None]:
    """The columns of obs with the row ids first, notes, and the name of the id column."""
    import polars as pl

    obs = store.get("obs")
    if obs is None:
        return pl.DataFrame(), [], None
    frame, left = read_columns(f"{file}, part 'obs'", obs)
    notes = [f"columns of obs that are not used: {', '.join(left)}"] if left else []
    ids, id_name = read_index(obs), None
    if ids is not None:
        id_name = free_id(frame.columns)
        frame = pl.DataFrame({id_name: ids}).hstack(frame)
    if frame.width and frame.height != rows:
        raise DataError(f"{file}: obs has {frame.height} rows where the numbers have {rows}.")
    return frame, notes, id_name

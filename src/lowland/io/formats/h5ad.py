"""H5AD (AnnData on disk): ``X``, a layer or an embedding; obs as labels. Needs only h5py.

The format: https://anndata.readthedocs.io/en/latest/fileformat-prose.html
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError, unknown_name
from lowland.io.contents import Contents, Request, named_matrix, unreadable
from lowland.io.files.budget import require_for_sparse, require_for_table
from lowland.io.files.opening import File
from lowland.io.formats import h5_look
from lowland.io.formats.arrays import checked_matrix
from lowland.io.formats.h5ad_columns import read_columns, read_index, values_of
from lowland.io.formats.sparse import compressed_rows

if TYPE_CHECKING:
    import polars as pl

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
    try:
        with h5py.File(file.path, "r") as store:
            return _read(file, store, request.part or "X")
    except DataError:
        raise
    except broken as error:
        raise unreadable(file, "H5AD", error) from error


def require_h5py(name: str) -> None:
    """Refuse a file for which a package is missing."""
    try:
        import h5py  # noqa: F401
    except ImportError as error:
        raise DataError(
            f"{name}: H5AD files need the package h5py: pip install 'lowland[anndata]'."
        ) from error


def _check_harmless(file: File) -> None:
    """Refuse a damaged file that would crash libhdf5 or keep it busy for ever."""
    if not sys.executable:  # an embedded interpreter cannot start another one
        return
    program = [sys.executable, "-P", h5_look.__file__, str(file.path)]
    try:
        look = subprocess.run(
            program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = "it is damaged: the HDF5 library does not come to an end with it"
        raise unreadable(file, "H5AD", reason) from None
    if look.returncode < 0:
        reason = f"it is damaged: the HDF5 library crashes (signal {-look.returncode})"
        raise unreadable(file, "H5AD", reason)


def _read(file: File, store: Any, part: str) -> Contents:
    matrix, names = _matrix(file, store, part)
    rows = matrix.shape[0]
    labels, notes, id_name = _observations(file, store, rows)
    if names is None and part.split("/")[0] in NAMES_OF:
        var = store.get(NAMES_OF[part.split("/")[0]])
        names = None if var is None else read_index(var)
        if names is not None and len(names) != matrix.shape[1]:
            raise DataError(
                f"{file}: {part!r} has {matrix.shape[1]} columns, but there are {len(names)} names."
            )
    return named_matrix(matrix, names, labels, notes, id_name)


def _matrix(file: File, store: Any, part: str) -> tuple[Any, list[str] | None]:
    """The numbers of a part, and the names of its columns if the part has them."""
    import h5py

    known = _parts(store)
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
    kind = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
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
        id_name = "index" if "row" in frame.columns else "row"
        frame = pl.DataFrame({id_name: ids}).hstack(frame)
    if frame.width and frame.height != rows:
        raise DataError(f"{file}: obs has {frame.height} rows where the numbers have {rows}.")
    return frame, notes, id_name


def _parts(store: Any) -> list[str]:
    """All parts that can be read."""
    found = [name for name in ("X", "raw/X") if name in store]
    for folder in FOLDERS:
        if folder in store:
            found += [f"{folder}/{name}" for name in store[folder]]
    return found


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)

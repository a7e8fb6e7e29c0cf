"""Data frames inside H5AD files: plain, categorical and nullable columns, old and new layouts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland.io.files.budget import refuse_bomb

if TYPE_CHECKING:
    import polars as pl


def read_index(node: Any) -> list[str] | None:
    """The names of the rows of a frame; None if there are none."""
    if _is_compound(node):  # anndata before 0.7
        check_dataset(node)
        name = next((name for name in ("index", "_index") if name in node.dtype.names), None)
        return None if name is None else _texts(node[name])
    name = node.attrs.get("_index")
    if name is None or name not in node:
        return None
    return [str(value) for value in _values(node[name])]


def read_columns(where: str, node: Any) -> tuple[pl.DataFrame, list[str]]:
    """The columns as labels, and the names of columns in an unknown form."""
    import polars as pl

    if _is_compound(node):
        check_dataset(node)
        columns = {
            name: _old_column(node, name)
            for name in node.dtype.names
            if name not in ("index", "_index")
        }
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
    """All values of a dataset."""
    check_dataset(node)
    return node[()]


def check_dataset(node: Any) -> None:
    """Refuse a dataset that does not lie in the file itself, or is a bomb.

    A dataset may refer to bytes of other files, and HDF5 would read those.
    """
    if node.is_virtual or node.external:
        raise DataError(f"{node.file.filename}: {node.name!r} refers to other files.")
    held = os.path.getsize(node.file.filename)
    refuse_bomb(node.file.filename, node.size * node.dtype.itemsize, held)


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


def _old_column(node: Any, name: str) -> pl.Series:
    """A field of a compound obs; its categories, if any, are kept in ``uns``."""
    import polars as pl

    values = node[name]
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

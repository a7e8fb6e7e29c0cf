"""A map written into a copy of the H5AD file that it was made of; the original is not touched.

The file is copied as it is, and two entries are added, whatever the size of the rest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland.tables.contents import one_line
from lowland.tables.formats.h5ad import PATIENCE, require_h5py, run_program
from lowland.tables.opening import format_suffix, is_stream, opened

SUFFIX = ".h5ad"
BYTES_PER_SECOND = 1e6  # that the slowest disk writes
LARGEST = 2**63  # integers from here on are written as text


def map_key(name: str) -> str:
    """Where a map lies in ``obsm``: ``X_tsne`` for ``tsne``, as scanpy has it."""
    return f"X_{name}"


def check_h5ad_target(source: str | os.PathLike[str], name: str, *, force: bool = False) -> None:
    """Refuse a source that a map called ``name`` cannot be written into a copy of.

    It must be an H5AD file that has no map of that name yet, unless ``force``. This takes a moment
    only, so that it can be asked before the map is made.
    """
    path = _check_source(source)
    with opened(path) as file:
        require_h5py(str(file))
        _ask(path, PATIENCE, force, task="taken", path=str(file.path), name=name)


def write_h5ad(
    source: str | os.PathLike[str],
    target: Path,
    name: str,
    Y: np.ndarray,
    params: Mapping[str, Any],
    *,
    force: bool = False,
) -> None:
    """Write ``target``, a copy of ``source`` with a map.

    Parameters
    ----------
    source : path
        An H5AD file, also compressed by gzip.
    target : path
        A file that does not exist, such as one of :func:`staged_outputs`.
    name : str
        The method: the map becomes ``obsm["X_<name>"]``, and ``uns["<name>"]["params"]`` records
        how it was made.
    Y : ndarray of shape (n_obs, n_components)
        The coordinates, one row for each row of the file; NaN for rows that are not in the map.
    params : mapping
        Numbers, text, lists of these, and mappings of the same.
    force : bool, default=False
        Whether an older map of that name may be replaced.
    """
    path = _check_source(source)
    require_h5py(str(path))
    beside = target.with_name(f"{target.name}.npy")
    try:
        with opened(path) as file:
            shutil.copyfile(file.path, target)
        np.save(beside, np.ascontiguousarray(Y), allow_pickle=False)
        patience = PATIENCE + os.path.getsize(beside) / BYTES_PER_SECOND
        what = {"coordinates": str(beside), "params": plain(params), "replace": force}
        _ask(path, patience, force, task="add", path=str(target), name=name, **what)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        beside.unlink(missing_ok=True)


def uns_params(found: Mapping[str, Any], version: str, part: str | None) -> dict[str, Any]:
    """What ``uns["<method>"]["params"]`` holds, from the dictionary of a result."""
    quality = {
        measure: {key: row[key] for key in ("value", "standard_error", "pca", "random")}
        for measure, row in (found["quality"] or {}).items()
    }
    return {
        "method": found["method"],
        "parameters": found["parameters"],
        "seed": found["parameters"].get("random_state"),
        "part": part or "X",
        "preparation": found["preparation"],
        "stopped_early": found["stopped_early"],
        "quality": quality,
        "software": "lowland",
        "version": version,
    }


def plain(value: Any) -> Any:
    """The value as every version of anndata can read it; None is left out of mappings.

    >>> plain({"a": None, "b": [1, 2.5], "c": [1, "x"], "d": 2**70})
    {'b': [1, 2.5], 'c': ['1', 'x'], 'd': '1180591620717411303424'}
    """
    if isinstance(value, Mapping):
        return {_text(key): plain(held) for key, held in value.items() if held is not None}
    if isinstance(value, list | tuple):
        numbers = all(_is_number(item) and not isinstance(item, bool) for item in value)
        return list(value) if numbers and value else [_text(item) for item in value]
    return value if _is_number(value) else _text(value)


def _is_number(value: Any) -> bool:
    """Whether HDF5 can hold it as a number or a truth value."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST)


def _text(value: Any) -> str:
    """Text that HDF5 can hold: it ends at a NUL, and must be UTF-8."""
    return str(value).replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _check_source(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    if is_stream(path):
        raise DataError(f"{path}: is read only once and cannot be copied; give the path of a file.")
    if format_suffix(path) != SUFFIX or not path.is_file():
        what = f"a map goes into obsm of an H5AD file (AnnData, {SUFFIX}) only"
        raise DataError(f"{path}: {what}; leave into='obsm' (--into obsm) out.")
    return path


def _ask(source: Path, patience: float, force: bool, **request: Any) -> None:
    """Let the other process do it; its failure is an error, and a map that must stay is, too."""
    answer = run_program(patience, key=map_key(request["name"]), **request)
    if answer["error"] is not None:
        raise DataError(f"{source}: the map cannot be added to it: {one_line(answer['error'])}.")
    if answer["result"] and not force:
        parts = [entry.partition("/") for entry in answer["result"]]
        there = " and ".join(f"{folder}[{entry!r}]" for folder, _, entry in parts)
        advice = "replace it in the copy with force=True (--force)"
        raise DataError(f"{source}: has {there} already; {advice}.")

"""A map written into a copy of the H5AD file that it was made of; the original is not touched.

The file is copied as it is, and two entries are added, whatever the size of the rest.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland.tables.contents import one_line
from lowland.tables.formats import h5_add
from lowland.tables.formats.h5ad import PATIENCE, require_h5py
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
        request = {"path": str(file.path), "key": map_key(name), "name": name}
        taken = _ask(str(path), request)
    if taken and not force:
        raise _already_there(path, taken)


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
        The method: the map becomes ``obsm["X_<name>"]``, and ``uns["<name>"]["params"]`` tells how
        it was made.
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
        request = {
            "path": str(target),
            "key": map_key(name),
            "name": name,
            "coordinates": str(beside),
            "params": plain(params),
            "replace": force,
        }
        taken = _ask(str(path), request, PATIENCE + os.path.getsize(beside) / BYTES_PER_SECOND)
        if taken and not force:
            raise _already_there(path, taken)
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
        kinds = {type(item) for item in value}
        if kinds <= {int, float} and all(map(_is_small, value)) and value:
            return list(value)
        return [_text(item) for item in value]
    if isinstance(value, bool | float) or (isinstance(value, int) and _is_small(value)):
        return value
    return _text(value)


def _is_small(number: float) -> bool:
    return isinstance(number, float) or abs(number) < LARGEST


def _text(value: Any) -> str:
    """Text that HDF5 can hold: it ends at a NUL, and must be UTF-8."""
    return str(value).replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _check_source(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    if is_stream(path):
        raise DataError(
            f"{path}: is read only once, so there is no file to copy; give the path of an H5AD "
            "file to have the map in obsm."
        )
    if format_suffix(path) != SUFFIX or not path.is_file():
        raise DataError(
            f"{path}: a map goes into obsm of an H5AD file (AnnData, {SUFFIX}) only; leave "
            "into='obsm' (--into obsm) out, and the coordinates are in the file of the map."
        )
    return path


def _already_there(path: Path, taken: list[str]) -> DataError:
    parts = [entry.partition("/") for entry in taken]
    there = " and ".join(f"{folder}[{entry!r}]" for folder, _, entry in parts)
    return DataError(
        f"{path}: has {there} already; replace it in the copy with force=True (--force)."
    )


def _ask(name: str, request: dict[str, Any], patience: float = PATIENCE) -> list[str]:
    """What the other process found in the way; its failure, and its death, are errors."""
    alone = not sys.executable  # an embedded interpreter cannot start another one
    answer = h5_add.main(request) if alone else _answer(request, patience)
    if answer["error"] is not None:
        raise DataError(f"{name}: the map cannot be added to it: {one_line(answer['error'])}.")
    return answer["taken"]


def _answer(request: dict[str, Any], patience: float) -> dict[str, Any]:
    program = [sys.executable, "-P", h5_add.__file__]
    given = json.dumps(request, allow_nan=True).encode()
    try:
        # Ctrl-C is for this process, which then ends the other one.
        done = subprocess.run(
            program,
            input=given,
            capture_output=True,
            timeout=patience,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"the HDF5 library did not come to an end within {math.ceil(patience)} s"
        return {"error": reason}
    if done.returncode < 0:
        return {"error": f"it is damaged: the HDF5 library crashes (signal {-done.returncode})"}
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        return {"error": last or f"exit code {done.returncode}"}
    return json.loads(done.stdout)

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
from lowland.tables.formats.h5ad import PATIENCE, require_h5py
from lowland.tables.opening import format_suffix, is_stream, opened

# A program that adds a map to a copy of an H5AD file, or looks whether there is one already.
#
# libhdf5 may crash, or loop for ever, on a damaged file. The map is finished by then and must not
# be lost, so a process of its own does it (``h5ad_writing.py``). It imports nothing of this
# package, to start fast. It reads a request and writes an answer, both JSON.
#
# The encodings: https://anndata.readthedocs.io/en/latest/fileformat-prose.html


OLD = "has the layout of anndata before 0.7; read it with anndata and write it again"


class Refused(Exception):  # noqa: N818
    """The file is not one that a map can be added to."""


def look(path: str, key: str, name: str) -> list[str]:
    """The entries of the file that a map of this name would replace."""
    import h5py

    with h5py.File(path, "r") as store:
        _check(store, None)
        return _taken(store, key, name)


def add(
    path: str, key: str, name: str, coordinates: str, params: dict[str, Any], replace: bool
) -> list[str]:
    """Write ``obsm[key]`` and ``uns[name]["params"]``; return what must not be replaced, if any."""
    import h5py
    import numpy as np

    Y = np.load(coordinates, allow_pickle=False)
    with h5py.File(path, "r+") as store:
        _check(store, len(Y))
        taken = _taken(store, key, name)
        if taken and not replace:
            return taken
        for entry in taken:
            del store[entry]
        obsm, uns = (_folder(store, folder) for folder in ("obsm", "uns"))
        _write(obsm, key, Y)
        _write(uns, name, {"params": params})
        return []


def _check(store: Any, rows: int | None) -> None:
    """Refuse a file of another layout, of other rows, or whose parts lie in other files."""
    import h5py

    for folder in ("obs", "obsm", "uns"):
        link = store.get(folder, getlink=True)
        if link is None and folder != "obs":
            continue
        if not isinstance(link, h5py.HardLink):
            raise Refused(
                f"{folder!r} refers to another place" if link else "has no 'obs', so no rows"
            )
        if not isinstance(store[folder], h5py.Group):
            raise Refused(OLD)
    index = store["obs"].attrs.get("_index")
    if index is None or index not in store["obs"]:
        raise Refused("its 'obs' does not name the rows")
    node = store["obs"][index]
    node = node["values"] if isinstance(node, h5py.Group) else node  # nullable text
    if rows is not None and node.shape != (rows,):
        raise Refused(f"its 'obs' has {node.shape[0]} rows now, but the map has {rows}")


def _taken(store: Any, key: str, name: str) -> list[str]:
    wanted = [("obsm", key), ("uns", name)]
    return [f"{folder}/{entry}" for folder, entry in wanted if entry in store.get(folder, ())]


def _folder(store: Any, name: str) -> Any:
    if name in store:
        return store[name]
    return _mark(store.create_group(name), "dict", "0.1.0")


def _write(group: Any, name: str, value: Any) -> None:
    """One value in the encoding that anndata gives to its kind."""
    import h5py
    import numpy as np

    text = h5py.string_dtype()
    if isinstance(value, dict):
        inner = _mark(group.create_group(name), "dict", "0.1.0")
        for key, held in value.items():
            _write(inner, key, held)
    elif isinstance(value, str):
        _mark(group.create_dataset(name, data=value, dtype=text), "string", "0.2.0")
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        made = group.create_dataset(name, data=np.array(value, dtype=object), dtype=text)
        _mark(made, "string-array", "0.2.0")
    elif isinstance(value, list | np.ndarray):
        _mark(group.create_dataset(name, data=np.asarray(value)), "array", "0.2.0")
    else:
        _mark(group.create_dataset(name, data=value), "numeric-scalar", "0.2.0")


def _mark(node: Any, kind: str, version: str) -> Any:
    node.attrs["encoding-type"], node.attrs["encoding-version"] = kind, version
    return node


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked for: look, or add."""
    try:
        taken = add(**request) if "coordinates" in request else look(**request)
        return {"error": None, "taken": taken}
    except Exception as error:  # any that h5py may raise for a damaged file
        text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
        return {"error": text or type(error).__name__}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.load(sys.stdin))))


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
    answer = main(request) if alone else _answer(request, patience)
    if answer["error"] is not None:
        raise DataError(f"{name}: the map cannot be added to it: {one_line(answer['error'])}.")
    return answer["taken"]


def _answer(request: dict[str, Any], patience: float) -> dict[str, Any]:
    program = [sys.executable, "-P", __file__]
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

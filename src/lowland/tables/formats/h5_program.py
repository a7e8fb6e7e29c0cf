"""A program that works with libhdf5 on behalf of this package: it looks at files, and adds maps.

libhdf5 may crash, or loop for ever, on a damaged file, and nothing in Python can stop it. So a
separate process looks at all objects of a file before it is read (``h5ad.py``), and adds a
finished map, which must not be lost, to a copy (``h5ad_writing.py``). It imports nothing of this
package, to start fast. It reads a request and writes an answer, both JSON.

The encodings: https://anndata.readthedocs.io/en/latest/fileformat-prose.html
"""

import contextlib
import json
import sys
import time
from typing import Any

LOOKING = 10.0  # seconds; so many objects have been read by then that the file is not malicious
OLD = "has the layout of anndata before 0.7; read it with anndata and write it again"


class Refused(Exception):  # noqa: N818
    """The file is not one that a map can be added to."""


def look(path: str) -> None:
    """Read all attributes, and the first and the last value of every data set."""
    import h5py

    start = time.monotonic()

    def visit(name: str, item: Any) -> bool | None:
        with contextlib.suppress(Exception):  # errors are reported by the one who reads
            for key in item.attrs:
                with contextlib.suppress(Exception):
                    item.attrs[key]
        with contextlib.suppress(Exception):
            if isinstance(item, h5py.Dataset) and item.size:
                item[(0,) * item.ndim]
                item[tuple(n - 1 for n in item.shape)]
        return True if time.monotonic() - start > LOOKING else None

    with contextlib.suppress(Exception), h5py.File(path, "r") as store:
        visit("/", store)
        store.visititems(visit)


def taken(path: str, key: str, name: str) -> list[str]:
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
        there = _taken(store, key, name)
        if there and not replace:
            return there
        for entry in there:
            del store[entry]
        for folder in ("obsm", "uns"):
            if folder not in store:
                _mark(store.create_group(folder), "dict", "0.1.0")
        _write(store["obsm"], key, Y)
        _write(store["uns"], name, {"params": params})
        return []


def _check(store: Any, rows: int | None) -> None:
    """Refuse a file of another layout, of other rows, or whose parts lie in other files."""
    import h5py

    for folder in ("obs", "obsm", "uns"):
        link = store.get(folder, getlink=True)
        if link is None and folder != "obs":
            continue
        if not isinstance(link, h5py.HardLink):
            why = f"{folder!r} refers to another place" if link else "has no 'obs', so no rows"
            raise Refused(why)
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


TASKS = {"look": look, "taken": taken, "add": add}


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked for; the answer has an error or a result."""
    try:
        result = TASKS[request.pop("task")](**request)
        return {"error": None, "result": result}
    except Exception as error:  # any that h5py may raise for a damaged file
        text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
        return {"error": text or type(error).__name__}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.load(sys.stdin))))

"""Python values as strict JSON plus named arrays; the module ``decoding`` is the inverse.

None, bool, int, finite float, str and list are themselves. Everything else is an object with one
key that says what it is: ``$float`` (nan, inf, -inf), ``$tuple``, ``$dict``, ``$scalar`` (a numpy
scalar), ``$array``, ``$strings`` (an object array of str) and ``$sparse`` (CSR or CSC).
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from lowland._core.errors import ModelFileError
from lowland._core.persistence.npy import is_plain

MAX_DEPTH = 50
SCALARS: dict[str, type[np.generic]] = {
    np.dtype(code).name: np.dtype(code).type
    for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
}


class Encoder:
    """Turns values into JSON and collects their arrays in ``arrays``, by member name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, name: str, depth: int = 0) -> Any:
        """JSON for ``value``; ``name`` is the attribute that errors and arrays are named after."""
        if depth > MAX_DEPTH:
            raise ModelFileError(f"{name[:80]} is nested more than {MAX_DEPTH} levels deep")
        kind = type(value)  # subclasses would come back as something else: not accepted
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if kind in (list, tuple):
            items = [self.encode(v, f"{name}.{i}", depth + 1) for i, v in enumerate(value)]
            return items if kind is list else {"$tuple": items}
        if kind is dict:
            if not all(type(key) is str for key in value):
                raise ModelFileError(f"{name} has a key that is not a string")
            return {
                "$dict": {k: self.encode(v, f"{name}.{k}", depth + 1) for k, v in value.items()}
            }
        if isinstance(value, np.generic):
            return self._scalar(value, name)
        if kind in (np.ndarray, np.memmap):
            return self._array(value, name)
        if kind.__module__.startswith("scipy.sparse"):
            return self._sparse(value, name)
        raise _unsupported(name, f"a {kind.__name__}")

    def _scalar(self, value: np.generic, name: str) -> Any:
        if isinstance(value, np.str_):
            return {"$scalar": ["str", str(value)]}
        if value.dtype.name not in SCALARS:
            raise _unsupported(name, f"a numpy {value.dtype.name} scalar")
        item = value.item()
        parts = [item.real, item.imag] if isinstance(item, complex) else [item]
        return {"$scalar": [value.dtype.name, *(self.encode(part, name) for part in parts)]}

    def _array(self, array: np.ndarray, name: str) -> Any:
        if is_plain(array.dtype):
            return self._store(array, name)
        if array.dtype == object and all(type(item) is str for item in array.flat):
            texts = [item.encode("utf-8", "surrogatepass") for item in array.flat]
            return {
                "$strings": {
                    "shape": list(array.shape),
                    "content": self._store(
                        np.frombuffer(b"".join(texts), np.uint8), f"{name}.content"
                    ),
                    "lengths": self._store(np.array([*map(len, texts)], "<i8"), f"{name}.lengths"),
                }
            }
        raise _unsupported(name, f"an array of dtype {array.dtype}")

    def _sparse(self, matrix: Any, name: str) -> Any:
        form = getattr(matrix, "format", None)
        if form not in ("csr", "csc") or matrix.ndim != 2 or not is_plain(matrix.dtype):
            raise _unsupported(name, f"a {type(matrix).__name__}")
        parts = {  # cut to the values in use: scipy may keep room for more
            "data": matrix.data[: matrix.nnz],
            "indices": matrix.indices[: matrix.nnz],
            "indptr": matrix.indptr,
        }
        stored = {part: self._store(array, f"{name}.{part}") for part, array in parts.items()}
        shape = [int(size) for size in matrix.shape]
        return {"$sparse": {"kind": type(matrix).__name__, "shape": shape, **stored}}

    def _store(self, array: np.ndarray, name: str) -> dict[str, str]:
        stem = unique = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:100]
        while f"arrays/{unique}.npy" in self.arrays:
            unique = f"{stem}-{len(self.arrays)}"
        self.arrays[f"arrays/{unique}.npy"] = array
        return {"$array": f"arrays/{unique}.npy"}


def _unsupported(name: str, what: str) -> ModelFileError:
    return ModelFileError(
        f"{name} holds {what}, which a model file cannot store; "
        "set it to None, or to plain numbers, text or numeric arrays, before saving"
    )

"""Checked JSON and arrays become values: the inverse of the module ``encoding``.

Each tag builds one known kind of value; no name in a file is ever looked up, imported or called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._core.persistence.encoding import MAX_DEPTH, SCALARS

# what the Python below raises when a file holds something else than it should
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
SPARSE = ("csc_array", "csc_matrix", "csr_array", "csr_matrix")
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Decoder:
    """Turns JSON back into values; takes each array out of ``arrays`` when it is referred to.

    Anything malformed raises one of ``MALFORMED``.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)
        self._tags: dict[str, Callable[[Any, int], Any]] = {
            "$array": lambda member, depth: self._array(member),
            "$dict": self._dict,
            "$float": lambda text, depth: FLOATS[text],
            "$scalar": self._scalar,
            "$sparse": lambda content, depth: self._sparse(**content),
            "$strings": lambda content, depth: self._strings(**content),
            "$tuple": lambda codes, depth: tuple(self._list(codes, depth)),
        }

    def decode(self, code: Any, depth: int = 0) -> Any:
        """The value that ``code`` stands for."""
        if depth > MAX_DEPTH:
            raise ValueError(f"more than {MAX_DEPTH} levels")
        if isinstance(code, list):
            return self._list(code, depth)
        if not isinstance(code, dict):
            return code
        ((tag, content),) = code.items()
        return self._tags[tag](content, depth)

    def _list(self, codes: Any, depth: int) -> list[Any]:
        if not isinstance(codes, list):
            raise TypeError("not a list")
        return [self.decode(code, depth + 1) for code in codes]

    def _dict(self, codes: Any, depth: int) -> dict[str, Any]:
        return {key: self.decode(code, depth + 1) for key, code in codes.items()}

    def _array(self, member: Any) -> np.ndarray:
        if member not in self.arrays:
            raise ValueError(f"refers to {member!r}, which is missing or used twice")
        return self.arrays.pop(member)

    def _scalar(self, content: Any, depth: int) -> np.generic:
        name, *parts = self._list(content, depth)
        if name == "str":
            (text,) = parts
            if not isinstance(text, str):
                raise TypeError("not text")
            return np.str_(text)
        kind = np.dtype(SCALARS[name]).kind
        expected = {"b": bool, "i": int, "u": int}.get(kind, float)
        if len(parts) != (2 if kind == "c" else 1):
            raise ValueError("a scalar with too many or too few parts")
        if not all(type(part) is expected for part in parts):
            raise TypeError("a scalar of another type than it says")
        with np.errstate(over="ignore"):
            value = SCALARS[name](complex(*parts) if kind == "c" else parts[0])
        if all(map(math.isfinite, parts)) and not np.isfinite(value):
            raise ValueError("a scalar out of range")
        return value

    def _strings(self, shape: Any, content: Any, lengths: Any) -> np.ndarray:
        text, sizes = self.decode(content), self.decode(lengths)
        if text.dtype != np.uint8 or sizes.dtype != np.int64 or (text.ndim, sizes.ndim) != (1, 1):
            raise TypeError("strings in arrays of a wrong kind")
        if math.prod(_sizes(shape)) != sizes.size:
            raise ValueError("strings that do not fill their shape")
        # summed as Python integers, which do not wrap around
        if min(lengths := sizes.tolist(), default=0) < 0 or sum(lengths) != text.size:
            raise ValueError("strings that do not add up to their bytes")
        stored, strings, start = text.tobytes(), np.empty(sizes.size, dtype=object), 0
        for i, length in enumerate(lengths):
            strings[i] = stored[start : start + length].decode("utf-8", "surrogatepass")
            start += length
        return strings.reshape(shape)

    def _sparse(self, kind: Any, shape: Any, data: Any, indices: Any, indptr: Any) -> Any:
        """Build a sparse matrix; its indices are checked, because compiled code will trust them."""
        import scipy.sparse

        make = {name: getattr(scipy.sparse, name) for name in SPARSE}[kind]
        data, indices, indptr = self.decode(data), self.decode(indices), self.decode(indptr)
        n_rows, n_columns = _sizes(shape)
        major, minor = (n_rows, n_columns) if kind.startswith("csr") else (n_columns, n_rows)
        if indices.dtype not in (np.int32, np.int64) or indices.dtype != indptr.dtype:
            raise TypeError("sparse indices of a wrong dtype")
        if data.dtype.kind not in "biufc" or not data.dtype.isnative:
            raise TypeError("sparse data of a wrong dtype")
        if (indptr.shape, indices.shape) != ((major + 1,), data.shape) or data.ndim != 1:
            raise ValueError("sparse parts of wrong sizes")
        if indptr[0] != 0 or indptr[-1] != data.size or (np.diff(indptr) < 0).any():
            raise ValueError("a sparse index pointer that does not run from 0 to the last value")
        if data.size and not (indices.min() >= 0 and indices.max() < minor):
            raise ValueError("a sparse index outside the matrix")
        matrix = make((data, indices, indptr), shape=(n_rows, n_columns))
        matrix.indices, matrix.indptr = indices, indptr  # scipy may have narrowed them
        return matrix


def _sizes(shape: Any) -> list[int]:
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise ValueError("not a shape")
    return shape

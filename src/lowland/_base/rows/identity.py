"""A name for what a step does, which is the same in every process.

Pickled bytes will not do: they tell which strings are one object, which differs between a model
that was fitted and the same model that was loaded. So contents are hashed one by one.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from lowland._base.validation import is_sparse

# Attributes that change nothing about results: how many threads, what is shown.
WITHOUT_EFFECT = ("n_jobs", "verbose", "callback")
PLAIN = (str, int, float, complex, bool, bytes, type(None))


def fingerprint(value: Any) -> str:
    """A digest of the contents of plain values, arrays, containers and objects of modules.

    >>> fingerprint({"a": np.arange(3), "b": [1.5, "x"]}) == fingerprint({"b": [1.5, "x"],
    ...     "a": np.arange(3)})
    True
    """
    found = hashlib.sha256()
    _add(found, value)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    if isinstance(value, PLAIN):
        found.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        found.update(f"array:{value.dtype.str}{value.shape};".encode())
        found.update(np.ascontiguousarray(value))
    elif isinstance(value, np.ndarray | list | tuple):
        found.update(f"{type(value).__name__}:{len(value)};".encode())
        for each in value:
            _add(found, each)
    elif isinstance(value, Mapping):
        found.update(f"mapping:{len(value)};".encode())
        for key in sorted(value, key=repr):
            if key not in WITHOUT_EFFECT:
                _add(found, key)
                _add(found, value[key])
    elif is_sparse(value):
        _add(found, [value.shape, value.indptr, value.indices, value.data])
    elif isinstance(value, type) or not hasattr(value, "__dict__"):
        found.update(pickle.dumps(value, protocol=5))
    else:
        found.update(f"object:{type(value).__module__}.{type(value).__qualname__};".encode())
        _add(found, vars(value))

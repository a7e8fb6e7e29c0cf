"""From an estimator to a model file and back, without pickle: values as strict JSON and arrays.

None, bool, int, finite float, str and list are themselves. Everything else is an object with one
key that states its type: ``$float`` (nan, inf, -inf), ``$tuple``, ``$dict``, ``$scalar`` (a numpy
scalar), ``$array``, ``$strings`` (an object array of str) and ``$sparse`` (CSR or CSC). Each key
builds one known kind of value; no name in a file is ever looked up, imported or called. Every
failure is one ``ModelFileError``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.chain import Chain, JointModel
from lowland._base.errors import LowlandError, ModelFileError, ParameterError
from lowland._base.models.archive import FAILURES, is_plain, read_archive, write_archive
from lowland._base.models.checks import POSSIBLE, REQUIRED, check_state, in_own_order

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


# What the Python below raises when a file holds something else than it should
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


class Model(NamedTuple):
    """What a model file holds."""

    class_name: str
    params: dict[str, Any]
    state: dict[str, Any]
    lowland_version: str


def write_model(
    path: str | os.PathLike[str], class_name: str, params: dict[str, Any], state: dict[str, Any]
) -> None:
    """Write a model file; an old one stays whole until the new one is complete.

    ``ModelFileError`` names the parameter or attribute that cannot be stored (a function, a
    generator), or the folder that does not exist.
    """
    path = os.fspath(path)
    encoder = Encoder()
    try:
        contents = {
            "lowland_version": _own_version(),
            "class": class_name,
            "params": {name: encoder.encode(params[name], name) for name in sorted(params)},
            "state": {name: encoder.encode(state[name], name) for name in sorted(state)},
        }
        write_archive(path, contents, encoder.arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: cannot be saved: {error}.") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path, a giant integer
        raise ModelFileError(f"{path}: cannot be saved: {_reason(error)}.") from error


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file; ``ModelFileError`` when it is damaged, altered or not one of ours."""
    path = os.fspath(path)
    try:
        manifest, arrays = read_archive(path)
        params, state = _decode(manifest, arrays)
        return Model(manifest["class"], params, state, manifest["lowland_version"])
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}.") from None
    except LowlandError:  # too little memory does not mean that the file is wrong
        raise
    except (OSError, *FAILURES, *MALFORMED) as error:
        kind = "cannot be read" if isinstance(error, PermissionError) else "is damaged"
        raise ModelFileError(
            f"{path}: {kind} or is not a lowland model file ({_reason(error)})."
        ) from error


def _decode(
    manifest: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Params and state, having used every array exactly once."""
    decoder = Decoder(arrays)
    groups: list[dict[str, Any]] = []
    for group in (manifest["params"], manifest["state"]):
        values = {}
        for name, code in group.items():
            try:
                values[name] = decoder.decode(code)
            except MALFORMED as error:
                raise ModelFileError(
                    f"has a manifest whose entry {name[:80]!r} is malformed ({_reason(error)})"
                ) from None
        groups.append(values)
    if decoder.arrays:
        raise ModelFileError(f"has the array {min(decoder.arrays)!r} that nothing refers to")
    return groups[0], groups[1]


def _reason(error: BaseException) -> str:
    """Why, in one line without its own period."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split()).rstrip(".")


def _own_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("lowland")
    except metadata.PackageNotFoundError:  # run from a source folder that is not installed
        return "0+unknown"


# What is saved of an estimator, and how it is made again.

PARTS = ("class", "params", "state")


def save(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator."""
    write_model(path, *_parts(estimator))


def save_chain(chain: Chain, path: str | Path) -> None:
    """Write fitted steps, each as it would be written alone."""
    steps = [dict(zip(PARTS, _parts(step), strict=True)) for step in chain.steps]
    write_model(path, Chain.__name__, {}, {"steps": steps})


def save_joint(model: JointModel, path: str | Path) -> None:
    """Write the preparations of all sets and their alignment, each as it would be written alone."""
    steps = [*model.preparations, model.alignment]
    parts = [dict(zip(PARTS, _parts(step), strict=True)) for step in steps]
    state = {"names": list(model.names), "steps": parts}
    write_model(path, JointModel.__name__, {}, state)


def _parts(estimator: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Class, parameters and fitted state."""
    params = {name: _lasting(value) for name, value in estimator.get_params(deep=False).items()}
    for name, field in estimator.parameters().items():
        if params[name] is None and not field.metadata["constraint"].allows(None):
            raise ModelFileError(
                f"{type(estimator).__name__}: {name}={getattr(estimator, name)!r} is a function, "
                "which a model file cannot hold, and new rows need it; use a named one."
            )
    known = {**estimator.fitted_attributes, **REQUIRED, **POSSIBLE}
    state = {name: value for name, value in vars(estimator).items() if name in known}
    return type(estimator).__name__, params, state


def _lasting(value: Any) -> Any:
    """A parameter as it is saved; callbacks and generators belong to one run only.

    So does an estimator that columns were tried with, or a way to split rows: the result of the
    selection does not need it any more.
    """
    if callable(value) or isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    return None if hasattr(value, "get_params") or hasattr(value, "get_n_splits") else value


def load(path: str | Path) -> Any:
    """Read a model written by ``save``; a file that is not one gives a ``ModelFileError``.

    Nothing in the file is executed. Parameters and fitted attributes are checked against what the
    method declares: names, kinds, shapes, and what compiled code relies on.
    """
    model = read_model(path)
    try:
        if model.class_name == Chain.__name__:
            steps = [_restored(*parts) for parts in _steps(model)]
            _check_links(steps)
            return Chain(steps)
        if model.class_name == JointModel.__name__:
            return _joint(model)
        return _restored(model.class_name, model.params, model.state)
    except (ModelFileError, ParameterError) as error:
        raise ModelFileError(f"{path}: {error}") from error


def _steps(model: Model) -> list[tuple[Any, ...]]:
    steps = model.state.get("steps")
    steps = steps if isinstance(steps, list) else []
    found = [
        tuple(step[part] for part in PARTS)
        for step in steps
        if isinstance(step, dict) and step.keys() == set(PARTS)
    ]
    kinds = all(tuple(map(type, parts)) == (str, dict, dict) for parts in found)
    if not found or len(found) != len(steps) or not kinds or len(model.state) > 1 or model.params:
        raise ModelFileError("the steps of its chain are missing or malformed.")
    return found


def _joint(model: Model) -> JointModel:
    names = model.state.pop("names", None)
    named = isinstance(names, list) and all(type(name) is str and name for name in names)
    parts = _steps(model)
    if not named or len({*names}) < len(names) or len(parts) != len(names) + 1:
        raise ModelFileError("the names of its sets are missing or malformed.")
    *preparations, alignment = [_restored(*part) for part in parts]
    _require_family(preparations, registry.PREPARATION, "prepares no table")
    _require_family([alignment], registry.ALIGNMENT, "does not align sets")
    given = [preparation._n_features_out for preparation in preparations]
    taken = np.diff(alignment.column_starts_).tolist()
    if given != taken:
        raise ModelFileError(
            f"its preparations give {given} columns, but its alignment takes {taken}."
        )
    return JointModel(names, preparations, alignment)


def _require_family(steps: list[Any], families: tuple[str, ...], fault: str) -> None:
    known = registry.modules(families)
    for step in steps:
        if registry.snake_case(type(step).__name__) not in known:
            raise ModelFileError(f"{type(step).__name__} {fault}.")


def _check_links(steps: list[Any]) -> None:
    """Refuse steps that do not take what the step before gives."""
    for before, after in pairwise(steps):
        given, taken = before._n_features_out, after.n_features_in_
        if given != taken:
            names = f"{type(before).__name__} gives {given} columns, {type(after).__name__}"
            raise ModelFileError(f"the steps of its chain do not fit: {names} takes {taken}.")


def _renew(state: dict[str, Any]) -> None:
    """Read what files of earlier versions hold of extreme tables, fitted times 2^exponent.

    A model of one table is in the unit of its table; that of several tables is in other units.
    """
    if state.pop("unit_exponent_", None) is not None:  # models of other tables have none
        state["needs_float64_"] = True
    exponents = state.pop("unit_exponents_", np.zeros(1, np.int64))
    if not isinstance(exponents, np.ndarray) or exponents.dtype.kind != "i" or exponents.any():
        raise ModelFileError("was fitted to tables of extreme values by an earlier version")


def _restored(class_name: str, params: dict[str, Any], state: dict[str, Any]) -> Any:
    """The estimator, once everything about it has been checked."""
    cls = registry.get_any(class_name)
    if cls.__name__ != class_name:
        raise ModelFileError(f"there is no method {class_name!r}.")
    estimator = cls()
    try:
        estimator.set_params(**params)
        estimator.check_params()
    except MALFORMED as error:  # of a parameter that no constraint can even look at
        if isinstance(error, ParameterError):
            raise
        raise ModelFileError(f"{class_name} has a malformed parameter ({error}).") from error
    state = {name: in_own_order(value) for name, value in state.items()}
    try:
        _renew(state)
        check_state(state, estimator)
    except ModelFileError as error:
        raise ModelFileError(f"{class_name} {error}; fit the model again and save it.") from None
    for name, value in state.items():
        setattr(estimator, name, value)
    flaw = estimator.inconsistency()
    if flaw is not None:
        raise ModelFileError(f"{class_name} has {flaw}; fit the model again and save it.")
    return estimator

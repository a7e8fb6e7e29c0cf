"""From an estimator to a model file and back: what is saved, what a loaded file must satisfy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core import registry
from lowland._core.chain import Chain
from lowland._core.errors import ModelFileError, ParameterError
from lowland._core.params import Fitted
from lowland._core.persistence import model_file
from lowland._core.validation import is_sparse

if TYPE_CHECKING:
    from lowland._core.estimator import Estimator

__all__ = ["load", "save", "save_chain"]

PARTS = ("class", "params", "state")

# What the base class itself leaves behind; names of columns only if the data had them.
REQUIRED = {"n_features_in_": Fitted(None, int)}
LARGEST_EXPONENT = 1100  # of two; the largest float64 is below 2^1024
POSSIBLE = {
    "feature_names_in_": Fitted(("n_features",), str),
    "unit_exponent_": Fitted(None, int),  # of the unit that extreme data were fitted in
}


def save(estimator: Estimator, path: str | Path) -> None:
    """Write a fitted estimator."""
    model_file.write_model(path, *_parts(estimator))


def save_chain(chain: Chain, path: str | Path) -> None:
    """Write fitted steps, each as it would be written alone."""
    steps = [dict(zip(PARTS, _parts(step), strict=True)) for step in chain.steps]
    model_file.write_model(path, Chain.__name__, {}, {"steps": steps})


def _parts(estimator: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Class, parameters and fitted state."""
    params = {name: _lasting(value) for name, value in estimator.get_params(deep=False).items()}
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
    method declares: names, kinds and shapes.
    """
    model = model_file.read_model(path)
    try:
        if model.class_name == Chain.__name__:
            return Chain([_restored(*parts) for parts in _steps(model)])
        return _restored(model.class_name, model.params, model.state)
    except (ModelFileError, ParameterError) as error:
        raise ModelFileError(f"{path}: {error}") from error


def _steps(model: model_file.Model) -> list[tuple[Any, ...]]:
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


def _restored(class_name: str, params: dict[str, Any], state: dict[str, Any]) -> Any:
    """The estimator, once everything about it has been checked."""
    cls = registry.get_any(class_name)
    if cls.__name__ != class_name:
        raise ModelFileError(f"there is no method {class_name!r}.")
    estimator = cls().set_params(**params)
    estimator.check_params()
    try:
        check_state(state, cls.fitted_attributes)
    except ModelFileError as error:
        raise ModelFileError(f"{class_name} {error}.") from None
    for name, value in state.items():
        setattr(estimator, name, value)
    return estimator


def check_state(state: dict[str, Any], declared: dict[str, Fitted]) -> None:
    """Refuse fitted attributes that are missing, unknown, or of another kind or shape."""
    required = {**REQUIRED, **declared}
    for name in required:
        if name not in state:
            raise ModelFileError(f"lacks the attribute {name!r}")
    for name, value in state.items():
        expected = required.get(name) or POSSIBLE.get(name)
        if expected is None:
            raise ModelFileError(f"has no attribute {name!r}")
        _check_kind(name, value, expected)
    if abs(int(state.get("unit_exponent_", 0))) > LARGEST_EXPONENT:
        raise ModelFileError(
            f"has 'unit_exponent_' = {state['unit_exponent_']}, which no fit gives"
        )
    _check_sizes(state, {**required, **POSSIBLE})


def _check_kind(name: str, value: Any, expected: Fitted) -> None:
    if expected.optional and value is None:
        return
    kinds = {float: "f", int: "iu", bool: "b", str: "OU", object: "biufOU"}[expected.type]
    array = value if is_sparse(value) else np.asarray(value)
    if array.dtype.kind not in kinds or array.ndim != len(expected.shape or ()):
        raise ModelFileError(
            f"has {name!r} as {array.dtype} of shape {array.shape}, expected "
            f"{expected.type.__name__} in {len(expected.shape or ())} dimensions"
        )
    numbers = array.data if is_sparse(array) else array
    broken = np.isinf if expected.allows_nan else lambda x: ~np.isfinite(x)
    if array.dtype.kind == "f" and broken(numbers).any():
        raise ModelFileError(f"has {name!r} with a value that is not finite")


def _check_sizes(state: dict[str, Any], declared: dict[str, Fitted]) -> None:
    """One name of a size means one size; ``n_something_`` attributes state sizes, too."""
    sizes = {"n_features": int(state["n_features_in_"])}
    for name in declared:
        if name.startswith("n_") and name[:-1] not in sizes and state.get(name) is not None:
            sizes[name[:-1]] = int(state[name])
    for name, value in state.items():
        if value is None or not declared[name].shape:
            continue
        shape = value.shape if is_sparse(value) else np.shape(value)
        for size_name, size in zip(declared[name].shape or (), shape, strict=True):
            if sizes.setdefault(size_name, size) != size:
                raise ModelFileError(
                    f"has {name!r} of shape {shape}, but {size_name} is {sizes[size_name]}"
                )

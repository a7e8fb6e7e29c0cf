"""From an estimator to a model file and back: what is saved, what a loaded file must satisfy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core import persistence, registry
from lowland._core.errors import ModelFileError, ParameterError
from lowland._core.params import Fitted
from lowland._core.validation import is_sparse

if TYPE_CHECKING:
    from lowland._core.estimator import Estimator

__all__ = ["load", "save"]

# What the base class itself leaves behind; names of columns only if the data had them.
REQUIRED = {"n_features_in_": Fitted(None, int, "columns of the fitted data")}
POSSIBLE = {"feature_names_in_": Fitted(("n_features",), str, "their names")}


def save(estimator: Estimator, path: str | Path) -> None:
    """Write a fitted estimator."""
    params = {name: _lasting(value) for name, value in estimator.get_params(deep=False).items()}
    known = {**estimator.fitted_attributes, **REQUIRED, **POSSIBLE}
    state = {name: value for name, value in vars(estimator).items() if name in known}
    persistence.write_model(path, type(estimator).__name__, params, state)


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
    model = persistence.read_model(path)
    try:
        cls = registry.get_any(model.class_name)
        estimator = cls().set_params(**model.params)
        estimator.check_params()
    except ParameterError as error:
        raise ModelFileError(f"{path}: {error}") from error
    if cls.__name__ != model.class_name:
        raise ModelFileError(f"{path}: there is no method {model.class_name!r}.")
    try:
        check_state(model.state, cls.fitted_attributes)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {cls.__name__} {error}.") from None
    for name, value in model.state.items():
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
    if array.dtype.kind == "f" and not np.isfinite(numbers).all():
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

"""From an estimator to a model file and back: what is saved, what a loaded file must satisfy."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core import registry
from lowland._core.chain import Chain
from lowland._core.errors import ModelFileError, ParameterError
from lowland._core.joint import JointModel
from lowland._core.persistence import model_file
from lowland._core.persistence.checking import POSSIBLE, REQUIRED, check_state, in_own_order
from lowland._core.persistence.decoding import MALFORMED

if TYPE_CHECKING:
    from lowland._core.estimator import Estimator

PARTS = ("class", "params", "state")


def save(estimator: Estimator, path: str | Path) -> None:
    """Write a fitted estimator."""
    model_file.write_model(path, *_parts(estimator))


def save_chain(chain: Chain, path: str | Path) -> None:
    """Write fitted steps, each as it would be written alone."""
    steps = [dict(zip(PARTS, _parts(step), strict=True)) for step in chain.steps]
    model_file.write_model(path, Chain.__name__, {}, {"steps": steps})


def save_joint(model: JointModel, path: str | Path) -> None:
    """Write the preparations of all sets and their alignment, each as it would be written alone."""
    steps = [*model.preparations, model.alignment]
    parts = [dict(zip(PARTS, _parts(step), strict=True)) for step in steps]
    state = {"names": list(model.names), "steps": parts}
    model_file.write_model(path, JointModel.__name__, {}, state)


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
    method declares: names, kinds, shapes, and what the contents mean.
    """
    model = model_file.read_model(path)
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


def _joint(model: model_file.Model) -> JointModel:
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
        check_state(state, estimator)
    except ModelFileError as error:
        raise ModelFileError(f"{class_name} {error}; fit the model again and save it.") from None
    for name, value in state.items():
        setattr(estimator, name, value)
    flaw = estimator.inconsistency()
    if flaw is not None:
        raise ModelFileError(f"{class_name} has {flaw}; fit the model again and save it.")
    return estimator

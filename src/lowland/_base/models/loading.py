"""From an estimator to a model file and back: what is saved, what a loaded file must satisfy."""

from __future__ import annotations

import numbers
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base import registry
from lowland._base.chain import Chain
from lowland._base.errors import DataError, ModelFileError, ParameterError
from lowland._base.joint import JointModel
from lowland._base.models import codec
from lowland._base.models.codec import MALFORMED
from lowland._base.models.meanings import Interval, State, above, count, size_of
from lowland._base.params import Declared, Fitted
from lowland._base.sparse_input import well_formed
from lowland._base.validation import is_sparse

if TYPE_CHECKING:
    from lowland._base.estimator import Estimator

# The fitted state of a model file, checked against what the method declares.
#
# Compiled code trusts what it gets from a fitted model: types, shapes, indices, starts. So nothing
# chunks here that contradicts its declaration. Errors are fragments without the name of the method.


LARGEST_EXPONENT = 1100  # of two; the largest float64 is below 2^1024
# What the base class itself leaves behind; names of columns only if the data had them.
REQUIRED = {"n_features_in_": Fitted(None, int, meaning=(count(1),))}
POSSIBLE = {
    "feature_names_in_": Fitted(("n_features",), str),
    # of metric="gower"
    "column_ranges_": Fitted(("n_features",), float, meaning=(above(0),)),
    # of the unit that extreme data were fitted in
    "unit_exponent_": Fitted(
        None, int, meaning=(Interval(-LARGEST_EXPONENT, LARGEST_EXPONENT, what="an exponent"),)
    ),
}
# What fits leave behind. Kernels are compiled for these types and no others.
SCALARS: dict[type, tuple[type, ...]] = {
    float: (float, np.float64, np.float32),
    int: (int, np.int64, np.int32),
    bool: (bool, np.bool_),
    str: (str, np.str_),
}
NUMBERS = {float: ("float64", "float32"), int: ("int64", "int32"), bool: ("bool",)}


def in_own_order(value: Any) -> Any:
    """An array of a machine with another order of bytes, in the order of this one."""
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return value.astype(value.dtype.newbyteorder("="))
    return value


def check_state(state: dict[str, Any], model: Declared) -> None:
    """Refuse attributes that are missing or unknown, or that contradict their declaration.

    ``model`` has the parameters of the file, and none of its attributes yet.
    """
    required = {**REQUIRED, **model.fitted_attributes}
    declared = {**POSSIBLE, **required}
    for name in required:
        if name not in state:
            raise ModelFileError(f"lacks the attribute {name!r}")
    for name, value in state.items():
        if name not in declared:
            raise ModelFileError(f"has no attribute {name!r}")
        _check_kind(name, value, declared[name])
    whole = state_of(state, model)
    for relates in (False, True):
        for name, value in state.items():
            for meaning in declared[name].meaning if value is not None else ():
                if meaning.relates is relates and (flaw := meaning.flaw(value, whole)):
                    expected = meaning.describe(whole)
                    raise ModelFileError(f"has {name!r}{flaw}, expected {expected}")


def _check_kind(name: str, value: Any, expected: Fitted) -> None:
    if expected.optional and value is None:
        return
    dimensions = len(expected.shape or ())
    if not _is_of_kind(value, expected):
        got = type(value).__name__
        if hasattr(value, "dtype"):
            got = f"{value.dtype} of shape {value.shape}"
        raise ModelFileError(
            f"has {name!r} as {got}, expected {expected.type.__name__} in {dimensions} dimensions"
        )
    if is_sparse(value):
        try:
            well_formed(value, repr(name))
        except DataError as error:
            raise ModelFileError(f"has a malformed attribute: {error}") from None
    entries = np.asarray(value.data if is_sparse(value) else value)
    broken = np.isinf if expected.allows_nan else lambda x: ~np.isfinite(x)
    if entries.dtype.kind == "f" and (wrong := broken(entries)).any():
        place = "" if not entries.ndim else f"[{', '.join(map(str, np.argwhere(wrong)[0]))}]"
        raise ModelFileError(
            f"has {name!r}{place} = {entries[wrong].flat[0]}, a value that is not finite"
        )


def _is_of_kind(value: Any, expected: Fitted) -> bool:
    """Whether type and number of dimensions are as declared."""
    if not expected.shape:
        known = type(value) in SCALARS[expected.type]
        return known and (expected.type is not int or abs(int(value)) < 2**63)
    if is_sparse(value):
        is_matrix = value.format == "csr" and expected.sparse
        return is_matrix and value.ndim == len(expected.shape) and value.dtype in NUMBERS[float]
    if not isinstance(value, np.ndarray) or value.ndim != len(expected.shape):
        return False
    if expected.type in (str, object) and value.dtype.kind in "OU":
        return True
    return value.dtype in NUMBERS.get(expected.type, ()) or (
        expected.type is object and value.dtype.kind in "biuf" and value.dtype != np.float16
    )


def state_of(state: dict[str, Any], model: Declared) -> State:
    """The attributes and their sizes, of which one name means one size."""
    declared = {**model.fitted_attributes, **REQUIRED, **POSSIBLE}
    sizes = _stated_sizes(state, model)
    shapes = [
        (name, size, expression)
        for name, value in state.items()
        if value is not None
        for size, expression in zip(np.shape(value), declared[name].shape or (), strict=True)
    ]
    for _, size, expression in sorted(shapes, key=lambda entry: "+" in entry[2]):
        term, _, more = expression.partition(" + ")  # "n_kept + 1" tells n_kept, too
        sizes.setdefault(term, size - int(more or 0))
    for name, size, expression in shapes:
        _check_size(name, np.shape(state[name]), size, expression, sizes)
        if size == 0 and not declared[name].may_be_empty:
            raise ModelFileError(f"has {name!r} of shape {np.shape(state[name])}, which is empty")
    for whole, parts in model.size_rules.items():
        total = size_of(parts, sizes)
        if total is not None and sizes.get(whole, total) != total:
            raise ModelFileError(f"has {whole} = {sizes[whole]}, but {parts} = {total}")
    return State(state, sizes)


def _stated_sizes(state: dict[str, Any], model: Declared) -> dict[str, int]:
    """Sizes that ``n_something_`` attributes state, or else the parameter ``n_components``."""
    sizes = {"n_features": int(state["n_features_in_"])}
    if sizes["n_features"] < 1:
        raise ModelFileError(f"has 'n_features_in_' = {sizes['n_features']}, expected >= 1")
    for name in model.fitted_attributes:
        if name.startswith("n_") and state.get(name) is not None:
            sizes[name[:-1]] = int(state[name])
    wanted = getattr(model, "n_components", None)
    if isinstance(wanted, numbers.Integral):
        sizes.setdefault("n_components", int(wanted))
    return sizes


def _check_size(
    name: str, shape: tuple[int, ...], size: int, expression: str, sizes: dict[str, int]
) -> None:
    expected = size_of(expression, sizes)
    if size != expected:
        shown = expression if expression.isdigit() else f"{expression} = {expected}"
        raise ModelFileError(f"has {name!r} of shape {shape}, expected {shown}")


PARTS = ("class", "params", "state")


def save(estimator: Estimator, path: str | Path) -> None:
    """Write a fitted estimator."""
    codec.write_model(path, *_parts(estimator))


def save_chain(chain: Chain, path: str | Path) -> None:
    """Write fitted steps, each as it would be written alone."""
    steps = [dict(zip(PARTS, _parts(step), strict=True)) for step in chain.steps]
    codec.write_model(path, Chain.__name__, {}, {"steps": steps})


def save_joint(model: JointModel, path: str | Path) -> None:
    """Write the preparations of all sets and their alignment, each as it would be written alone."""
    steps = [*model.preparations, model.alignment]
    parts = [dict(zip(PARTS, _parts(step), strict=True)) for step in steps]
    state = {"names": list(model.names), "steps": parts}
    codec.write_model(path, JointModel.__name__, {}, state)


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
    model = codec.read_model(path)
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


def _steps(model: codec.Model) -> list[tuple[Any, ...]]:
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


def _joint(model: codec.Model) -> JointModel:
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

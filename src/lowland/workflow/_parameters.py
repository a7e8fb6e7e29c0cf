"""Parameters of methods as a run takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowland._base.constraints import Constraint

DEFAULT_METHOD = "tsne"
# A run makes a map to look at, whatever the default of the estimator is.
MAP_DEFAULTS = {"n_components": 2}
# Parameters whose name a run uses for something else, and what a run calls them.
RENAMED = {"method": "algorithm", "normalize": "map_scale"}
# Parameters that a run sets for all methods, and its own names for them.
RUN_PARAMETERS = {"random_state": "seed", "n_jobs": "n_jobs", "verbose": "verbose"}


def run_names(cls: Any) -> dict[str, str]:
    """Parameters of a method, without those that a run sets, by the names that a run has for them.

    The values are the names that the estimator has for them.
    """
    own = [name for name in cls.parameters() if name not in RUN_PARAMETERS]
    return {RENAMED.get(name, name): name for name in own}


def method_parameters(cls: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a run as parameters of the method; an unknown one is refused by name."""
    from lowland._base.errors import ParameterError, unknown_name

    known = run_names(cls)
    for name in given:
        if name in known:
            continue
        if name in RUN_PARAMETERS or RENAMED.get(name) in known:
            called = RUN_PARAMETERS.get(name) or RENAMED[name]
            raise ParameterError(f"{name}: a run calls this parameter {called}.")
        raise ParameterError(f"{cls.__name__}: {unknown_name('parameter', name, [*known])}")
    return {known[name]: value for name, value in given.items()}


def text_constraint(constraint: Constraint) -> Constraint | None:
    """The part of a constraint that text can express; None if that is only the value None."""
    from lowland._base.constraints import Array, Either, Function, Mapping, Null

    parts = getattr(constraint, "options", (constraint,))
    typed = tuple(part for part in parts if not isinstance(part, Array | Function | Mapping))
    if all(isinstance(part, Null) for part in typed):
        return None
    return typed[0] if len(typed) == 1 else Either(typed)

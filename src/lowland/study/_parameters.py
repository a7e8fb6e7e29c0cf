"""Parameters of methods as a run takes them."""

from __future__ import annotations

from typing import Any

__all__ = ["DEFAULT_METHOD", "MAP_DEFAULTS", "RENAMED", "RUN_PARAMETERS", "method_parameters"]

DEFAULT_METHOD = "tsne"
# A run makes a map to look at, whatever the default of the estimator is.
MAP_DEFAULTS = {"n_components": 2}
# Parameters whose name a run uses for something else, and what a run calls them.
RENAMED = {"method": "algorithm"}
# Parameters that a run sets for all methods, and its own names for them.
RUN_PARAMETERS = {"random_state": "seed", "n_jobs": "n_jobs", "verbose": "verbose"}


def method_parameters(cls: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a run as parameters of the method; an unknown one is refused by name."""
    from lowland._core.errors import ParameterError, unknown_name

    called = {RENAMED.get(name, name): name for name in cls.parameters()}
    known = [name for name, own in called.items() if own not in RUN_PARAMETERS]
    for name in given:
        if name in RUN_PARAMETERS and name not in known:
            raise ParameterError(f"{name}: a run calls this parameter {RUN_PARAMETERS[name]}.")
        if name not in known:
            raise ParameterError(f"{cls.__name__}: {unknown_name('parameter', name, known)}")
    return {called[name]: value for name, value in given.items()}

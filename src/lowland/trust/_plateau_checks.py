"""Checks of what a search for a plateau is given."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from lowland._core import registry
from lowland._core.base import Reducer
from lowland._core.constraints import Integer
from lowland._core.errors import ParameterError, unknown_name
from lowland._core.threads import resolve_n_jobs
from lowland._core.validation import check_matrix
from lowland._core.wording import shown

FEWEST_ROWS = 100  # two halves then share 25 rows
SET_HERE = {"random_state": "seed", "n_jobs": "n_jobs", "verbose": "verbose"}


def default_of(cls: type[Reducer], parameter: str) -> float:
    """The default of a parameter; NaN if that is no number."""
    if parameter not in cls.parameters():
        kind = f"parameter of {cls.__name__}"
        raise ParameterError(unknown_name(kind, str(parameter), list(cls.parameters())))
    default: Any = cls.parameters()[parameter].default
    return float(default) if is_number(default) else math.nan


def check_method(method: Any) -> type[Reducer]:
    """The class of a method whose maps can be compared."""
    cls = registry.get(method) if isinstance(method, str) else method
    if not (isinstance(cls, type) and issubclass(cls, Reducer)):
        raise ParameterError(
            f"method={shown(method)} is not allowed; give the class of a method, or its name."
        )
    if cls.needs_target or cls.wraps:
        why = "needs classes" if cls.needs_target else "makes maps without edges"
        raise ParameterError(f"method: {cls.__name__} {why}, which is not compared here.")
    return cls


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; truth values are not."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    return real and math.isfinite(value)


def check_values(parameter: str, values: Any, default: float) -> list[Any]:
    """The values and the default, ascending, each once, as numbers of Python."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        values = [values]
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not listed:
        raise ParameterError(f"values=[] is empty; give the values of {parameter} to try.")
    for value in listed:
        if not is_number(value):
            raise ParameterError(
                f"values: {shown(value)} is not allowed; give numbers to try as {parameter}."
            )
    if not math.isnan(default):
        whole = all(isinstance(value, int) for value in listed)
        listed.append(int(default) if whole and default == int(default) else default)
    return [listed[i] for i in np.unique(np.array(listed, np.float64), return_index=True)[1]]


def check_rows(rows: Any) -> int:
    """The largest number of rows to map."""
    if not isinstance(rows, numbers.Integral) or isinstance(rows, bool) or rows < FEWEST_ROWS:
        raise ParameterError(
            f"rows={shown(rows)} is not allowed; give a number of rows >= {FEWEST_ROWS}."
        )
    return int(rows)


def check_seed(seed: Any) -> int:
    """The seed: an integer, because maps of two halves need two."""
    if not Integer(0).allows(seed):
        raise ParameterError(f"seed={shown(seed)} is not allowed; give an integer >= 0.")
    return int(seed)


def check_data(X: Any, n_jobs: int | None) -> Any:
    """X as a finite matrix, dense or CSR, of enough rows."""
    return check_matrix(
        X,
        owner="parameter_plateau",
        accept_sparse=True,
        min_rows=FEWEST_ROWS,
        threads=resolve_n_jobs(n_jobs),
    )


def check_fixed(cls: type[Reducer], parameter: str, fixed: dict[str, Any]) -> None:
    """Refuse parameters that the method does not have, or that are set otherwise."""
    for name in fixed:
        if name in SET_HERE or name == parameter:
            where = SET_HERE.get(name, "values")
            raise ParameterError(f"{name}={shown(fixed[name])} is not allowed; use {where!r}.")
        if name not in cls.parameters():
            kind = f"parameter of {cls.__name__}"
            raise ParameterError(unknown_name(kind, name, list(cls.parameters())))
    if fixed.get("metric", "euclidean") != "euclidean":
        raise ParameterError(
            f"metric={shown(fixed['metric'])} is not allowed; data without structure are made of "
            "principal components, which keep Euclidean distances only."
        )

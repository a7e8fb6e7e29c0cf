"""Tables of extreme values: a fit sees them in a unit in which squares neither overflow nor vanish.

The unit is a power of two, which changes no digit. :class:`lowland._base.estimator.Estimator`
chooses it once for the whole table, and afterwards multiplies what the fit has found by the power
of the unit that each parameter and each fitted attribute declares:

    "x"    the unit of the rows           fitted_rows_, mean_
    "d"    the unit of the distances      embedding_ of a map that keeps distances, radius
    "d^2"  the unit of squared distances  eigenvalues_, bandwidth
    "d/x"  distances per unit of the rows  components_ of a linear map that keeps distances
    "1/x"  the inverse unit of the rows    components_ of a linear map without a unit

No unit, "", is the default. A method takes part if it, or its base, defines ``_unit_powers``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.validation import all_finite, is_sparse

USUAL = (1e-9, 1e9)  # tables whose largest value is between these are not scaled
MOST = 1000  # exponents are at most this: the unit and its inverse are float64


def largest(values: np.ndarray) -> float:
    """The largest absolute value, without a copy of the values."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def largest_value(X: Any) -> float:
    """The largest known absolute value of rows, sparse rows, distances or a neighbor graph.

    NaN (unknown) and infinity (a missing neighbor) do not count.
    """
    values = _values(X)
    found = largest(values)
    if not np.isfinite(found):
        found = largest(values[np.isfinite(values)])
    return found


def _values(X: Any) -> np.ndarray:
    if is_sparse(X):
        return X.data
    return X if isinstance(X, np.ndarray) else X.distances  # of a NeighborGraph


def exponent_for(greatest: float) -> int:
    """The e for which 2^e times an extreme value is about 1; 0 for all usual values."""
    if USUAL[0] < greatest < USUAL[1] or greatest == 0 or not np.isfinite(greatest):
        return 0
    return min(-round(float(np.log2(greatest))), MOST)


def unit_powers(distance_power: int) -> dict[str, int]:
    """The power of the unit of X in each declared unit, if that of distances is given."""
    p = distance_power
    return {"": 0, "x": 1, "d": p, "d^2": 2 * p, "d/x": p - 1, "1/x": -1}


def in_unit(X: Any, exponent: Any) -> Any:
    """X times 2^exponent, in its own type: rows, sparse rows, a number or a neighbor graph.

    Columns of dense rows may have one exponent each.
    """
    if X is None or not np.any(exponent):
        return X
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(X, np.ndarray):
            return np.ldexp(X, exponent)
        if is_sparse(X):
            moved = X.copy()
            moved.data = np.ldexp(X.data, exponent)
            return moved
        if hasattr(X, "with_distances"):
            return X.with_distances(np.ldexp(X.distances, exponent))
        return float(np.ldexp(np.float64(X), exponent))


def restored(value: Any, exponent: Any, name: str, greatest: float, owner: str) -> Any:
    """A fitted value in the unit of the data, 2^exponent times ``value``; refused if it is lost."""
    found = in_unit(value, exponent)
    if value is None or not np.any(exponent):
        return found
    before, after = (np.asarray(v if np.isscalar(v) else _values(v)) for v in (value, found))
    if before.dtype.kind != "f" or not before.size:
        return found
    dtype = after.dtype
    overflows = bool((np.isinf(after) & np.isfinite(before)).any())
    most, tiny = float(np.nanmax(np.abs(after))), float(np.finfo(dtype).tiny)
    # values of subnormal tables have few digits, as the tables themselves
    vanishes = bool(np.nanmax(np.abs(before)) > 0) and (most == 0 or most < tiny <= greatest)
    if overflows or vanishes:
        raise beyond(owner, greatest, name, dtype)
    return found


def fit_in_unit(model: Any, X: Any, y: Any, run: FitContext) -> np.ndarray | None:
    """``model._fit(X, y, run)``; a table of extreme values is fitted in a unit of about its size.

    The unit is kept as ``unit_exponent_``; models of usual tables have no such attribute.
    """
    powers = model._unit_powers(X)
    greatest = 0.0 if powers is None else largest_value(X)
    e = exponent_for(greatest)
    if e == 0 or powers is None:
        return _fitted_map(model, X, y, run)
    require_memory(
        _values(X).nbytes,
        task=f"{type(model).__name__}: a copy of X in another unit (its largest value is "
        f"{greatest:g})",
        alternative=f"divide X by {greatest:.0e}",
    )
    return _fit_rescaled(
        model, powers, greatest, run, lambda other: _fitted_map(other, in_unit(X, e), y, run)
    )


def fit_chunks_in_unit(
    model: Any, greatest: float, run: FitContext, fit: Callable[[Any, int], None]
) -> None:
    """``fit(model, exponent)`` of rows that are read in chunks, times 2^exponent.

    ``greatest`` is their largest absolute value. See :func:`fit_in_unit`.
    """
    powers, e = model._unit_powers(None), exponent_for(greatest)
    if e == 0 or powers is None:
        fit(model, 0)
    else:
        _fit_rescaled(model, powers, greatest, run, lambda other: fit(other, e))


def _fit_rescaled(
    model: Any,
    powers: dict[str, int],
    greatest: float,
    run: FitContext,
    fit: Callable[[Any], np.ndarray | None],
) -> np.ndarray | None:
    """``fit`` a copy of the model in another unit; the model gets the results in its own."""
    units, e = _powers_of(model, powers), exponent_for(greatest)

    def back(value: Any, name: str) -> Any:
        return restored(value, -e * units.get(name, 0), name, greatest, type(model).__name__)

    callback = run.monitor.callback
    if callback is not None:
        run.monitor.callback = lambda step, Y, loss: callback(
            step, back(Y, "the map"), back(loss, "the loss")
        )
    rescaled = _in_unit_of(model, powers, e)
    Y = back(fit(rescaled), "the map")
    if run.shared is not None:
        run.shared.graph = back(run.shared.graph, "a distance")
    state = {name: back(v, name) for name, v in vars(rescaled).items() if name.endswith("_")}
    vars(model).update(state, unit_exponent_=e)  # all of it, or nothing if a value is refused
    return Y


def _fitted_map(model: Any, X: Any, y: Any, run: FitContext) -> np.ndarray | None:
    """``model._fit(X, y, run)``, if its map is one of numbers; rows left out may be NaN."""
    with np.errstate(over="ignore"):  # what overflows is refused below
        Y = model._fit(X, y, run)
    if Y is not None and not all_finite(np.delete(Y, getattr(model, "excluded_", []), axis=0)):
        model._forget()
        raise beyond(type(model).__name__, largest_value(X), "the map", Y.dtype)
    return Y


def place_in_unit(model: Any, X: Any, run: FitContext, *, inverse: bool) -> np.ndarray:
    """``_transform`` or ``_inverse_transform`` of a fitted model, in the unit of its fit."""
    e = int(getattr(model, "unit_exponent_", 0))
    powers = model._unit_powers(X) if e else None
    if powers is None:
        return model._inverse_transform(X, run) if inverse else model._transform(X, run)
    units = _powers_of(model, powers)
    rescaled = _in_unit_of(model, powers, e)
    for name in model.fitted_attributes:
        setattr(rescaled, name, in_unit(getattr(model, name), e * units[name]))
    e_map = e * units["the map"]
    if inverse:
        return in_unit(rescaled._inverse_transform(in_unit(X, e_map), run), -e)
    return in_unit(rescaled._transform(in_unit(X, e), run), -e_map)


def _powers_of(model: Any, powers: dict[str, int]) -> dict[str, Any]:
    """The power of the unit of X in each result of a fit, or in each entry of it."""
    found: dict[str, Any] = {}
    for name, declared in model.fitted_attributes.items():
        several = [powers[unit] for unit in declared.units_in(model)]
        found[name] = several[0] if len(several) == 1 else np.array(several)
    found["the map"] = found.get("embedding_", 0)
    found["the loss"] = found.get("loss_history_", 0)
    found["a distance"] = powers["d"]
    return found


def _in_unit_of(model: Any, powers: dict[str, int], exponent: int) -> Any:
    """A copy of the model whose parameters are for rows times 2^exponent."""
    rescaled = copy.copy(model)
    for name, field in model.parameters().items():
        value, power = getattr(model, name), powers[field.metadata["unit"]]
        if power and value is not None and not isinstance(value, str):
            number = np.asarray(value, np.float64)[()]
            setattr(rescaled, name, in_unit(number, power * exponent))
    return rescaled


def beyond(owner: str, greatest: float, what: str, dtype: Any) -> DataError:
    """The error for results that their data type cannot hold."""
    float64 = ", or give it as float64" if dtype == np.float32 else ""
    return DataError(
        f"{owner}: the largest value of X is {greatest:g}, and {what} is beyond what {dtype} can "
        f"hold; divide X by {greatest:.0e} before fitting{float64}."
    )

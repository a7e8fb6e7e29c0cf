"""Distances by a Python function of two rows, each checked where it is computed.

The function is called as ``metric(x, y, **metric_params)`` with read-only rows. It must return a
finite number >= 0. It should be symmetric: a search for neighbors calls it with the row first and
the neighbor second, and where all pairs are computed, different values of d(x, y) and d(y, x) are
refused. d(x, x) must be a number, but need not be 0: a fit leaves it out, and for new rows it is a
distance like any other. What the function raises is not caught.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._base.errors import ParameterError
from lowland._base.validation import LEAST, MOST
from lowland._engines.linalg.products import row_blocks

CALLS = 1 << 12  # pairs between two looks at the monitor: a call takes some microseconds or more
SAME = 1e-5  # of the largest: d(x, y) and d(y, x) may differ by rounding
SHOWN = 4  # values of a row in a message


def check_arguments(
    metric: Callable, params: dict[str, Any] | None, parameter: str = "metric"
) -> None:
    """Refuse a function that does not take two rows and its parameters."""
    try:
        signature = inspect.signature(metric)
    except (TypeError, ValueError):  # functions of other languages do not tell
        return
    try:
        signature.bind(None, None, **(params or {}))
    except TypeError as error:
        also = f" and metric_params={params!r}" if params else ""
        raise ParameterError(
            f"{parameter}: the function {_name(metric)}{signature} cannot be called with two rows"
            f"{also} ({error}); expected a function of two rows, and of its parameters by name."
        ) from None


def function_distances(
    A: np.ndarray, B: np.ndarray, metric: Callable, params: dict[str, Any] | None = None
) -> np.ndarray:
    """d(a, b) of all rows of A and of B, (len(A), len(B))."""
    A, B = _read_only(A), _read_only(B)
    params = params or {}
    D = np.empty((len(A), len(B)))
    for i, a in enumerate(A):
        D[i] = _distances([metric(a, b, **params) for b in B], a, B, metric)
    return D


def check_symmetric(D: np.ndarray, metric: Callable) -> None:
    """Refuse a function whose values differ in the two directions; D holds all pairs of rows."""
    slack = SAME * float(D.max(initial=0.0))
    for part in row_blocks(len(D), 512):
        gap = np.abs(D[part] - D[:, part].T)
        if gap.max(initial=0.0) > slack:
            i, j = np.unravel_index(int(gap.argmax()), gap.shape)
            i += part.start
            raise ParameterError(
                f"metric: the function {_name(metric)} is not symmetric: it gives {D[i, j]:g} for "
                f"rows {i} and {j}, and {D[j, i]:g} for rows {j} and {i}; a distance has one value "
                "per pair, such as the mean of both."
            )


def _read_only(rows: np.ndarray) -> np.ndarray:
    """The function sees the data of the caller, and may not change them."""
    rows = np.asarray(rows, np.float64).view()
    rows.flags.writeable = False
    return rows


def _distances(values: list[Any], a: np.ndarray, B: np.ndarray, metric: Callable) -> np.ndarray:
    """The values of one row as numbers, if all are distances."""
    if not all(type(value) in (float, np.float64) for value in values):
        for value, b in zip(values, B, strict=True):
            if number_of(value) is None:
                raise _refused(value, a, b, metric)
    found = np.array([number_of(value) for value in values])
    bad = ~((found == 0) | ((found >= LEAST) & (found <= MOST)))
    if bad.any():
        first = int(bad.argmax())
        raise _refused(values[first], a, B[first], metric)
    return found


def number_of(value: Any) -> float | None:
    """A real number of Python or numpy, also an array without dimensions; None for all else.

    An integer or a fraction beyond float64 is infinity.
    """
    if not isinstance(value, numbers.Real | np.bool_):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if np.ndim(value) != 0 or kind not in tuple("biuf"):
            return None
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _refused(value: Any, a: np.ndarray, b: np.ndarray, metric: Callable) -> ParameterError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    error = ParameterError(
        f"metric: the function {_name(metric)} gave {shown} for the rows {_row(a)} and {_row(b)} "
        "(the attribute 'rows' of this error holds both); a distance must be one number, "
        f"0 or between {LEAST:g} and {MOST:g}."
    )
    error.rows = (a.copy(), b.copy())  # type: ignore[attr-defined]
    return error


def _row(x: np.ndarray) -> str:
    values = ", ".join(f"{value:g}" for value in x[:SHOWN])
    return f"[{values}{', ...' if len(x) > SHOWN else ''}]"


def _name(metric: Callable) -> str:
    return getattr(metric, "__name__", type(metric).__name__)

"""The table of metrics: every engine and every ``metric`` parameter reads it.

A metric is in the table if it works for fitting and for new rows, in every search and in every
method. A Python function of two rows is a metric, too; it has no entry and is called pair by pair.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Mapping, Null, Real
from lowland._base.errors import DataError, ParameterError, shown, unknown_name
from lowland._base.validation import LEAST, MOST, is_sparse, largest
from lowland._engines.linalg.products import row_blocks

# Distances by a Python function of two rows, each checked where it is computed.
#
# The function is called as ``metric(x, y, **metric_params)`` with read-only rows. It must return a
# finite number >= 0. It should be symmetric: a search for neighbors calls it with the row first and
# the neighbor second, and where all pairs are computed, different values of d(x, y) and d(y, x) are
# refused. d(x, x) must be a number, but need not be 0: a fit leaves it out, and for new rows it is
# a distance like any other. What the function raises is not caught.


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


# Up to so many columns a KD tree is faster than all distances of scipy's cdist. Measured with 6 000
# rows, CPU seconds of tree / cdist: 15 nearest in Manhattan distance 0.8 / 0.8 at 8 columns,
# 1.5 / 2.3 at 12, 2.1 / 1.4 at 16 (data of 4 dimensions 0.6 / 1.9); pairs within the 1 % radius
# 0.16 / 0.49 at 12.
TREE_COLUMNS = 12


class Metric(NamedTuple):
    """What engines need to know of a metric.

    Attributes
    ----------
    name, aliases : str, tuple of str
    scipy : str or None
        Its name in ``scipy.spatial.distance.cdist``; None if distances are given.
    products : bool
        Whether the native kernels compute it for dense rows, as a function of squared Euclidean
        distances.
    sparse : bool
        Whether it takes CSR rows.
    unit_power : int or None
        With X in other units, c X, distances are c^unit_power times as large. None: X must not be
        rescaled, because values are compared or the metric is not homogeneous in float arithmetic.
    tree : float or None
        Exponent of the Minkowski distance that a KD tree searches with.
    values : {"any", "non-negative", "boolean"}
        The values that X may hold.
    """

    name: str
    aliases: tuple[str, ...] = ()
    scipy: str | None = None
    products: bool = False
    sparse: bool = False
    unit_power: int | None = None
    tree: float | None = None
    values: str = "any"


_TABLE = (
    Metric("braycurtis", scipy="braycurtis", unit_power=0, values="non-negative"),
    Metric("canberra", scipy="canberra"),
    Metric("chebyshev", scipy="chebyshev", unit_power=1, tree=np.inf),
    Metric("correlation", scipy="correlation", products=True, unit_power=0),
    Metric("cosine", scipy="cosine", products=True, sparse=True, unit_power=0),
    Metric("euclidean", ("l2",), "euclidean", products=True, sparse=True, unit_power=1, tree=2.0),
    # of rows that _base/validation.py has divided by the ranges of their columns
    Metric("gower", scipy="cityblock", tree=1.0),
    Metric("hamming", scipy="hamming"),
    Metric("jaccard", scipy="jaccard", values="boolean"),
    Metric("manhattan", ("cityblock", "l1"), "cityblock", unit_power=1, tree=1.0),
    Metric("minkowski", scipy="minkowski", unit_power=1, tree=2.0),  # 2 without metric_params
    Metric("precomputed", sparse=True, unit_power=1),
    Metric("sqeuclidean", scipy="sqeuclidean", products=True, sparse=True, unit_power=2, tree=2.0),
)
_BY_NAME = {name: metric for metric in _TABLE for name in (metric.name, *metric.aliases)}

METRICS = tuple(sorted(_BY_NAME))


def metrics_with(fact: str) -> tuple[str, ...]:
    """Names of the metrics for which a fact of the table is true, or not None."""
    return tuple(m.name for m in _TABLE if getattr(m, fact) not in (False, None))


def canonical(metric: Any) -> Any:
    """The metric's name instead of an alias; a function stays as it is."""
    if callable(metric):
        return metric
    if not isinstance(metric, str) or metric not in _BY_NAME:
        raise ParameterError(unknown_name("metric", str(metric), list(METRICS)))
    return _BY_NAME[metric].name


def from_products(metric: Any) -> bool:
    """Whether the native kernels compute it for dense rows."""
    return isinstance(metric, str) and _BY_NAME[metric].products


def has_directions(metric: Any) -> bool:
    """Whether it compares directions of rows (cosine and correlation)."""
    return isinstance(metric, str) and metric in ("cosine", "correlation")


def unit_power(metric: Any) -> int | None:
    """See :class:`Metric`; None for a function."""
    return _BY_NAME[metric].unit_power if isinstance(metric, str) else None


HIGHEST_POWER = 4  # of the checked values of a table, which is a number


def tree_exponent(metric: Any, params: dict[str, Any] | None = None) -> float | None:
    """The exponent that a KD tree searches with; None if a tree does not know the metric."""
    exponent = _BY_NAME[metric].tree if isinstance(metric, str) else None
    if exponent is None:
        return None
    p = float((params or {}).get("p", exponent))
    return None if HIGHEST_POWER < p < np.inf else p


def check_metric(X: Any, metric: Any, params: dict[str, Any] | None) -> None:
    """Refuse a metric that does not exist, or that does not take such data or parameters."""
    metric = canonical(metric)
    check_metric_params(metric, params)
    if is_sparse(X) and not (isinstance(metric, str) and _BY_NAME[metric].sparse):
        usable = [name for name in metrics_with("sparse") if name != "precomputed"]
        raise ParameterError(
            f"metric={metric!r} is not available for sparse data; use one of "
            f"{', '.join(usable)}, or X.toarray() if that fits in memory."
        )


def check_metric_params(metric: Any, params: dict[str, Any] | None) -> None:
    """Only minkowski has a parameter, p >= 1; a Python function has those of its signature."""
    if not (Null() | Mapping()).allows(params):
        raise ParameterError(
            f"metric_params={shown(params)} is not allowed; expected None or a dictionary."
        )
    if callable(metric):
        check_arguments(metric, params)
        return
    if not params:
        return
    if (
        metric != "minkowski"
        or set(params) != {"p"}
        or not Real(1, closed="left").allows(params["p"])
    ):
        raise ParameterError(
            f"metric_params={shown(params)} is not allowed for metric={metric!r}; expected None"
            + (" or {'p': a number >= 1}." if metric == "minkowski" else ".")
        )


def check_values(X: np.ndarray, metric: Any, argument: str) -> None:
    """Refuse dense rows with values that the metric is not defined for."""
    values = _BY_NAME[metric].values if isinstance(metric, str) else "any"
    if values == "boolean" and not ((X == 0) | (X == 1)).all():
        raise DataError(
            f"{argument}: metric={metric!r} needs boolean data, only 0 and 1; got other values."
        )
    if values == "non-negative" and X.min(initial=0.0) < 0:
        raise DataError(
            f"{argument}: metric={metric!r} needs values >= 0; the least is {X.min():g}."
        )


def pairs_at_once(metric: Any, most: int) -> int:
    """Pairs between two looks at the monitor: ``most``, or fewer if each is a call of Python."""
    return min(most, CALLS) if callable(metric) else most


def pair_distances(
    A: np.ndarray, B: np.ndarray, metric: Any, params: dict[str, Any] | None = None
) -> np.ndarray:
    """Distances of all rows of A to all rows of B by scipy or by a function, in float64."""
    from scipy.spatial.distance import cdist

    if callable(metric):
        return function_distances(A, B, metric, params)
    entry = _BY_NAME[metric]
    kind = bool if entry.values == "boolean" else np.float64
    A, B = A.astype(kind, copy=False), B.astype(kind, copy=False)
    unit = 1.0
    if metric == "minkowski" and (params or {}).get("p", 0) > HIGHEST_POWER:
        unit = 2.0 ** round(np.log2(max(largest(A), largest(B)) or 1.0))
        A, B = A / unit, B / unit
    with np.errstate(over="ignore", invalid="ignore"):
        D = unit * cdist(A, B, entry.scipy, **(params or {}))
    if metric == "braycurtis":
        D[np.isnan(D)] = 0.0  # 0 / 0: two rows of zeros are equal
    if not np.isfinite(D.max(initial=0.0)):  # which is NaN if any is
        i, j = np.argwhere(~np.isfinite(D))[0]
        greatest = max(float(np.abs(A[i]).max()), float(np.abs(B[j]).max()))
        raise DataError(
            f"X: with metric={metric!r} a distance of two rows, whose largest value is "
            f"{greatest:g}, is beyond what float64 can hold; divide X by {greatest:.0e}."
        )
    return D


# Cosine and correlation as Euclidean distances between directions.
#
# For rows u, v of length 1, |u - v|^2 / 2 = 1 - cos(u, v); for correlation the rows are centered
# first. A row without direction (all zeros; for correlation: constant) is at distance 1 from all
# rows with a direction, and at distance 0 from other rows without one.


class Directions(NamedTuple):
    """Rows of length 1, with one more column that is 1 for rows without direction."""

    rows: np.ndarray
    empty: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, metric: str) -> Directions:
        U = np.array(X, dtype=np.float64, order="C")
        size = np.abs(U).max(axis=1, keepdims=True)
        U /= np.where(size > 0, size, 1.0)  # neither tiny nor huge rows may over- or underflow
        if metric == "correlation":
            U -= U.mean(axis=1, keepdims=True)
        length = np.linalg.norm(U, axis=1, keepdims=True)
        empty = length <= 1e-13 * np.sqrt(X.shape[1])
        U = np.where(empty, 0.0, U / np.where(empty, 1.0, length))
        return cls(np.hstack([U, empty.astype(np.float64)]), empty[:, 0])


def settle_empty(
    ids: np.ndarray,
    distances: np.ndarray,
    empty_points: np.ndarray,
    empty_rows: np.ndarray,
    self_join: bool,
) -> None:
    """Set distances to and from rows without direction to exactly 1 or 0, in place.

    For such a row, all rows with a direction tie, so that the first of them are its neighbors.
    """
    k = ids.shape[1]
    for row in np.flatnonzero(empty_rows):
        order = np.concatenate([np.flatnonzero(empty_points), np.flatnonzero(~empty_points)])
        if self_join:
            order = order[order != row]
        ids[row] = order[:k]
        distances[row] = np.where(empty_points[ids[row]], 0.0, 1.0)
    touched = np.flatnonzero(~empty_rows & empty_points[ids].any(axis=1))
    distances[touched] = np.where(empty_points[ids[touched]], 1.0, distances[touched])
    order = np.lexsort((ids[touched], distances[touched]), axis=1)
    ids[touched] = np.take_along_axis(ids[touched], order, axis=1)
    distances[touched] = np.take_along_axis(distances[touched], order, axis=1)

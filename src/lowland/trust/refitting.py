"""Maps of parts of the rows, made again: which rows, from what, turned like the map in question."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._core.errors import ParameterError
from lowland._core.validation import is_sparse
from lowland._engines.linalg.procrustes import turned_like
from lowland.metrics import islands
from lowland.metrics._options import Options
from lowland.metrics.grouping._cloud import Cloud
from lowland.trust.null_data import MOST_COMPONENTS, component_scores, null_rows, without_structure
from lowland.trust.result import OtherMap

MakeMap = Callable[..., Any]  # rows and a seed, or these and a RefitPart -> coordinates

MOST_ROWS = 10_000
SMALL = 2_000  # up to here a refit takes no time that anybody would notice
LARGE_SHARE, SMALL_SHARE = 1 / 6, 3 / 4
DISTANCE_ROWS = 2_000  # of a matrix of distances
ISLAND_DIMENSIONS = 3  # dimensions of a map in which islands are found


class RefitPart(NamedTuple):
    """Which rows a map is made of."""

    rows: np.ndarray  # their numbers, ascending
    is_null: bool  # whether the data only resemble these rows, but are without structure


def refit_rows(n: int) -> int:
    """How many of n rows a refit takes: 3/4 of few, 1/6 of many, at most 10 000."""
    return int(min(MOST_ROWS, max(LARGE_SHARE * n, min(SMALL_SHARE * n, SMALL))))


class RefitRows:
    """What maps are made of: rows of the data, and rows without structure that resemble them.

    Columns are given as they are; of more than 50 columns, or sparse ones, the principal component
    scores. Of a matrix of distances, the rows and columns asked for.
    """

    def __init__(self, X: Any, options: Options) -> None:
        self.X, self.options = X, options
        self.distances = options.metric == "precomputed"
        self.euclidean = options.metric == "euclidean"
        self._wide = self.euclidean and (is_sparse(X) or X.shape[1] > MOST_COMPONENTS)

    def size(self) -> int:
        """The number of rows of a refit."""
        m = refit_rows(self.X.shape[0])
        return min(m, DISTANCE_ROWS) if self.distances else m

    @property
    def no_null(self) -> str:
        """Why there is no null; empty if there is one."""
        if self.euclidean or (self.distances and not is_sparse(self.X)):
            return ""
        metric = self.options.metric
        name = metric if isinstance(metric, str) else "a function"
        return f"data without structure are made for Euclidean distances, not for {name}"

    def of(self, rows: np.ndarray) -> Any:
        """What a map of the rows is made of."""
        if self.distances:
            return self.X[np.ix_(rows, rows)]
        return component_scores(self.X[rows], self.options.threads) if self._wide else self.X[rows]

    def null_of(self, rows: np.ndarray, rng: np.random.Generator) -> Any:
        """As many rows with the same principal variances and tails, without structure."""
        if not self.distances:
            return null_rows(self.X[rows], rng, self.options.threads)
        Z = without_structure(Cloud(self.X, self.options).of(rows), rng)
        squares = (Z**2).sum(axis=1)
        D2 = np.maximum(squares[:, None] + squares - 2 * Z @ Z.T, 0.0)
        np.fill_diagonal(D2, 0.0)
        return np.sqrt((D2 + D2.T) / 2)


def refit(make_map: MakeMap, X: Any, seed: int, columns: int, part: RefitPart) -> np.ndarray:
    """The map that ``make_map`` makes, checked."""
    Y = np.asarray(make_map(X, seed, part) if _takes_part(make_map) else make_map(X, seed))
    if Y.ndim != 2 or Y.shape[0] != X.shape[0] or Y.shape[1] < 1 or Y.dtype.kind not in "fiu":
        raise ParameterError(
            f"make_map returned an array of shape {Y.shape} and type {Y.dtype} for {X.shape[0]} "
            f"rows; expected numbers of shape ({X.shape[0]}, {columns})."
        )
    if not np.isfinite(Y).all():
        row = int(np.flatnonzero(~np.isfinite(Y).all(axis=1))[0])
        raise ParameterError(f"make_map returned NaN or infinity, first in row {row}.")
    return Y.astype(np.float64)


def turned(
    title: str, rows: np.ndarray, map_of_rows: np.ndarray, reference: np.ndarray
) -> OtherMap:
    """A map rotated, reflected and scaled to resemble another map of the same rows."""
    aligned = turned_like(reference, map_of_rows)
    return OtherMap(title, rows, aligned[:, : reference.shape[1]])


def islands_of(Y: np.ndarray) -> np.ndarray:
    """The islands of a map, by its first three dimensions."""
    return islands(Y[:, :ISLAND_DIMENSIONS])


def _takes_part(make_map: MakeMap) -> bool:
    """Whether a function has a third argument without a default."""
    try:
        given = inspect.signature(make_map).parameters.values()
    except (TypeError, ValueError):  # of some functions that are not written in Python
        return False
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in plain and each.default is each.empty for each in given) >= 3

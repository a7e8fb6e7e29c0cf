"""Refits: maps of subsamples and of structureless data, rotated to match the map in question."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, check_argument
from lowland._base.errors import DataError, ParameterError
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import rank_cutoff
from lowland._engines.linalg.principal_axes import leading_axes
from lowland._engines.linalg.procrustes import turned_like
from lowland.metrics import island_stability, islands, map_agreement
from lowland.metrics._cloud import Cloud
from lowland.metrics._comparison import of_all
from lowland.metrics._options import Options
from lowland.trust.result import OtherMap, Stability, Trust

# Data without structure that have the principal variances and the tails of a table.
#
# The null of every comparison with chance is an elliptical cloud: the principal component scores
# of the rows, each divided by its deviation, are replaced by vectors in random directions whose
# lengths are those of the rows in another order. The variance along every principal axis and the
# share of outlying rows are those of the data; clusters and curves are gone.
#
# Two other nulls are worse. Permuting the columns of the table flattens its spectrum, and such a
# null is too easy to beat. Permuting each component score keeps the hills of its distribution: of
# data with three clusters it makes a grid of more than three.


MOST_COMPONENTS = 50  # as many as neighbor methods reduce wider tables to


def component_scores(X: Any, threads: int = 1, most: int = MOST_COMPONENTS) -> np.ndarray:
    """The principal component scores (X - 1 m^T) A of the rows, largest variance first.

    Distances between rows are those of X if there are at most ``most`` columns; of a wider table
    the leading components are kept, as in the preparation of neighbor methods. Components without
    variance are left out, but one remains. O(n p min(n, p)) at most; the result does not depend on
    ``threads``.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, p), finite, float32 or float64
    threads : int, default=1
    most : int, default=50
        The largest number of components.

    Returns
    -------
    ndarray of shape (n, q), in the float type of X

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> component_scores(X).round(3).ravel().tolist()  # the second component has no variance
    [-2.121, -0.707, 0.707, 2.121]
    """
    n, p = X.shape
    if n < 2:
        raise DataError(f"X has {n} row; principal components need at least 2.")
    check_argument("most", most, Integer(1))
    # A fixed start: the scores are a property of the rows.
    rng = np.random.default_rng(0)
    with limit_blas(1):  # before anything is computed: the bytes must not depend on its threads
        found = leading_axes(X, min(n - 1, p, most), threads, rng, Monitor())
    cutoff = rank_cutoff(min(n, p), X.dtype) * max(float(found.variances[0]), 0.0)
    kept = max(1, int((found.variances > cutoff).sum()))
    return products.times(X, found.mean, found.axes[:kept].T, threads)


def null_rows(X: Any, rng: np.random.Generator, threads: int = 1) -> np.ndarray:
    """Rows without structure: :func:`without_structure` of the principal component scores of X.

    They are in the coordinates of :func:`component_scores`, which gives the rows to compare with.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, p), finite, float32 or float64
    rng : Generator
        Of the directions.
    threads : int, default=1

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [5.0, 2.0, 1.0]
    >>> null_rows(X, np.random.default_rng(1)).std(axis=0).round(0)
    array([5., 2., 1.])
    """
    return without_structure(component_scores(X, threads), rng)


def without_structure(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """z_i = s * r_p(i) u_i, with random unit vectors u, lengths r of the scaled rows, permuted.

    ``scores`` are uncorrelated columns of mean 0, s their deviations. A single column has no
    directions to draw; it becomes a Gaussian one.
    """
    deviation = scores.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 0, deviation, 1.0)
    Z = rng.standard_normal(scores.shape)
    if scores.shape[1] > 1:
        lengths = np.linalg.norm(scores / scale, axis=1)
        Z *= (rng.permutation(lengths) / np.linalg.norm(Z, axis=1))[:, None]
    return (Z * deviation).astype(scores.dtype)


MakeMap = Callable[..., Any]  # rows and a seed, or these and a RefitPart -> coordinates

MOST_ROWS = 10_000
SMALL = 2_000  # rows; up to here a refit takes less than a second
LARGE_SHARE, SMALL_SHARE = 1 / 6, 3 / 4
DISTANCE_ROWS = 2_000  # of a matrix of distances
ISLAND_DIMENSIONS = 3  # dimensions of a map in which islands are found


class RefitPart(NamedTuple):
    """Which rows a map is made of."""

    rows: np.ndarray  # their numbers, ascending
    is_null: bool  # whether the data only resemble these rows, but are without structure


class Refits:
    """Maps made again: of rows of the data, and of rows without structure that resemble them.

    Columns are given as they are; of more than 50 columns, or sparse ones, the principal component
    scores. Of a matrix of distances, the rows and columns asked for.
    """

    def __init__(self, X: Any, options: Options, make_map: Any, seed: int) -> None:
        self.X, self.options, self.make_map, self.seed = X, options, make_map, seed
        self.distances = options.metric == "precomputed"
        self.euclidean = options.metric == "euclidean"
        self._wide = self.euclidean and (is_sparse(X) or X.shape[1] > MOST_COMPONENTS)

    def size(self) -> int:
        """How many of n rows a refit takes: 3/4 of few, 1/6 of many, at most 10 000."""
        n, most = self.X.shape[0], DISTANCE_ROWS if self.distances else MOST_ROWS
        return int(min(most, max(LARGE_SHARE * n, min(SMALL_SHARE * n, SMALL))))

    @property
    def no_null(self) -> str:
        """Why there is no map of structureless data; empty if there is one."""
        if self.euclidean or (self.distances and not is_sparse(self.X)):
            return ""
        metric = self.options.metric
        name = metric if isinstance(metric, str) else "a function"
        return f"data without structure are made for Euclidean distances, not for {name}"

    def of(self, rows: np.ndarray) -> Any:
        """What a map of the rows is made of."""
        part = self.options.part(self.X, rows)
        return component_scores(part, self.options.threads) if self._wide else part

    def null_of(self, rows: np.ndarray, rng: np.random.Generator) -> Any:
        """As many rows with the same principal variances and tails, without structure."""
        if not self.distances:
            return null_rows(self.X[rows], rng, self.options.threads)
        Z = without_structure(Cloud(self.X, self.options).of(rows), rng)
        squares = (Z**2).sum(axis=1)
        D2 = np.maximum(squares[:, None] + squares - 2 * Z @ Z.T, 0.0)
        np.fill_diagonal(D2, 0.0)
        return np.sqrt((D2 + D2.T) / 2)

    def map_of(self, X: Any, part: RefitPart, number: int, columns: int) -> np.ndarray:
        """The map that ``make_map`` makes of some rows, checked; each number has its own seed."""
        told = (part,) if _takes_part(self.make_map) else ()
        Y = np.asarray(self.make_map(X, self.seed + number, *told))
        if Y.ndim != 2 or Y.shape[0] != X.shape[0] or Y.shape[1] < 1 or Y.dtype.kind not in "fiu":
            raise ParameterError(
                f"make_map returned an array of shape {Y.shape} and type {Y.dtype} for "
                f"{X.shape[0]} rows; expected numbers of shape ({X.shape[0]}, {columns})."
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


# How much of a map comes again, with other seeds and other rows.


REFITS = 3


def _agreement(
    maps: list[np.ndarray], rows: np.ndarray, n: int, threads: int
) -> tuple[np.ndarray, float, float]:
    """The share of neighbors that two maps of some of n rows have in common, by all pairs of maps.

    At each point (NaN for other rows), on average, and of unrelated maps.
    """
    every = itertools.combinations(maps, 2)
    pairs = [map_agreement(one, other, n_jobs=threads) for one, other in every]
    points = of_all(np.mean([pair.points for pair in pairs], axis=0), rows, n)
    return points, float(np.mean([pair.mean for pair in pairs])), pairs[0].chance


def stability_of_refits(
    source: Refits, found: Trust, monitor: Monitor
) -> tuple[Stability, np.ndarray]:
    """Three refits on parts of the rows that share half of them; and the first refit as it is.

    Refits are compared with one another, because a map of fewer rows has other neighbors than the
    map of all. Islands of the map are looked for in each refit.
    """
    n, columns = found.coordinates.shape
    m, rng = source.size(), np.random.default_rng([source.seed, 1])
    order = rng.permutation(n)
    core, rest = np.sort(order[: m // 2]), order[m // 2 :]
    maps: list[tuple[np.ndarray, np.ndarray]] = []
    with monitor.phase("refits", total=REFITS) as phase:
        for number in range(REFITS):
            own = rng.choice(rest, m - len(core), replace=False)
            rows = np.sort(np.concatenate([core, own]))
            part = RefitPart(rows, is_null=False)
            maps.append((rows, source.map_of(source.of(rows), part, 1 + number, columns)))
            phase.advance(1)
    cores = [Z[np.searchsorted(rows, core)] for rows, Z in maps]
    agreement = _agreement(cores, core, n, source.options.threads)
    return _stability(agreement, found, "refit", maps), maps[0][1]


def stability_of_others(found: Trust, others: Sequence[np.ndarray], threads: int) -> Stability:
    """Other maps of the same rows, such as those of other seeds, compared with one another."""
    every = np.arange(len(found.coordinates))
    agreement = _agreement([found.coordinates, *others], every, len(every), threads)
    return _stability(agreement, found, "other map", [(every, Z) for Z in others])


def _stability(
    agreement: Any, found: Trust, title: str, maps: Sequence[tuple[np.ndarray, np.ndarray]]
) -> Stability:
    """Islands of a map looked for in other maps, which are turned to resemble it."""
    Y, island_of = found.coordinates, found.island_of
    shown, others = [], []
    for number, (rows, Z) in enumerate(maps, start=1):
        shown.append(turned(f"{title} {number}", rows, Z, Y[rows]))
        others.append(of_all(islands_of(Z), rows, len(Y), -1))
    islands = island_stability(island_of, others) if island_of.max(initial=0) else []
    return Stability(*agreement, islands, shown)

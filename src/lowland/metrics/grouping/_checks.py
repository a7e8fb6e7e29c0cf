"""Checks of what tests of islands are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core.constraints import Integer
from lowland._core.errors import DataError, ParameterError
from lowland._core.wording import shown
from lowland._engines.neighbors.graph import NeighborGraph


def checked_islands(
    islands: Any, n: int | None = None, argument: str = "islands", least: int = 0
) -> np.ndarray:
    """Islands as integers from ``least`` on, one for each of n rows."""
    try:
        codes = np.asarray(islands)
    except ValueError:
        raise DataError(f"{argument} is no array; give one integer for each row.") from None
    if codes.ndim != 1 or codes.dtype.kind not in "iub" or len(codes) != (n or len(codes)):
        rows = "row" if n is None else f"of {n} rows"
        raise DataError(
            f"{argument} has shape {codes.shape} and type {codes.dtype}; give one integer for each "
            f"{rows}, as lowland.metrics.islands does."
        )
    low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
    if low < least:
        missing = "" if least == 0 else ", -1 for rows that a map does not have"
        raise DataError(f"{argument} holds {low}; give 0 for rows of no island{missing}.")
    # Numbers beyond the number of rows would be mostly empty islands.
    if high > len(codes):
        raise DataError(f"{argument} holds {high} for {len(codes)} rows; number them 1, 2, ...")
    return codes.astype(np.int64)


def checked_pairs(pairs: Any, m: int) -> list[tuple[int, int]]:
    """Different pairs of islands from 1 to m, each in order."""
    expected = f"expected two different islands from 1 to {m}."
    if not isinstance(pairs, Sequence | np.ndarray) or isinstance(pairs, str):
        raise ParameterError(f"pairs={shown(pairs)} is not allowed; give a list of pairs.")
    found = set()
    for pair in pairs:
        several = isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
        if not several or not all(Integer(1, m).allows(number) for number in pair):
            raise ParameterError(f"pairs: {shown(pair)} is not allowed; {expected}")
        one, other = sorted(int(number) for number in pair)
        if one == other:
            raise ParameterError(f"pairs: {shown(pair)} is not allowed; {expected}")
        found.add((one, other))
    return sorted(found)


def checked_neighbors(n_neighbors: Any) -> int:
    if not Integer(1).allows(n_neighbors):
        raise ParameterError(
            f"n_neighbors={shown(n_neighbors)} is not allowed; expected an integer >= 1."
        )
    return int(n_neighbors)


def checked_graph(graph: Any, n: int) -> NeighborGraph | None:
    """A graph of n rows, or None."""
    if graph is None:
        return None
    if not isinstance(graph, NeighborGraph):
        raise ParameterError(
            f"graph={type(graph).__name__} is not allowed; expected a NeighborGraph or None."
        )
    if len(graph) != n or graph.n_points != n:
        raise DataError(
            f"graph has {len(graph)} rows and their neighbors among {graph.n_points}, but X has "
            f"{n} rows; give a graph of the rows of X."
        )
    return graph

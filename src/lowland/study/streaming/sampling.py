"""How many rows a method is fitted to that needs its rows in memory."""

from __future__ import annotations

from lowland._core.base import Reducer
from lowland._core.memory import available_memory

MOST_ROWS, FEWEST_ROWS = 500_000, 1000
SECONDS = 300.0  # of a fit, about


def fitted_rows(cls: type[Reducer], n_rows: int, n_columns: int) -> int:
    """The largest of 1000, 2000, 4000, ... rows, at most 500 000, that the method fits in about
    five minutes and in half of the memory; all rows if there are no more.
    """
    room = available_memory() / 2
    sizes = [1000 << k for k in range(9)] + [MOST_ROWS]
    found = FEWEST_ROWS
    for m in sizes:
        need = cls.estimate(m, n_columns)
        if need.seconds > SECONDS or need.n_bytes + 16 * m * n_columns > room:
            break
        found = m
        if m >= n_rows:
            break
    return min(n_rows, found)

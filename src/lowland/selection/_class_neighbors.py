"""The nearest rows of every class in the Manhattan distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._core.memory import require_memory
from lowland._core.monitor import Monitor
from lowland._engines.distances.filter_space import panel_width
from lowland._engines.linalg.blocks import row_blocks, rows_within
from lowland._engines.linalg.class_moments import members
from lowland._engines.neighbors.block_search import nearest_in_rows

BLOCK_BYTES = 2**24  # distances that are computed at a time


class NearInClass(NamedTuple):
    """For each of ``rows``, its nearest rows in class ``code``, without the row itself."""

    rows: np.ndarray
    code: int
    neighbors: np.ndarray


def nearest_by_class(
    X: np.ndarray, codes: np.ndarray, rows: np.ndarray, k: int, threads: int, monitor: Monitor
) -> Iterator[NearInClass]:
    """The k nearest rows of each class (all if it has fewer), for blocks of rows.

    A row is not its own neighbor, so it may have one neighbor less in its own class; rows of the
    class are therefore yielded separately. Ties go to the smaller index. O(m n p).
    """
    n, p = X.shape
    groups = members(codes, int(codes.max()) + 1)
    order = np.concatenate(groups)  # the rows of a class are adjacent
    ends = np.cumsum([len(group) for group in groups])
    width = panel_width(X.dtype)
    shape = (-(-n // width), p, width)
    require_memory(
        int(np.prod(shape)) * 2 * X.itemsize,
        task=f"a packed copy of {n} rows",
        alternative="use fewer rows, or fewer columns",
    )
    panels = np.empty(shape, X.dtype)
    _native.pack_points(np.ascontiguousarray(X[order]), panels, threads)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    blocks = list(row_blocks(len(rows), rows_within(8 * n, BLOCK_BYTES)))
    with monitor.phase("neighbors of each class", total=len(blocks)) as phase:
        for some in blocks:
            block = rows[some]
            D = np.empty((len(block), n))
            _native.manhattan_rows(panels, np.ascontiguousarray(X[block]), D, threads)
            D[np.arange(len(block)), place[block]] = np.inf
            for code, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                for own in (False, True):
                    chosen = np.flatnonzero((codes[block] == code) == own)
                    most = min(k, end - begin - own)
                    if len(chosen) and most > 0:
                        near, _ = nearest_in_rows(D[chosen, begin:end], most)
                        yield NearInClass(block[chosen], code, order[begin:end][near])
            phase.advance()

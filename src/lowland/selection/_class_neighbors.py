"""The nearest rows of every class, by the sum of absolute differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._core.memory import require_memory
from lowland._core.monitor import Monitor
from lowland._engines.distances.filter_space import panel_width
from lowland._engines.linalg.blocks import row_blocks
from lowland._engines.linalg.class_moments import members
from lowland._engines.neighbors.block_search import nearest_in_rows

__all__ = ["NearInClass", "nearest_by_class"]

BLOCK_DISTANCES = 1 << 21  # 16 MB


class NearInClass(NamedTuple):
    """For each of some ``rows``, its nearest rows in class ``code``, itself never among them."""

    rows: np.ndarray
    code: int
    neighbors: np.ndarray


def nearest_by_class(
    X: np.ndarray, codes: np.ndarray, rows: np.ndarray, k: int, threads: int, monitor: Monitor
) -> Iterator[NearInClass]:
    """For block after block of rows, the k nearest rows of each class (fewer if it has fewer).

    Rows of the class itself come apart from the others, since a row is not its own neighbor; so all
    rows that come together have as many neighbors. Ties go to the smaller number. O(m n p).
    """
    n, p = X.shape
    groups = members(codes, int(codes.max()) + 1)
    order = np.concatenate(groups)  # each class side by side
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
    step = max(1, BLOCK_DISTANCES // n)
    with monitor.phase("neighbors of each class", total=-(-len(rows) // step)) as phase:
        for part in row_blocks(len(rows), step):
            block = rows[part]
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

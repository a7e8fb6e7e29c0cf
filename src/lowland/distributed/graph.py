"""The neighbor graph of tables larger than memory, from the graphs of overlapping parts.

1. k-means on a sample cuts space into parts; each row goes to its r nearest parts
   (:mod:`space_parts`, ``Rows.exchange``);
2. the neighbor join runs within each part, and the lists of a row are merged
   (:mod:`neighbor_lists`);
3. the recall is measured on sampled rows, whose exact neighbors among all rows are found in one
   pass (:mod:`exact_lists`). Before anything is joined, these tell how many of the true neighbors
   meet in a part for each r, so that r is chosen for the recall asked for.

References: Chen et al. (2021), SPANN: highly-efficient billion-scale approximate nearest neighbor
search, NeurIPS 34 (rows near a border in several parts).
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from lowland._core.constraints import Constraint, Integer, Null, Real
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._core.monitor import Monitor
from lowland._core.rows.fitting import Checked, as_rows, float_type
from lowland._core.rows.sampling import row_keys, sampled_rows
from lowland._core.rows.table import Rows
from lowland._core.threads import resolve_n_jobs
from lowland._core.units import largest
from lowland._core.wording import shown
from lowland._engines.distances.metric_rows import metric_unit
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph_cost
from lowland._engines.neighbors.search_options import check_k
from lowland.distributed.exact_lists import ExactLists, exact_lists
from lowland.distributed.neighbor_lists import NeighborLists, PartJoin, PartLists
from lowland.distributed.space_parts import PartLimits, SpaceParts, space_parts

PART_ROWS = 250_000  # of a part, with the copies
PART_BYTES = 1 << 30
MOST_COPIES = 8
MOST_ROWS = 2**31 - 1
RECALL_ROWS = 1000
COMPLETED_ROWS = 20_000  # rows with too few neighbors that are searched for among all rows


def knn_graph(
    rows: Rows,
    k: int,
    *,
    metric: str = "euclidean",
    n_parts: int | None = None,
    copies: int = 2,
    target_recall: float = 0.985,
    seed: int = 0,
    n_jobs: int | None = None,
    monitor: Monitor | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> NeighborGraph:
    """The k nearest other rows of every row of a table, approximately, with measured recall.

    The same files and seed give the same graph on any engine, for any ``n_jobs``. Cost about
    O(copies n), beside four passes over the table; memory 8 n k bytes for the graph, and one part;
    disk ``copies`` times the table while it runs.

    Parameters
    ----------
    rows : Rows
        The table: dense, finite, less than 2^31 rows.
    k : int
        Number of neighbors, at most n - 1.
    metric : "euclidean"
        No other is possible: parts are cut by means.
    n_parts : int or None
        Number of parts; None takes as many as give parts of 250 000 rows, with copies. One part
        makes the search that of ``lowland.neighbors.knn_graph``.
    copies : int
        Number of parts r that each row goes to, at least. It is raised, up to 8, until sampled rows
        show the recall asked for.
    target_recall : float
        Share of the true neighbors that are to be found.
    seed : int
        Decides about the samples and the centers of the parts.
    n_jobs : int or None
        Threads within a part; the result does not depend on it.
    folder : path or None
        Where the parts are written, see :meth:`Rows.exchange`.

    Returns
    -------
    NeighborGraph
        With int32 indices, float32 distances and the recall that was reached in ``recall_``, which
        may be below the target. Distances that agree in float32 count as ties. Rows in parts with
        too few rows may have less than k neighbors, with the index -1, if there are more than
        20 000 such rows.
    """
    monitor = monitor or Monitor()
    table = _checked(rows, k, metric, n_parts, copies, target_recall, seed)
    resolve_n_jobs(n_jobs)
    n, p = table.shape
    limits = _limits(p)
    wanted = (
        (1 if n <= limits.wanted else math.ceil(n * copies / limits.wanted))
        if (n_parts is None)
        else int(n_parts)
    )
    _require(n, p, k, limits)
    parts = space_parts(table, wanted, copies, limits, seed=seed, n_jobs=n_jobs, monitor=monitor)
    truth = exact_lists(
        table, sampled_rows(n, RECALL_ROWS, seed + 1), k, n_jobs=n_jobs, monitor=monitor
    )
    unit = metric_unit(max(largest(parts.centers), largest(truth.X)), "euclidean")
    parts = parts.with_copies(_enough_copies(table, parts, truth, target_recall, monitor))
    if 1 < parts.copies == len(parts.centers) and n <= 2 * limits.most:
        parts = parts.as_one()  # every part would hold all rows
    lists = NeighborLists(n, k)
    join = PartJoin(k, unit, seed, n_jobs)
    while True:
        for found in table.exchange(
            parts, join, parts.n_parts, copies=parts.width, folder=folder, monitor=monitor
        ):
            lists.add(found)
        _complete(table, lists, k, unit, n_jobs, monitor)
        recall = _recall(lists, truth, unit)
        if recall >= target_recall or parts.copies >= min(MOST_COPIES, len(parts.centers)):
            break
        parts = parts.with_copies(parts.copies + 1)
    distances = lists.distances if unit == 1.0 else lists.distances.astype(np.float64) / unit
    return NeighborGraph(lists.ids, distances, n, "euclidean", recall, len(truth.rows))


def _limits(p: int) -> PartLimits:
    wanted = max(1000, min(PART_ROWS, PART_BYTES // (8 * p)))
    return PartLimits(wanted, 2 * wanted)


def _enough_copies(
    rows: Rows, parts: SpaceParts, truth: ExactLists, target: float, monitor: Monitor
) -> int:
    """The number of parts per row with which enough true neighbors of sampled rows meet.

    The join within a part may miss some of them: a third of what may be missed is left to it.
    """
    most = min(MOST_COPIES, len(parts.centers))
    if parts.copies >= most:
        return parts.copies
    every = parts.with_copies(most)
    there = np.unique(truth.ids)
    near = np.asarray(rows.take(there, monitor).X, rows.dtype)
    theirs = every.of(near, _keys_of(there, parts.seed))[np.searchsorted(there, truth.ids)]
    mine = every.of(truth.X, _keys_of(truth.rows, parts.seed))
    spare = every.width - every.copies  # the column of heavy rows comes first
    for copies in range(parts.copies, most):
        a, b = mine[:, None, : spare + copies, None], theirs[:, :, None, : spare + copies]
        met = ((a == b) & (a >= 0)).any(axis=(2, 3)) | (truth.distances == 0)
        if met.mean() >= target + (1 - target) / 3:
            return copies
    return most


def _keys_of(numbers: np.ndarray, seed: int) -> np.ndarray:
    return np.array([row_keys(i, i + 1, seed)[0] for i in numbers.tolist()], np.uint64)


def _recall(lists: NeighborLists, truth: ExactLists, unit: float) -> float:
    """Share of true neighbors found; ties with the last of them count."""
    farthest = (truth.distances[:, -1:] * unit).astype(np.float32)
    return float((lists.distances[truth.rows] <= farthest).mean())


def _complete(
    rows: Rows, lists: NeighborLists, k: int, unit: float, n_jobs: int | None, monitor: Monitor
) -> None:
    """Search all rows for the neighbors of rows whose parts had too few."""
    short = lists.incomplete()[:COMPLETED_ROWS]
    if len(short):
        found = exact_lists(rows, short, k, n_jobs=n_jobs, monitor=monitor)
        distances = (found.distances * unit).astype(np.float32)
        lists.add(PartLists(short, found.ids.astype(np.int32), distances))


# --- checks ------------------------------------------------------------------------------------


def _checked(
    rows: Any, k: Any, metric: Any, n_parts: Any, copies: Any, target: Any, seed: Any
) -> Rows:
    """The table whose blocks are checked, if all parameters make sense."""
    table = as_rows(rows)
    if table is None:
        raise ParameterError(
            "knn_graph: rows is no table of rows; open one with lowland.distributed.open_rows, or "
            "use lowland.neighbors.knn_graph for data in memory."
        )
    n = table.shape[0]
    if metric not in ("euclidean", "l2"):
        raise ParameterError(
            f"knn_graph: metric={shown(metric)} is not possible across parts; only 'euclidean' is."
        )
    if n > MOST_ROWS:
        raise ParameterError(f"knn_graph: {n} rows are more than a graph may have, {MOST_ROWS}.")
    check_k(k, n - 1, n)
    rules: list[tuple[str, Any, Constraint]] = [
        ("n_parts", n_parts, Null() | Integer(1, max(1, n // (k + 1)))),
        ("copies", copies, Integer(1, MOST_COPIES)),
        ("target_recall", target, Real(0, 1, closed="both")),
        ("seed", seed, Integer(0, 2**62)),
    ]
    for name, value, rule in rules:
        if not rule.allows(value):
            raise ParameterError(
                f"knn_graph: {name}={shown(value)} is not allowed; expected {rule.describe()}."
            )
    step = Checked("knn_graph", False, True, False)
    return table.map(step, dtype=float_type(table.dtype))


def _require(n: int, p: int, k: int, limits: PartLimits) -> None:
    part = min(n, limits.most)
    need = 8 * n * k + part * (8 * p + 8) + neighbor_graph_cost(part, p, k).n_bytes
    require_memory(
        int(need),
        task=f"the graph of {k} neighbors of {n} rows",
        alternative="ask for fewer neighbors, or take rows.sample(n)",
    )

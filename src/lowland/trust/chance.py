"""The map beside one of data without structure."""

from __future__ import annotations

import numpy as np

from lowland._core.monitor import Monitor
from lowland.metrics import Comparison
from lowland.metrics.pointwise.missing import NEIGHBORS
from lowland.trust.refitting import MakeMap, RefitPart, RefitRows, islands_of, refit, turned
from lowland.trust.result import Chance, OtherMap

QUANTILE = 0.95  # of the null: what keeps more is more than chance


def chance_of_map(
    source: RefitRows,
    first: OtherMap,
    first_map: np.ndarray,
    make_map: MakeMap,
    seed: int,
    monitor: Monitor,
) -> Chance:
    """A refit of some rows beside a map of as many rows without structure, made the same way."""
    rows = first.rows
    data = source.of(rows)
    with monitor.phase("chance", total=1) as phase:
        null = source.null_of(rows, np.random.default_rng([seed, 2]))
        part = RefitPart(rows, is_null=True)
        null_map = refit(make_map, null, seed + 4, first_map.shape[1], part)
        phase.advance(1)
    kept, null_kept = (_kept(source, X, Y) for X, Y in ((data, first_map), (null, null_map)))
    limit = float(np.quantile(null_kept, QUANTILE))
    return Chance(
        float(kept.mean()),
        float(null_kept.mean()),
        int(islands_of(first_map).max()),
        int(islands_of(null_map).max()),
        float((kept > limit).mean()),
        # No row of the null belongs to a row of the data: it is scaled, but turning has no meaning.
        turned("without structure", rows, null_map, first.coordinates),
    )


def _kept(source: RefitRows, X: object, Y: np.ndarray) -> np.ndarray:
    """The share of each row's data neighbors that are its neighbors in the map."""
    metric, threads = source.options.metric, source.options.threads
    compared = Comparison(X, Y, metric=metric, sample=None, n_jobs=threads)
    k = min(NEIGHBORS, max(1, (compared.n - 1) // 4))
    return compared.overlaps(k)[:, -1] / k

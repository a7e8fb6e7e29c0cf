"""The recall of a search: the share of true neighbors found, on a random sample of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lowland._core.monitor import Monitor
from lowland._engines.distances.filter_space import PackedPoints
from lowland._engines.neighbors.exact_search import Candidates, finish, search_all


class SampleTruth:
    """The exact neighbors of a random sample of packed rows of X, to measure recall by."""

    def __init__(
        self,
        X: np.ndarray,
        points: PackedPoints,
        n_rows: int,
        k: int,
        threads: int,
        rng: np.random.Generator,
    ) -> None:
        taken = np.flatnonzero(points.ids >= 0)
        self.places = np.sort(rng.choice(taken, n_rows, replace=False))
        self.rows = points.ids[self.places]
        self.X, self.points, self.k, self.threads = X, points, k, threads
        width = points.panels.shape[2]
        F = np.ascontiguousarray(points.panels[self.places // width, :, self.places % width])
        sought = PackedPoints.of(F, np.arange(n_rows), threads, points.lead)
        # With the row itself, which is its own nearest: k + 1.
        nobody = np.full(len(sought.ids), -2, np.int32)
        kept = Candidates.empty(len(sought.ids), k + 1, F.dtype)
        search_all(sought, points, nobody, kept, threads, Monitor())
        exact = finish(X[self.rows], X, sought, points, kept, k + 1, False, threads, Monitor())
        self.true = exact.squares[:, 1:]

    def recall(self, kept: Candidates) -> float:
        """Share of the true neighbors among the candidates kept so far; ties count as found."""
        sample = Candidates(
            kept.entries[self.places],
            kept.counts[self.places],
            kept.thresholds[self.places],
            kept.keep,
        )
        here = np.arange(len(self.rows), dtype=np.int32)
        halves = self.points.halves[self.places]
        sought = replace(self.points, halves=halves, ids=here)
        found = finish(
            self.X[self.rows],
            self.X,
            sought,
            self.points,
            sample,
            self.k,
            False,
            self.threads,
            Monitor(),
            prove=False,
        ).squares
        return float((found <= self.true[:, -1:]).mean())

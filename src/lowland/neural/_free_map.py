"""The map of t-SNE whose points are free, and the divergence of any other map of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from lowland._core.context import FitContext
from lowland._core.monitor import Monitor
from lowland._engines.embedding.affinity import joint_affinities
from lowland._engines.embedding.descent import Stage, descend
from lowland._engines.embedding.divergence import Divergence, entropy_of
from lowland._engines.embedding.initial_layout import principal_layout
from lowland._engines.embedding.repulsion import choose_repulsion
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph

# As TSNE has them.
EXAGGERATION, EXAGGERATED_STEPS = 12.0, 250
MOMENTUM, LATE_MOMENTUM = 0.8, 0.9
TOLERANCE = 1e-5
ANGLE = 0.5  # of the tree, where it is the fastest repulsion


class FreeMap:
    """KL(P || Q) of the rows of a neighbor graph, and the map that t-SNE finds for them.

    Attributes
    ----------
    Y : ndarray of shape (n, d), float32
        Positions; those of the start until :meth:`descend` is called. Equal rows share a place.
    """

    def __init__(
        self,
        rows: np.ndarray,
        graph: NeighborGraph,
        perplexity: float | Sequence[float],
        d: int,
        run: FitContext,
        owner: str,
    ) -> None:
        self._equal = equal_in_graph(graph)
        Y = principal_layout(rows, d, run).astype(np.float32)
        self.Y = np.ascontiguousarray(at_common_place(Y, self._equal))
        P = joint_affinities(graph, perplexity, threads=run.threads, dtype=np.float32)
        repulsion = choose_repulsion("auto", P.n, d, 1.0, ANGLE, run.threads, owner=owner)
        self._divergence = Divergence(P, 1.0, repulsion, entropy_of(P.weights), run.threads)
        self._rows = np.arange(P.n)  # the row of each point of the divergence

    def descend(self, max_iter: int, monitor: Monitor) -> None:
        """Move the points as :class:`lowland.TSNE` does."""
        early = min(EXAGGERATED_STEPS, max_iter)
        stages = [
            Stage(early, EXAGGERATION, MOMENTUM, False),
            Stage(max_iter - early, 1.0, LATE_MOMENTUM, True),
        ]
        found = descend(
            self._divergence, self.Y, stages, learning_rate=None, tol=TOLERANCE, monitor=monitor
        )
        self.Y, self._rows = at_common_place(found.Y, self._equal), found.rows

    def divergence(self, Y: np.ndarray) -> float:
        """KL(P || Q) of the map Y."""
        return self._divergence.loss(self._arranged(Y))

    def slope(self, Y: np.ndarray) -> tuple[float, np.ndarray]:
        """KL(P || Q) of the map Y, and dKL/dY by the equation of the module ``divergence``."""
        forces = self._divergence(self._arranged(Y), with_loss=True)
        assert forces.loss is not None
        found = np.empty_like(forces.attraction)
        found[self._rows] = 4 * (forces.attraction - forces.repulsion / np.float32(forces.total))
        return forces.loss, found

    def _arranged(self, Y: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(Y[self._rows], dtype=np.float32)


class OneCount:
    """A monitor that counts the steps of several stages as one sequence."""

    def __init__(self, monitor: Monitor, total: int) -> None:
        self.monitor, self.total, self.done = monitor, total, 0

    @property
    def stopped(self) -> bool:
        """Whether the callback or a cancellation has ended the run."""
        return self.monitor.stopped

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return self.monitor.cancelled

    def iteration(
        self,
        i: int,
        embedding: np.ndarray | Callable[[], np.ndarray],
        loss: float | None = None,
        total: int | None = None,
    ) -> bool:
        """See :meth:`Monitor.iteration`; the number of the step is that of the whole fit."""
        if self.monitor.stopped:
            return True
        self.done += 1
        return self.monitor.iteration(self.done, embedding, loss, total=self.total)

    def as_monitor(self) -> Monitor:
        """Itself, as what engines ask for."""
        return cast(Monitor, self)

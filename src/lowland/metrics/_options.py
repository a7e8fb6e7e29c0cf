"""What every measure may be told besides its data: metric, sample, seed, threads."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import numpy as np

from lowland._core.constraints import Integer
from lowland._core.errors import DataError, ParameterError
from lowland._core.monitor import Monitor
from lowland._core.random import generator
from lowland._core.threads import limit_blas, resolve_n_jobs
from lowland._core.validation import check_matrix
from lowland._engines.distances.metrics import check_metric
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics._views import GraphView, View

__all__ = ["Keywords", "Options", "check_neighbors"]

EXACT_ROWS = 20_000  # up to here all rows are measured by default
DEFAULT_SAMPLE = 2_000


class Keywords(TypedDict, total=False):
    """The keywords of :class:`lowland.metrics.Comparison`, which explains them."""

    metric: Any
    metric_params: dict[str, Any] | None
    sample: int | str | None
    random_state: Any
    n_jobs: int | None
    verbose: bool


@dataclasses.dataclass
class Options:
    """Keywords with their defaults, and what follows from them."""

    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None
    sample: int | str | None = "auto"
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        self.threads = resolve_n_jobs(self.n_jobs)
        self.rng = generator(self.random_state)
        known = self.sample is None or self.sample == "auto"
        if not known and not Integer(2).allows(self.sample):
            raise ParameterError(
                f"sample={self.sample!r} is not allowed; give a number of rows >= 2, None for all "
                f"rows, or 'auto' for {DEFAULT_SAMPLE} of more than {EXACT_ROWS}."
            )

    def checked(self, X: Any, argument: str) -> Any:
        """X as views take it: a neighbor graph as it is, else a finite matrix, dense or CSR."""
        if isinstance(X, NeighborGraph):
            return X
        X = check_matrix(
            X,
            owner="lowland.metrics",
            argument=argument,
            accept_sparse=True,
            min_rows=3,
            threads=self.threads,
        )
        check_metric(X, self.metric, self.metric_params)
        return X

    def draw(self, n: int) -> np.ndarray | None:
        """The rows to measure, ascending; None for all n."""
        if self.sample is None or (self.sample == "auto" and n <= EXACT_ROWS):
            return None
        size = DEFAULT_SAMPLE if isinstance(self.sample, str) else int(self.sample)
        if size >= n:
            return None
        return np.sort(self.rng.choice(n, size, replace=False))

    def view(self, X: Any, argument: str = "X") -> View:
        """A view of data that stand alone, from rows of its own drawing."""
        X = self.checked(X, argument)
        return self.view_from(X, self.draw(len(X) if isinstance(X, NeighborGraph) else X.shape[0]))

    def view_from(self, X: Any, rows: np.ndarray | None) -> View:
        """A view of checked data, or of a neighbor graph, from given rows."""
        if isinstance(X, NeighborGraph):
            return GraphView(X, rows, self.threads)
        return View(X, rows, self.metric, self.metric_params, self.threads)

    @contextlib.contextmanager
    def working(self) -> Iterator[Monitor]:
        """A monitor for a piece of work; BLAS keeps to one thread in it."""
        with limit_blas(1), Monitor("metrics", verbose=self.verbose) as monitor:
            yield monitor


def check_neighbors(
    n_neighbors: int | Sequence[int] | np.ndarray, most: int, n: int, why: str = ""
) -> list[int]:
    """Numbers of neighbors, each from 1 to ``most``, as a list."""
    if np.ndim(n_neighbors) > 1 or np.size(n_neighbors) == 0:
        raise ParameterError(
            f"n_neighbors={n_neighbors!r} is not allowed; give one integer or a list of them."
        )
    numbers = list(np.atleast_1d(np.asarray(n_neighbors, dtype=object)))
    for k in numbers:
        if not Integer(1).allows(k):
            raise ParameterError(f"n_neighbors={k!r} is not allowed; expected an integer >= 1.")
        if k > most:
            if most < 1:
                raise DataError(f"{n} rows are too few{why}; give more rows.")
            raise ParameterError(
                f"n_neighbors={k} is too many for {n} rows{why}; expected 1 to {most}."
            )
    return [int(k) for k in numbers]

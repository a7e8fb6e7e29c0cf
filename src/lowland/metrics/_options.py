"""The keywords that all measures take besides their data: metric, sample, seed, threads."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import numpy as np

from lowland._base.constraints import Boolean, Integer, Null, OneOf, Real, check_argument
from lowland._base.context import generator
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import available_memory
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas, resolve_n_jobs
from lowland._base.validation import check_matrix, column_ranges, in_ranges, needs_ranges, with_room
from lowland._engines.distances.metrics import check_metric
from lowland._engines.neighbors.graph import NeighborGraph
from lowland.metrics._views import KEPT_BYTES, GraphView, View, Work

KEPT_SHARE = 0.25  # of the free memory, for distances that are kept, where the user gave a sample


class Keywords(TypedDict, total=False):
    """The keywords of :class:`lowland.metrics.Comparison`, which explains them."""

    metric: Any
    metric_params: dict[str, Any] | None
    sample: int | str | None
    random_state: Any
    n_jobs: int | None
    verbose: bool


class MapKeywords(Keywords, total=False):
    """The same for measures that compare a map with its data."""

    graph: NeighborGraph | None
    map_seconds: float | None


@dataclasses.dataclass
class Options:
    """The keywords with their defaults, checked."""

    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None
    sample: int | str | None = "auto"
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool = False
    map_seconds: float | None = None

    def __post_init__(self) -> None:
        self.threads = resolve_n_jobs(self.n_jobs)
        self.rng = generator(self.random_state)
        check_argument("sample", self.sample, Integer(2) | Null() | OneOf("auto"))
        check_argument("verbose", self.verbose, Boolean())
        check_argument("map_seconds", self.map_seconds, Real(0, closed="left") | Null())

    def checked(self, X: Any, argument: str) -> Any:
        """X unchanged if it is a neighbor graph, else as a finite matrix, dense or CSR."""
        if isinstance(X, NeighborGraph):
            return X
        rules: dict[str, Any] = {"accept_sparse": True, "min_rows": 3, "threads": self.threads}
        X = with_room(check_matrix(X, owner="lowland.metrics", argument=argument, **rules))
        check_metric(X, self.metric, self.metric_params)
        return in_ranges(X, column_ranges(X)) if needs_ranges(X, self.metric) else X

    @property
    def automatic(self) -> bool:
        """Whether the number of rows is left to the measure."""
        return isinstance(self.sample, str)

    @property
    def distances(self) -> dict[str, Any]:
        """The keywords of another measure of the same distances."""
        return {"metric": self.metric, "metric_params": self.metric_params, "n_jobs": self.n_jobs}

    def part(self, X: Any, rows: np.ndarray) -> Any:
        """Some rows of checked data; of a matrix of distances those among them."""
        return X[np.ix_(rows, rows)] if self.metric == "precomputed" else X[rows]

    def draw(self, n: int, affordable: int) -> np.ndarray | None:
        """The rows to measure, ascending, of which "auto" takes ``affordable``; None for all n."""
        size = int(affordable if self.automatic else n if self.sample is None else self.sample)
        return None if size >= n else np.sort(self.rng.choice(n, size, replace=False))

    def work(self, X: Any) -> Work:
        """What measures of checked data cost."""
        if isinstance(X, NeighborGraph):
            return Work.of_graph(len(X), self.map_seconds)
        return Work.of(X, self.metric, self.map_seconds)

    def view(self, X: Any, argument: str = "X") -> View:
        """A view of a single table from as many of its rows as a neighborhood measure takes."""
        X = self.checked(X, argument)
        work = self.work(X)
        return self.view_from(X, self.draw(work.n, work.neighborhoods()))

    def view_from(self, X: Any, rows: np.ndarray | None) -> View:
        """A view of checked data, or of a neighbor graph, from given rows."""
        if isinstance(X, NeighborGraph):
            return GraphView(X, rows, self.threads)
        kept = KEPT_BYTES
        if self.sample is not None and not self.automatic:
            kept = int(KEPT_SHARE * available_memory())
        return View(X, rows, self.metric, self.metric_params, self.threads, kept)

    @contextlib.contextmanager
    def working(self) -> Iterator[Monitor]:
        """A monitor for one computation; BLAS uses one thread in it."""
        with limit_blas(1), Monitor("metrics", verbose=self.verbose) as monitor:
            yield monitor


def check_neighbors(
    n_neighbors: int | Sequence[int] | np.ndarray, most: int, n: int, why: str = ""
) -> list[int]:
    """Numbers of neighbors, each from 1 to ``most``, as a list."""
    if isinstance(n_neighbors, np.ndarray):
        n_neighbors = n_neighbors.tolist()
    several = isinstance(n_neighbors, list | tuple | range)
    numbers: list[Any] = list(n_neighbors) if several else [n_neighbors]  # type: ignore[arg-type]
    if not numbers:
        raise ParameterError("n_neighbors=[] is empty; give one integer or a list of them.")
    for k in numbers:
        check_argument("n_neighbors", k, Integer(1))
        if most < 1:
            raise DataError(f"{n} rows are too few{why}; give more rows.")
        if k > most:
            raise ParameterError(
                f"n_neighbors={k} is too many for {n} rows{why}; expected 1 to {most}."
            )
    return [int(k) for k in numbers]

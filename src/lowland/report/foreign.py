"""A report about a map that any tool has made."""

from __future__ import annotations

import dataclasses
import datetime
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowland._base.errors import DataError
from lowland._base.validation import column_names, is_sparse
from lowland.metrics.quality_table import NOT_MEASURED, Measures, measure_map
from lowland.report.page import render
from lowland.report.summary import Card, Summary, Values
from lowland.trust import Trust, affordable_rows, trust
from lowland.trust.trusting import FEWEST_ROWS

MOST_CLASSES = 100


@dataclasses.dataclass(frozen=True, eq=False)
class ForeignMap:
    """A map that any tool has made, and the rows that it was made of, in the same order."""

    X: Any
    Y: np.ndarray
    classes: np.ndarray | None = None
    metric: Any = "euclidean"
    n_jobs: int | None = None
    title: str = "map"

    def score(self) -> Measures:
        """The measures of the map; none if it has very few rows."""
        rows = (self.X, self.Y)
        return measure_map(*rows, labels=self.classes, metric=self.metric, n_jobs=self.n_jobs)

    def trust(self, **how: Any) -> Trust:
        """Where the map can be believed; ``how`` are further arguments of ``trust``."""
        return trust(self.X, self.Y, metric=self.metric, n_jobs=self.n_jobs, **how)

    def entry(self, measures: Measures, judged: Trust | None) -> Any:
        """The entry of a summary for a map about whose making nothing is known."""
        card = dict.fromkeys(Card.__required_keys__, "")
        return {
            **dict.fromkeys(("seconds", "peak_bytes", "seed", "loss_history")),
            **{part: {} for part in ("parameters", "facts", "pictures")},
            "name": "map",
            "title": self.title,
            "coordinates": self.Y,
            "stopped_early": False,
            "card": {**card, "summary": "A map that was made elsewhere."},
            "quality": {} if measures.table is None else measures.table.to_dict(),
            "per_point": measures.per_point,
            "trust": judged,
        }


def make_report(
    X: Any,
    Y: Any,
    labels: Any = None,
    path: str | os.PathLike[str] | None = None,
    title: str | None = None,
    *,
    ids: Sequence[Any] | np.ndarray | None = None,
    color: str | None = None,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
) -> str:
    """Measure and judge a map that any tool has made, and write a report about it.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, d)
        The data as the other tool got them, scaled for example; with ``metric="precomputed"`` an
        n x n matrix of distances.
    Y : array or data frame of shape (n, q)
        The map: one row of coordinates for each row of X, in the same order.
    labels : array of shape (n,), mapping of str to such arrays, or data frame, optional
        Columns that can color the map. An array gets the name ``label``. The first one that looks
        like classes is also measured: whether the classes lie together.
    path : path, optional
        Where to write the page; an existing file is replaced.
    title : str, optional
        The title of the page.
    ids : sequence of n values, optional
        Names of the rows; by default their numbers.
    color : str, optional
        The label that colors the map at first; by default the first one.
    metric : str or callable, default="euclidean"
        Distance between rows of X.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    str
        The page as HTML.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> page = make_report(data.X, data.X[:, 2:], data.labels, title="petals of irises")
    >>> "petals of irises" in page
    True
    """
    from lowland import __version__

    Y = np.asarray(Y)
    if Y.ndim != 2 or Y.shape[0] != X.shape[0]:
        expected = f"X has {X.shape[0]} rows; a map has one row of coordinates for each"
        raise DataError(f"Y has shape {Y.shape}, but {expected} row of the data.")
    finite = np.isfinite(Y).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(f"Y holds NaN or infinity, first in row {row}; leave such rows out.")
    columns = label_columns(labels, len(Y))
    classes = next((values for values in columns.values() if is_class_column(values)), None)
    given = ForeignMap(X, Y, classes, metric, n_jobs)
    measures, judged = NOT_MEASURED, None
    try:
        measures = given.score()
    except (DataError, MemoryError) as error:  # the map itself is still of use
        warnings.warn(f"the map was not measured: {error}", stacklevel=2)
    try:
        if len(Y) >= FEWEST_ROWS:
            judged = given.trust(most_points=affordable_rows(X, metric))
    except (DataError, MemoryError) as error:
        warnings.warn(f"the points of the map were not judged: {error}", stacklevel=2)
    names = column_names(X)
    summary = Summary(
        title=title or f"a map of {len(Y)} rows",
        version=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command="lowland.report.make_report(X, Y)",
        input={
            "source": "data",
            "rows": len(Y),
            "columns": X.shape[1],
            "features": None if names is None else names.tolist(),
        },
        preparation=[],
        dropped_rows=[],
        ids=np.arange(len(Y)) if ids is None else ids,
        labels=columns,
        maps=[given.entry(measures, judged)],
        neighbors=None if judged is None else judged.neighbors,
        color=color or next(iter(columns), None),
        values=None if metric == "precomputed" else table_values(X),
    )
    page = render(summary)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8", newline="\n")
    return page


def table_values(X: Any) -> Values | None:
    """The numbers of the data for the viewer, which chooses columns and copies only those."""
    numbers = X if hasattr(X, "columns") or is_sparse(X) else np.asarray(X)
    if getattr(getattr(numbers, "dtype", None), "kind", "f") not in "biuf":
        return None
    names = column_names(X)
    if names is None:
        names = np.array([f"column {number}" for number in range(X.shape[1])], dtype=object)
    return {"names": names.tolist(), "numbers": numbers}


def label_columns(labels: Any, n: int) -> dict[str, np.ndarray]:
    """Labels by name, one value per row each."""
    if labels is None:
        return {}
    if hasattr(labels, "columns"):
        labels = {name: labels[name] for name in labels.columns}
    elif not isinstance(labels, Mapping):
        labels = {"label": labels}
    columns = {str(name): np.asarray(values) for name, values in labels.items()}
    for name, values in columns.items():
        if values.shape != (n,):
            wanted = f"the map has {n} rows; give one value per row"
            raise DataError(f"labels: {name!r} has shape {values.shape}, but {wanted}.")
    return columns


def is_class_column(values: np.ndarray) -> bool:
    """Whether labels look like classes: few different values, none missing, no fractions."""
    if values.dtype.kind == "f":
        return False
    listed = values.tolist()
    distinct = set(listed)
    if any(value is None or value != value for value in distinct):
        return False
    return 2 <= len(distinct) <= min(MOST_CLASSES, len(listed) // 2)

"""Keep the columns of a table that matter, as they are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.errors import PYTHON, DataError, ParameterError, Spelling
from lowland._base.html import SHOWN_ROWS, html_table
from lowland._base.options import takes_options
from lowland.tables import Table, staged_outputs, write_frame
from lowland.tables.options import SELECTING, TableOptions
from lowland.tables.preparing import read
from lowland.workflow.fitting import first_class
from lowland.workflow.options import FITTING, RunSettings
from lowland.workflow.summary import plain_value

WITH_TARGET, WITHOUT_TARGET = "mutual_information", "principal_variables"


class Selection(NamedTuple):
    """A table, the fitted selector, and the target it was fitted with."""

    table: Table
    selector: Any
    target: str | None
    seconds: float

    @property
    def frame(self) -> Any:
        """A polars data frame: the row id if the table has one, the kept columns, the labels."""
        import polars as pl

        kept = self.selector.get_support(indices=True)
        names = [_column_names(self.table)[i] for i in kept]
        if isinstance(self.table.features, pl.DataFrame):
            frame = self.table.features.select(names)
        else:
            values = self.table.features[:, kept]
            dense = values.toarray() if self.table.is_sparse else values
            frame = pl.from_numpy(np.ascontiguousarray(dense), schema=names, orient="row")
        ids = [] if self.table.ids.name == "row" else [self.table.ids]
        return pl.DataFrame([*ids, *frame.get_columns(), *self.table.labels.get_columns()])

    def ranked(self) -> list[dict[str, Any]]:
        """All columns, the best first."""
        names, selector, found = _column_names(self.table), self.selector, []
        for i in selector.ranking_.argsort():
            rank, score = int(selector.ranking_[i]), float(selector.scores_[i])
            kept = bool(selector.support_[i])
            found.append({"rank": rank, "column": names[i], "score": score, "kept": kept})
        return found

    def write(self, path: str | Path, *, force: bool = False, raw_text: bool = False) -> None:
        """Write :attr:`frame` as CSV or Parquet, by the suffix of the path.

        ``raw_text`` as in :meth:`MapResult.write`.
        """
        with staged_outputs([Path(path)], force=force) as [staged]:
            write_frame(self.frame, staged, raw_text=raw_text)

    def __repr__(self) -> str:
        kept, name = int(self.selector.support_.sum()), type(self.selector).__name__
        return f"Selection({kept} of {self.table.shape[1]} columns by {name})"

    def _repr_html_(self) -> str:
        """The ranking, for notebooks."""
        keys, rows = ("rank", "column", "score"), self.ranked()
        shown = [
            (*(row[key] for key in keys), "kept" if row["kept"] else "")
            for row in rows[: 2 * SHOWN_ROWS]
        ]
        return html_table((*keys, ""), shown, repr(self), left_out=len(rows) - len(shown))

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values that JSON can hold, with every column and parameter."""
        parameters = self.selector.get_params(deep=False).items()
        return {
            "input": self.table.source,
            "rows": self.table.shape[0],
            "columns": self.table.shape[1],
            "labels": self.table.labels.columns,
            "id": self.table.ids.name,
            "target": self.target,
            "method": registry.snake_case(type(self.selector).__name__),
            "parameters": {name: plain_value(value) for name, value in parameters},
            "kept": int(self.selector.support_.sum()),
            "ranking": self.ranked(),
            "seconds": self.seconds,
            "notes": list(self.table.notes),
        }


@takes_options(table=(TableOptions, SELECTING), settings=(RunSettings, FITTING))
def select_columns(
    data: Any,
    method: str | None = None,
    *,
    n_features: int | float | None = None,
    table: TableOptions,
    settings: RunSettings,
    **parameters: Any,
) -> Selection:
    """Rank the columns of a table and keep the best.

    Parameters
    ----------
    data : path, data frame, array or sparse matrix
        The table, as in :func:`make_map`.
    method : str, optional
        A selector; by default mutual information with a target, principal variables without.
    target : str or array of shape (n_rows,), optional
        The column that the kept columns are to tell about; by default a label of classes.
    n_features : int, float or None, default=None
        How many columns to keep, or which share; None leaves it to the selector.
    **parameters
        Parameters of the selector.

    Examples
    --------
    >>> select_columns("iris", n_features=2).frame.columns
    ['petal length (cm)', 'petal width (cm)', 'class']
    """
    found = read(data, table, allow_missing=False, allow_text=False)
    cls, target = choose_selector(method, table.target, found, PYTHON)
    selector = cls(n_features=n_features, **parameters, **settings.of_methods)
    return run_selection(found, selector, target)


def run_selection(table: Table, selector: Any, target: str | None) -> Selection:
    """Fit a selector to a table."""
    y = None if target is None else table.column(target).to_numpy()
    start = time.perf_counter()
    selector.fit(table.features, y)
    return Selection(table, selector, target, time.perf_counter() - start)


def choose_selector(
    method: str | None, target: str | None, table: Table, spelling: Spelling
) -> tuple[Any, str | None]:
    """The class of the selector, and the target if it needs one."""
    found = target or first_class(table) or next(iter(table.labels.columns), None)
    if method is None:
        method = WITHOUT_TARGET if found is None else WITH_TARGET
    cls = registry.get_selector(method)
    if not cls.needs_target:
        if target is not None:
            name = registry.snake_case(cls.__name__)
            raise ParameterError(
                f"{name} looks at no target; leave out {spelling.option('target', target)}."
            )
        return cls, None
    if found is None:
        raise DataError(
            f"{table.source}: has no column of labels, and {cls.__name__} needs a target; name "
            f"its column with {spelling.option('target')}."
        )
    return cls, found


def _column_names(table: Table) -> list[str]:
    """Names of the features; x0, x1, ... where they have none."""
    if table.feature_names is not None:
        return list(table.feature_names)
    prefix, taken = "x", {table.ids.name, *table.labels.columns}
    while taken & {f"{prefix}{i}" for i in range(table.shape[1])}:
        prefix += "_"
    return [f"{prefix}{i}" for i in range(table.shape[1])]

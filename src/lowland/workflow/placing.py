"""New rows in a map that was made before."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.chain import Chain, DomainStep, domain_model
from lowland._base.errors import DataError, count, listing
from lowland._base.html import html_lines
from lowland._base.models.codec import load
from lowland._base.monitor import Monitor
from lowland._base.options import takes_options
from lowland._base.rows.chunks import TASK_ROWS
from lowland._base.rows.parts import MANIFEST, Parts
from lowland.tables import Table, map_frame
from lowland.tables.in_memory import NAME
from lowland.tables.options import PLACING, TableOptions
from lowland.tables.preparing import read
from lowland.workflow._display import frame_html
from lowland.workflow.options import RunSettings

if TYPE_CHECKING:
    from lowland.workflow.streaming.roles import Columns, Looked


class PlacedRows(NamedTuple):
    """New rows, their coordinates in the map, and the seconds that placing them took."""

    table: Table
    coordinates: np.ndarray
    seconds: float
    method: str  # the class of the method that made the map

    @property
    def map(self) -> Any:
        """A polars data frame: id, coordinates and labels of each row."""
        return map_frame(self.table, self.coordinates)

    @property
    def notes(self) -> list[str]:
        """What happened to columns that a person may miss."""
        return notes_on(self.table)

    def to_dict(self) -> dict[str, Any]:
        """The result without the map, in plain values that JSON can hold."""
        table = self.table
        return {
            "input": table.source,
            "rows": table.shape[0],
            "columns": table.shape[1],
            "labels": table.labels.columns,
            "unused": list(table.unused),
            "id": table.ids.name,
            "method": registry.snake_case(self.method),
            "dimensions": self.coordinates.shape[1],
            "seconds": self.seconds,
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        rows, dimensions = self.coordinates.shape
        where = f"a map of {self.method} with {count(dimensions, 'dimension')}"
        return f"PlacedRows({count(rows, 'row')} in {where})"

    def _repr_html_(self) -> str:
        """The first rows of the map, for notebooks."""
        return frame_html(self.map, repr(self)) + (html_lines(self.notes) if self.notes else "")


class PlacedParts(NamedTuple):
    """The files of new rows in a map, and how they were made."""

    parts: Parts
    source: str
    columns: int
    labels: list[str]
    unused: list[str]
    id_name: str
    dimensions: int
    seconds: float
    method: str
    notes: list[str]
    engine: str

    def to_dict(self) -> dict[str, Any]:
        """The result without the map, in plain values that JSON can hold."""
        parts, found = self.parts, self._asdict()
        method = registry.snake_case(self.method)
        renamed = {"input": found.pop("source"), "id": found.pop("id_name")}
        return {
            **renamed,
            "rows": parts.n_rows,
            **found,
            "method": method,
            "parts": parts.summary(),
        }

    def __repr__(self) -> str:
        files, rows = count(len(self.parts.files), "file"), count(self.parts.n_rows, "row")
        where = f"a map of {self.method} with {count(self.dimensions, 'dimension')}"
        return f"PlacedParts({rows} in {where}, {files} in {self.parts.folder})"


def notes_on(table: Table) -> list[str]:
    """What happened to columns of a table that is placed, such as those that are not used."""
    if not table.unused:
        return list(table.notes)
    left = listing(list(table.unused), 4, quote=False)
    return [*table.notes, f"columns that were not in the fitted table are left out: {left}"]


@takes_options(table=(TableOptions, PLACING), settings=(RunSettings, ("n_jobs", "verbose")))
def place_rows(
    model: Any,
    data: Any,
    *,
    domain: int | str | None = None,
    table: TableOptions,
    settings: RunSettings,
) -> PlacedRows:
    """Place the rows of a table in a map that was made before.

    Columns are found by name, in any order, if the model has their names; else there must be as
    many as the model was fitted with.

    Parameters
    ----------
    model : path or fitted model
        A model file, or what :func:`lowland.load` returned.
    data : path, data frame, array or sparse matrix
        The new rows, as in :func:`make_map`.
    domain : int or str, optional
        For a model of several sets (:func:`align_tables`): the set that the rows belong to, by its
        name or its number from 0.

    Examples
    --------
    >>> from lowland.workflow import make_map, place_rows
    >>> made = make_map("iris", "pca")
    >>> place_rows(made.model, "iris").map.equals(made.map)
    True
    """
    return run_placement(model, data, table, settings, domain)


def run_placement(
    model: Any,
    data: Any,
    options: TableOptions,
    settings: RunSettings,
    domain: int | str | None = None,
) -> PlacedRows:
    """Read the rows as the model wants them, and place them."""
    model, method = model_for(model, settings, domain)
    table = read_for_model(model, data, options)
    if getattr(model, "feature_names_in_", None) is None:
        table = table.without_names()
    start = time.perf_counter()
    Y = model.transform(table.features)
    return PlacedRows(table, Y, time.perf_counter() - start, method)


def model_for(model: Any, settings: RunSettings, domain: int | str | None) -> tuple[Any, str]:
    """The model, loaded if a file is given, and the class of the method that made the map."""
    if isinstance(model, str | os.PathLike):
        model = load(model)
    model = domain_model(model, domain, settings.spelling.option("domain"))
    model.set_params(n_jobs=settings.n_jobs, verbose=settings.verbose)
    last = model.last if isinstance(model, Chain) else model
    return model, type(last.alignment if isinstance(last, DomainStep) else last).__name__


def read_for_model(model: Any, data: Any, options: TableOptions, name: str = NAME) -> Table:
    """The table with the columns of the model as features, or one with as many columns.

    The latter may have its own names, which the model does not have.
    """
    names = getattr(model, "feature_names_in_", None)
    first = model.steps[0] if isinstance(model, Chain) else model
    fills = getattr(first, "fill_", None) is not None
    precomputed = getattr(first, "metric", "") == "precomputed"
    allow_missing = fills or (precomputed and type(first).accepts_missing)
    codes = getattr(first, "missing_values", None)
    options = dataclasses.replace(options, missing_values=tuple(codes or ()))
    if names is not None:
        texts = list(getattr(first, "text_columns", ()))
        chosen = dataclasses.replace(options, columns=tuple(names))
        # a missing category is a category; the preparation refuses other missing values
        may_miss = allow_missing or bool(texts)
        table = read(data, chosen, allow_missing=may_miss, allow_text=bool(texts), name=name)
        return _with_texts(table, list(names)) if texts else table
    how: dict[str, Any] = {"allow_missing": allow_missing, "allow_text": False, "name": name}
    table = read(data, options, **how)
    if table.shape[1] < model.n_features_in_ and table.guesses:
        table = read(data, options, **how, guess=False)
    if table.shape[1] != model.n_features_in_:
        raise DataError(
            f"{table.source}: has {count(table.shape[1], 'column')} of numbers, but the model was "
            f"fitted with {model.n_features_in_}; {options.spelling.option('labels')} takes a "
            "column out."
        )
    return table


def _with_texts(table: Table, names: list[str]) -> Table:
    """The table with the columns of text that the model turns into numbers among its features."""
    import polars as pl

    known = {column.name: column for column in (table.ids, *table.labels.get_columns())}
    taken = {*(table.feature_names or ())}
    columns = [known[name] for name in names if name not in taken]
    features = table.features.hstack(columns) if table.shape[1] else pl.DataFrame(columns)
    return dataclasses.replace(table, features=features.select(names))


# New rows that are read in chunks.


def stream_placement(
    model: Any,
    paths: Sequence[str],
    folder: Path,
    options: TableOptions,
    settings: RunSettings,
    *,
    domain: int | str | None = None,
    force: bool = False,
) -> PlacedParts:
    """Place the rows of files, in chunks, and write them to part files in ``folder``."""
    from lowland.chunks.opening import open_rows
    from lowland.workflow.streaming.roles import Place, look_at, placed_rows

    model, method = model_for(model, dataclasses.replace(settings, verbose=False), domain)
    if force and not settings.resume and (folder / MANIFEST).exists():
        for part in (*folder.glob("part-*.parquet"), folder / MANIFEST):
            part.unlink()
    with settings.running():
        looked = look_at(open_rows(paths, frames=True, task_rows=TASK_ROWS), paths, options, 0)
        table = read_for_model(model, looked.frame, looked.options, looked.source)
        named = getattr(model, "feature_names_in_", None) is not None
        columns = _columns(model, table, looked)
        step = Place(columns, model, named=named)
        probe = step(looked.frame[:1])
        placed = placed_rows(looked, table, step, probe.shape[1], probe.dtype)
        start = time.perf_counter()
        monitor = Monitor(method, verbose=settings.verbose)
        with monitor:
            parts = placed.write(folder, resume=settings.resume, monitor=monitor)
    return PlacedParts(
        parts,
        looked.source,
        len(columns.names),
        table.labels.columns,
        list(table.unused),
        table.ids.name,
        probe.shape[1],
        time.perf_counter() - start,
        method,
        [*looked.notes, *notes_on(table)],
        settings.chunk_engine,
    )


def _columns(model: Any, table: Table, looked: Looked) -> Columns:
    """The columns that the model takes, by their names in the files."""
    from lowland.workflow.streaming.roles import Columns

    first = model.steps[0] if isinstance(model, Chain) else model
    known, names = tuple(getattr(first, "text_columns", ())), tuple(table.feature_names or ())
    if not names:
        raise DataError(f"{looked.source}: has no columns with names.")
    features = tuple(name for name in names if name not in known)
    texts = tuple(name for name in names if name in known)
    dates = tuple(getattr(first, "dates", None) or ())
    codes = tuple(getattr(first, "missing_values", None) or ())
    fills = getattr(first, "fill_", None) is not None or getattr(first, "allows_nan", False)
    advice = "the model was fitted without missing values; fill them, or drop these rows"
    missing, single = None if fills else advice, looked.is_single(features)
    return Columns(features, texts, dates, single, codes, missing, order=names)

"""New rows that are read in chunks, placed in a map that was made before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lowland._base.chain import Chain
from lowland._base.errors import DataError, count
from lowland._base.monitor import Monitor
from lowland._base.rows.chunks import TASK_ROWS
from lowland._base.rows.parts import MANIFEST, Parts
from lowland.chunks.opening import open_rows
from lowland.tables.options import TableOptions
from lowland.workflow.options import RunSettings
from lowland.workflow.placing import model_for, notes_on, read_for_model
from lowland.workflow.streaming.roles import Columns, Place, look_at, placed_rows


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

    def __repr__(self) -> str:
        files, rows = count(len(self.parts.files), "file"), count(self.parts.n_rows, "row")
        where = f"a map of {self.method} with {count(self.dimensions, 'dimension')}"
        return f"PlacedParts({rows} in {where}, {files} in {self.parts.folder})"


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
    model, method = model_for(model, options, settings.n_jobs, False, domain)
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
    of_files = [] if looked.files is None else [looked.files[1]]
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
        [*of_files, *notes_on(table)],
        settings.chunk_engine,
    )


def _columns(model: Any, table: Any, looked: Any) -> Columns:
    """The columns that the model takes, by their names in the files."""
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

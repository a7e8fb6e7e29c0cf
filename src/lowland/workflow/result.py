"""The result of a run: a map, the model that made it, how far to believe it, and its files."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland._base.rows.parts import Parts
from lowland.metrics.quality_table import Measures
from lowland.tables import check_free, map_frame, staged_outputs, write_frame
from lowland.tables.formats.h5ad_writing import map_key, plain, uns_params, write_h5ad
from lowland.tables.preparing import Prepared
from lowland.workflow._display import grouped, picture_html, sentences_html
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.fitting import Fit
from lowland.workflow.outputs import FittedResult, MapFiles, RunFolder, TemporaryFolder
from lowland.workflow.pictures.maps import picture_of
from lowland.workflow.pictures.methods import MethodPictures
from lowland.workflow.summary import fit_facts, map_entry, summarize, table_facts, variance_shares
from lowland.workflow.trusting import NOT_JUDGED, Judged, trust_frame

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def rows_of_source(prepared: Prepared, Y: np.ndarray) -> np.ndarray:
    """One row for each row that was read; NaN where a row was left out of the map."""
    places = prepared.table.source_rows
    if places is None:
        return Y
    everywhere = np.full((prepared.rows_read, Y.shape[1]), np.nan, Y.dtype)
    everywhere[places] = Y
    return everywhere


class Chunked(NamedTuple):
    """How rows were gone through that were read in chunks, and the files of their map."""

    engine: str
    n_rows: int
    parts: Parts
    temporary: TemporaryFolder | None = None  # that the parts are in, if any

    def shown(self, m: int) -> str:
        """Which rows a picture of m of them shows."""
        if m == self.n_rows:
            return f"{grouped(m)} rows"
        return f"a sample of {grouped(m)} of {grouped(self.n_rows)} rows"

    def moved(self, home: RunFolder) -> Chunked:
        """The same with the parts in another folder, which they are copied to."""
        parts = self.parts
        if parts.folder == home.parts:
            return self
        home.parts.mkdir(exist_ok=True)
        for path in sorted(parts.folder.iterdir()):
            shutil.copyfile(path, home.parts / path.name)
        files = tuple(home.parts / path.name for path in parts.files)
        return self._replace(parts=parts._replace(folder=home.parts, files=files), temporary=None)


class MapResult(FittedResult):
    """A map with everything that is known about it; :func:`make_map` returns one.

    Shown in a notebook as the picture and the quality table. Of a table that was read in chunks,
    ``map``, ``coordinates``, ``trust`` and the picture are those of a sample of rows, and ``parts``
    has the map of all rows.

    Attributes
    ----------
    map : polars.DataFrame
        One row per row of the data: its id, its coordinates and its labels, as in ``map.csv``.
    coordinates : ndarray of shape (n_rows, n_components)
        The coordinates alone.
    parts : Parts or None
        The Parquet files of the map of a table that was read in chunks: ``parts.files``, in the
        order of the rows. Until :meth:`write` puts them elsewhere, they are in a temporary folder,
        which is removed with this object. None if the table was read as a whole.
    n_rows : int
        Rows that have a place in the map.
    fitted_rows : int
        Rows that the method was fitted to.
    engine : str
        What went through the rows: "memory", "stream" or "dask".
    estimator : Reducer
        The fitted method.
    model : Reducer or Chain
        What places new rows: the estimator, after the preparation and the reduction by PCA where
        there were any. ``model.transform`` takes the columns of the original table.
    quality : Quality or None
        The quality table; None if the map was not measured or could not be.
    trust : lowland.trust.Trust or None
        Where the map can be believed, point by point and island by island; None if the map was not
        measured or could not be judged, such as one of fewer than 10 rows.
    log : list of str
        Every decision about the data, in order.
    dropped_rows : list
        Ids of the rows that were dropped because of missing values.
    color : str or None
        The column that colors the picture.
    stopped_early : bool
        Whether Ctrl-C stopped the optimization.
    seconds : dict
        Seconds by stage: reading, preparing, fitting, measuring, judging, checking, drawing,
        writing. A stage that has not run yet is left out.
    not_made : dict of str to str
        Parts that could not be made after the map was finished ("measures", "points", "check",
        "picture", "report", "trust", "model"), and why. The map itself is never lost.
    """

    def __init__(
        self,
        prepared: Prepared,
        fit: Fit,
        measures: Measures,
        *,
        judged: Judged = NOT_JUDGED,
        color: str | None,
        command: str,
        stages: Stages,
        keeper: OptionalStages | None = None,
        chunked: Chunked | None = None,
    ) -> None:
        self._prepared, self._fit, self._measures = prepared, fit, measures
        self._judged, self._chunked, self._command = judged, chunked, command
        self._stages, self._keeper = stages, keeper or OptionalStages()
        self._pictures = MethodPictures(prepared, fit, color, self._keeper)
        self.color, self.coordinates, self.fitted_rows = color, fit.Y, fit.n_fitted
        self.n_rows = len(fit.Y) if chunked is None else chunked.n_rows
        self.engine = "memory" if chunked is None else chunked.engine
        self.quality, self.trust = measures.table, judged.trust
        self.dropped_rows = list(prepared.dropped)

    @functools.cached_property
    def map(self) -> pl.DataFrame:
        return map_frame(self._prepared.table, self._fit.Y)

    @property
    def parts(self) -> Parts | None:
        return None if self._chunked is None else self._chunked.parts

    @property
    def log(self) -> list[str]:
        prepared = self._prepared
        return [*prepared.table.notes, *prepared.log, *prepared.cautions, *self._later_log()]

    def picture(self) -> Figure:
        """The map as a matplotlib figure; :func:`lowland.plot.save_figure` writes it."""
        with self._stages.timed("drawing"):
            rows = None if self._chunked is None else self._chunked.shown(len(self._fit.Y))
            return picture_of(self._prepared.table, self._fit, self.color, rows=rows)

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        file_format: str = "csv",
        report: bool = True,
        force: bool = False,
        raw_text: bool = False,
        into: str | None = None,
    ) -> MapFiles:
        """Write map, model, pictures and report into a folder in one step.

        If the map cannot be written, nothing is. If one of the others cannot be made, a warning
        states it, and the rest is written. The map of a table that was read in chunks is a folder
        ``map`` of Parquet files; for it, only ``report`` and ``force`` matter.

        Parameters
        ----------
        folder : path
            Made if there is none.
        file_format : {"csv", "parquet"}, default="csv"
            Format of the map.
        report : bool, default=True
            Whether to write the report.
        force : bool, default=False
            Whether existing files may be replaced.
        raw_text : bool, default=False
            Whether text that a spreadsheet would run as a formula is written to a CSV file as it
            is; by default it gets an apostrophe, which reading removes.
        into : {"obsm"}, optional
            Write a copy of the H5AD file, too, with the map; see :meth:`write_h5ad`.

        Returns
        -------
        MapFiles
            The paths that were written: ``map``, ``picture``, ``report``, ``model``, ``trust`` (a
            table with one row per point) and ``h5ad``; None for a file that was not. ``pictures``
            are those that only some methods have, such as the U-matrix of a self-organizing map.
        """
        if into not in (None, "obsm"):
            raise ParameterError(f"into={into!r} is not allowed; expected 'obsm' or None.")
        if self._chunked is not None:
            home = RunFolder(Path(folder), resume=False, force=force)
            home.check(report=report)
            home.folder.mkdir(parents=True, exist_ok=True)
            home.clear()
            self.save(home.model)
            self._chunked = self._chunked.moved(home)
            return self.write_files(home.files(report=report), force=force)
        source = self._prepared.table.source
        kinds = {"report": report, "trust": True, "copy_of": source if into else ""}
        files = MapFiles.in_folder(
            Path(folder), file_format=file_format, **kinds, pictures=self._pictures.names
        )
        check_free(files.paths(), force=force, sources=[source])
        return self.write_files(files, force=force, raw_text=raw_text)

    def write_files(
        self, files: MapFiles, *, force: bool = False, raw_text: bool = False
    ) -> MapFiles:
        """Write the given files, which lie in one folder; the result has those written.

        The model and the map of a table that was read in chunks are there already.
        """
        writers: dict[str, Callable[[Path], None]] = {
            "model": self.save,
            "picture": self._draw,
            "report": self.report,
            "h5ad": functools.partial(self._write_copy, force=force),
            "trust": functools.partial(self._write_trust, raw_text=raw_text),
        }
        if self._chunked is not None:
            del writers["model"]
        frames = {files.map: self.map} if self._chunked is None else {}
        how = {"force": force, "raw_text": raw_text}
        return self._write(files, frames, writers, self._pictures.write, **how)

    def _write_trust(self, path: Path, raw_text: bool) -> None:
        if self.trust is not None:
            with self._stages.timed("writing"):
                write_frame(trust_frame(self._prepared.table, self.trust), path, raw_text=raw_text)

    def _write_copy(self, path: Path, *, force: bool) -> None:
        """Write the H5AD file that the map was made of, with the map, to a path that is free."""
        source, (name, Y, params) = self._prepared.table.source, self._for_anndata()
        if not Path(source).exists():
            raise DataError(
                f"{source}: the map was not made of a file, so there is none to copy; "
                "result.add_to(adata) adds it to an AnnData object."
            )
        write_h5ad(source, path, name, Y, params, force=force)

    def _for_anndata(self) -> tuple[str, np.ndarray, dict[str, Any]]:
        """The method, its map of all rows that were read, and how the map was made."""
        from lowland import __version__

        found, table = self.to_dict(), self._prepared.table
        Y = rows_of_source(self._prepared, self.coordinates)
        return found["method"], Y, uns_params(found, __version__, table.part)

    def _later_log(self) -> list[str]:
        """What was decided after the preparation, and what could not be made."""
        judged = self._judged if "points" not in self._keeper.lost else NOT_JUDGED
        return [*self._fit.log, *judged.lines(), *self._keeper.log()]

    def write_h5ad(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a copy of the H5AD file that the map was made of, with the map in it.

        ``obsm["X_<method>"]`` holds the coordinates, with NaN for rows that were dropped, and
        ``uns["<method>"]["params"]`` records how they were made. Nothing else is changed.

        Parameters
        ----------
        path : path
            Where the copy goes.
        force : bool, default=False
            Whether an existing file, and an older map of this method, may be replaced.
        """
        target = Path(path)
        check_free([target], force=force, sources=[self._prepared.table.source])
        with staged_outputs([target], force=force) as [staged]:
            self._write_copy(staged, force=force)

    def add_to(self, adata: Any, *, force: bool = False) -> None:
        """Add the map to an AnnData object in memory, as :meth:`write_h5ad` does to a file."""
        name, Y, params = self._for_anndata()
        if not (hasattr(adata, "obsm") and hasattr(adata, "uns")):
            raise DataError(f"{type(adata).__name__} has no obsm and uns; give an AnnData object.")
        if len(adata) != len(Y):
            raise DataError(f"the AnnData has {len(adata)} rows, but the map was made of {len(Y)}.")
        key = map_key(name)
        taken = [f"obsm[{key!r}]"] if key in adata.obsm else []
        taken += [f"uns[{name!r}]"] if name in adata.uns else []
        if taken and not force:
            raise DataError(
                f"the AnnData has {' and '.join(taken)} already; replace it with force=True."
            )
        adata.obsm[key] = Y.copy() if Y is self.coordinates else Y
        adata.uns[name] = {"params": plain(params)}

    def summary(self) -> Any:
        """The dictionary that the report is made of."""
        entry = map_entry(self._fit, self._measures, self.trust)
        if self._pictures:
            with self._stages.timed("drawing"):
                entry["pictures"] = self._pictures.for_report()
        found = summarize(self._prepared, [entry], self._later_log(), self._command, self.color)
        if self._chunked is not None:
            source = Path(self._prepared.table.source).name
            found["title"] = f"{source}: {entry['title']} of {grouped(self.n_rows)} rows"
            found["input"]["rows"] = self.n_rows
            found["streamed"] = {
                "engine": self.engine,
                "rows": self.n_rows,
                "fitted": self.fitted_rows,
                "shown": len(self._fit.Y),
                "parts": len(self._chunked.parts.files),
            }
        return found

    def to_dict(self) -> dict[str, Any]:
        """The result without the map, in plain values that JSON can hold."""
        table, fit = self._prepared.table, self._fit
        found = {
            **table_facts(table),
            **fit_facts(fit, self.seconds),
            "color": self.color,
            "preparation": [*self._prepared.log, *self._later_log()],
            "dropped_rows": self._prepared.dropped,
            "learned_from": fit.learned_from,
            "explained_variance_ratio": variance_shares(fit.estimator),
            "quality": None if self.quality is None else self.quality.to_dict(),
            "trust": None if self.trust is None else self.trust.to_dict(),
            "not_judged": self._judged.reason or None,
            "notes": [*table.notes, *self._prepared.cautions],
            "not_made": self.not_made,
        }
        if self._chunked is None:
            return found
        parts = self._chunked.parts
        return {
            **found,
            "rows": self.n_rows,
            "stages": {"placing": 0.0, **self.seconds},
            "engine": self.engine,
            "fitted_rows": self.fitted_rows,
            "placed_rows": parts.n_rows,
            "shown_rows": len(fit.Y),
            "parts": parts.summary(),
        }

    def __repr__(self) -> str:
        dimensions = self._fit.Y.shape[1]
        text = f"{type(self.estimator).__name__} of {self.n_rows} rows, {dimensions} dimensions"
        if self.quality is not None and "trustworthiness" in self.quality.to_dict():
            text += f", trustworthiness {self.quality['trustworthiness'].value:.3f}"
        return f"MapResult({text})"

    def _repr_html_(self) -> str:
        """The picture, where it can be believed, and the quality table, for notebooks."""
        figure = self.picture()
        with self._stages.timed("drawing"):
            shown = picture_html(figure, repr(self))
        shown += "" if self.trust is None else sentences_html(self.trust)
        return shown + ("" if self.quality is None else self.quality._repr_html_())

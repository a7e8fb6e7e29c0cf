"""The result of a run over rows that were read in chunks."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.errors import DataError, LowlandError
from lowland._base.models.codec import load
from lowland._base.rows.parts import MANIFEST, Parts
from lowland.tables import staged_outputs
from lowland.tables.preparing import Prepared
from lowland.workflow._stages import OptionalStages, Stages
from lowland.workflow.fitting import Fit
from lowland.workflow.outputs import MapFiles
from lowland.workflow.pictures.maps import picture_of
from lowland.workflow.result import MapResult
from lowland.workflow.streaming.choosing import grouped
from lowland.workflow.trusting import NOT_JUDGED, Judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lowland.metrics.quality import Measures

# A fitted model that is saved before rows are placed, so that a run can go on where it stopped.


MODEL, RUN, PARTS, PLACED = "model.lowland", "run.json", "map", "placed"
PICTURE, REPORT = "map.png", "report.html"


def run_identity(facts: Mapping[str, Any]) -> str:
    """A name for a run: what decides about its bytes."""
    from lowland import __version__

    text = json.dumps({**facts, "lowland": __version__}, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


class Room:
    """A temporary folder that is removed with this object."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lowland-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


class Home:
    """The folder of a run: the model, what is known about its fit, and the parts of the map."""

    def __init__(self, folder: Path, *, resume: bool, force: bool) -> None:
        self.folder, self.resume, self.force = folder, resume, force

    @property
    def model(self) -> Path:
        return self.folder / MODEL

    @property
    def parts(self) -> Path:
        return self.folder / PARTS

    @property
    def placed(self) -> Path:
        """Where parts wait that steps on all rows will move."""
        return self.folder / PLACED

    @property
    def begun(self) -> Path:
        """The file that is there once the model of a run was saved."""
        return self.folder / RUN

    def check(self, *, report: bool = True) -> None:
        """Refuse results that are there, unless they may be replaced or the run goes on."""
        if self.resume or self.force:
            return
        names = [MODEL, RUN, PARTS, PICTURE, *([REPORT] if report else [])]
        there = next((name for name in names if (self.folder / name).exists()), None)
        if there is not None:
            raise DataError(
                f"{self.folder / there}: exists already; overwrite it with force=True (--force), "
                "or go on with a run that was stopped with --resume."
            )

    def clear(self) -> None:
        """Remove the model and the parts of an older run, which may be replaced."""
        if self.resume or not self.force:
            return
        for path in (self.begun, self.model):
            path.unlink(missing_ok=True)
        for folder in (self.parts, self.placed):
            for part in (*folder.glob("part-*.parquet"), folder / MANIFEST):
                part.unlink(missing_ok=True)

    def saved(self, identity: str) -> tuple[Any, dict[str, Any]] | None:
        """The model of this run and what is known about its fit; None if it was not saved yet."""
        path = self.begun
        if not self.resume or not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            same, facts = found["identity"] == identity, dict(found["fit"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: cannot be read; choose another folder.") from error
        if not same:
            raise DataError(
                f"{self.folder}: holds another run (other files, options, seed or version); "
                "choose another folder, or start anew with --force instead of --resume."
            )
        try:
            return load(self.model), facts
        except (OSError, LowlandError) as error:
            raise DataError(f"{self.model}: cannot be read ({error}); start anew.") from error

    def save(self, model: Any, identity: str, facts: Mapping[str, Any]) -> Any:
        """Save the model; the result is the model as a later run would load it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.clear()
        unfinished = self.folder / f".{MODEL}-{uuid.uuid4().hex[:12]}.part"
        try:
            model.save(unfinished)
            os.replace(unfinished, self.model)
            unfinished.write_text(
                json.dumps({"identity": identity, "fit": dict(facts)}, indent=1), encoding="utf-8"
            )
            os.replace(unfinished, self.begun)
        finally:
            unfinished.unlink(missing_ok=True)
        return load(self.model)


class StreamFacts(NamedTuple):
    """How the rows were gone through."""

    engine: str
    rows: int
    fitted_rows: int
    shown_rows: int  # in the picture and the report
    parts: Parts
    room: Room | None = None  # the temporary folder that the parts are in, if any

    @property
    def shows_all(self) -> bool:
        return self.shown_rows == self.rows

    def said(self) -> str:
        """Which rows a picture shows."""
        if self.shows_all:
            return f"{grouped(self.rows)} rows"
        return f"a sample of {grouped(self.shown_rows)} of {grouped(self.rows)} rows"


class StreamedMap(MapResult):
    """A map of a table that was read in chunks, made by :func:`make_map`.

    ``map``, ``coordinates``, ``trust`` and the picture are those of a sample of rows; ``parts`` has
    the files with the coordinates of all rows. ``trust`` is not written as a table. ``model``,
    ``estimator``, ``quality`` and ``log`` are as in :class:`MapResult`.

    Attributes
    ----------
    parts : Parts
        The Parquet files of the map: ``parts.files``, in the order of the rows. Until
        :meth:`write` puts them elsewhere, they are in a temporary folder, which is removed with
        this object.
    n_rows : int
        Rows of the table, all of which are placed.
    fitted_rows : int
        Rows that the method was fitted to.
    engine : str
        What went through the rows: "stream" or "dask".
    """

    def __init__(
        self,
        prepared: Prepared,
        fit: Fit,
        measures: Measures,
        *,
        judged: Judged = NOT_JUDGED,
        facts: StreamFacts,
        color: str | None,
        command: str,
        stages: Stages,
        keeper: OptionalStages | None = None,
    ) -> None:
        super().__init__(
            *(prepared, fit, measures),
            judged=judged,
            color=color,
            command=command,
            stages=stages,
            keeper=keeper,
        )
        self._facts = facts

    @property
    def parts(self) -> Parts:
        return self._facts.parts

    @property
    def n_rows(self) -> int:
        return self._facts.rows

    @property
    def fitted_rows(self) -> int:
        return self._facts.fitted_rows

    @property
    def engine(self) -> str:
        return self._facts.engine

    def picture(self) -> Figure:
        with self._stages.timed("drawing"):
            said = self._facts.said()
            return picture_of(self._prepared.table, self._fit, self.color, rows=said)

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        file_format: str = "parquet",
        report: bool = True,
        force: bool = False,
        raw_text: bool = False,
        into: str | None = None,
    ) -> MapFiles:
        """Write the model, the parts of the map, the picture and the report into a folder.

        The parts go into its folder ``map``, as Parquet files, whatever ``file_format`` is for
        other maps; ``raw_text`` and ``into`` have no meaning here.
        """
        home = Home(Path(folder), resume=False, force=force)
        home.check(report=report)
        home.folder.mkdir(parents=True, exist_ok=True)
        home.clear()
        self.save(home.model)
        if self.parts.folder != home.parts:
            home.parts.mkdir(exist_ok=True)
            for path in sorted(self.parts.folder.iterdir()):
                shutil.copyfile(path, home.parts / path.name)
            moved = tuple(home.parts / path.name for path in self.parts.files)
            parts = self.parts._replace(folder=home.parts, files=moved)
            self._facts = self._facts._replace(parts=parts, room=None)
        return self.write_files(self.files_in(home.folder, report=report), force=force)

    @staticmethod
    def files_in(folder: Path, *, report: bool = True) -> MapFiles:
        """The files of such a map in a folder."""
        page = folder / REPORT if report else None
        return MapFiles(folder / PARTS, folder / PICTURE, page, folder / MODEL)

    def write_files(
        self, files: MapFiles, *, force: bool = False, raw_text: bool = False
    ) -> MapFiles:
        """Draw the picture and write the report; the model and the map are there already."""
        writers: dict[str, tuple[Path | None, Callable[[Path], None]]] = {
            "picture": (files.picture, self._draw),
            "report": (files.report, self.report),
        }
        wanted = {kind: path for kind, (path, _) in writers.items() if path is not None}
        paths = list(wanted.values())
        with (
            self._keeper.left_out_after_interrupt(),
            staged_outputs(paths, force=force, optional=paths) as staged,
        ):
            for (kind, _), place in zip(wanted.items(), staged, strict=True):
                work = functools.partial(writers[kind][1], place)
                self._keeper.attempt(kind, work, None, path=place)
        return files.without(self._keeper.lost)

    def summary(self) -> Any:
        found, facts = super().summary(), self._facts
        method = found["maps"][0]["title"]
        source = Path(self._prepared.table.source).name
        found["title"] = f"{source}: {method} of {grouped(facts.rows)} rows"
        found["input"]["rows"] = facts.rows
        found["streamed"] = {
            "engine": facts.engine,
            "rows": facts.rows,
            "fitted": facts.fitted_rows,
            "shown": facts.shown_rows,
            "parts": len(facts.parts.files),
        }
        return found

    def to_dict(self) -> dict[str, Any]:
        facts, parts = self._facts, self.parts
        return {
            **super().to_dict(),
            "rows": facts.rows,
            "stages": {"placing": 0.0, **self.seconds},
            "engine": facts.engine,
            "fitted_rows": facts.fitted_rows,
            "placed_rows": parts.n_rows,
            "shown_rows": facts.shown_rows,
            "parts": {
                "folder": str(parts.folder),
                "files": len(parts.files),
                "kept": parts.n_kept,
            },
        }

    def __repr__(self) -> str:
        shown, placed = (f"of {n} rows" for n in (self._fit.Y.shape[0], self.n_rows))
        return super().__repr__().replace("MapResult", "StreamedMap").replace(shown, placed, 1)

"""The files of a run: their names, and the folder they go to."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.errors import DataError, LowlandError
from lowland._base.models.codec import load
from lowland._base.rows.parts import MANIFEST, whole_file
from lowland.tables import check_suffix, staged_outputs, write_frame
from lowland.workflow._stages import OptionalStages, Stages

if TYPE_CHECKING:
    from os import PathLike

    import polars as pl
    from matplotlib.figure import Figure

    from lowland.workflow.fitting import Fit

MODEL, PICTURE, REPORT = "model.lowland", "map.png", "report.html"


class MapFiles(NamedTuple):
    """The files of one map; None for those that were not asked for or could not be made."""

    map: Path
    picture: Path | None
    report: Path | None
    model: Path | None
    h5ad: Path | None = None
    trust: Path | None = None
    pictures: tuple[Path, ...] = ()  # of the method, beside that of the map

    @classmethod
    def in_folder(
        cls,
        folder: Path,
        *,
        file_format: str = "csv",
        report: bool = True,
        trust: bool = False,
        copy_of: str = "",
        pictures: Iterable[str] = (),
    ) -> MapFiles:
        """All files of a map in one folder; the format of the map is "csv" or "parquet".

        ``trust`` states whether there may be a table of the points, in the same format.
        ``copy_of`` names the H5AD file that a copy is made of, if any, and ``pictures`` those that
        the method may have (:func:`lowland.workflow.pictures.methods.picture_names`).
        """
        return cls(
            folder / f"map.{file_format}",
            folder / PICTURE,
            folder / REPORT if report else None,
            folder / MODEL,
            folder / f"{result_stem(copy_of)}.h5ad" if copy_of else None,
            folder / f"trust.{file_format}" if trust else None,
            tuple(folder / f"{name}.png" for name in pictures),
        )

    def without(self, kinds: Iterable[str]) -> MapFiles:
        """The same files without some kinds, or some pictures by their names."""
        kinds = set(kinds)
        left: dict[str, Any] = dict.fromkeys(kinds & {*self._fields})
        kept = tuple(path for path in self.pictures if path.stem not in kinds)
        return self._replace(**left | {"pictures": kept})

    def paths(self) -> list[Path]:
        """The files that will be written."""
        return [*self._single().values(), *self.pictures]

    def named(self) -> dict[str, str]:
        """The paths as text, by kind; pictures of the method by their names."""
        more = {path.stem: path for path in self.pictures}
        return {kind: str(path) for kind, path in {**self._single(), **more}.items()}

    def _single(self) -> dict[str, Path]:
        found = self._asdict()
        del found["pictures"]
        return {kind: path for kind, path in found.items() if path is not None}


def result_folder(source: str | Sequence[str], ending: str) -> Path:
    """The default folder of a run: ``lowland-out/cells-tsne`` for ``cells.csv`` and ``tsne``."""
    return Path("lowland-out") / f"{result_stem(source)}-{ending}"


def result_stem(source: str | Sequence[str]) -> str:
    """The name of the input without folders and suffixes: ``a/cells.csv.gz`` is ``cells``.

    >>> result_stem(["a/cells.csv.gz", "b.csv", "c.csv"])
    'cells-and-2-more'
    """
    if not isinstance(source, str):
        more = f"-and-{len(source) - 1}-more" if len(source) > 1 else ""
        return f"{result_stem(source[0])}{more}"
    if source == "-":
        return "stdin"
    path = Path(source)
    name = path.resolve().name if path.name in ("", ".", "..") else path.name
    stem = name.removesuffix(".gz")
    return Path(stem).stem or stem


# The files of a map, written as a whole: the map or nothing, the others where they can be made.


class RunResult:
    """What results of runs share: what could not be made, a picture and a report."""

    _stages: Stages
    _keeper: OptionalStages

    @property
    def not_made(self) -> dict[str, str]:
        return dict(self._keeper.lost)

    def picture(self) -> Figure:
        """The map as a matplotlib figure; :func:`lowland.plot.save_figure` writes it."""
        raise NotImplementedError

    def summary(self) -> Any:
        """The dictionary that the report is made of."""
        raise NotImplementedError

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report, one HTML file; an existing file is replaced."""
        from lowland.report import write_report

        summary = self.summary()
        with self._stages.timed("writing"):
            write_report(summary, path)

    def _draw(self, path: Path) -> None:
        from lowland.plot import save_figure

        figure = self.picture()
        with self._stages.timed("drawing"):
            save_figure(figure, path)

    def _write(
        self,
        files: Any,
        frames: Mapping[Path, pl.DataFrame],
        writers: Mapping[str, Callable[[Path], None]],
        draw: Callable[[str, Path], None] | None = None,
        *,
        force: bool,
        raw_text: bool,
    ) -> Any:
        """Write the given files, which lie in one folder; the result has those written.

        Either all ``frames`` are written or nothing is. ``writers`` write the other files, by
        kind, or leave them out; ``draw`` a picture by its name, before the report, which shows it,
        too.
        """
        keeper, timed = self._keeper, self._stages.timed
        for kind in writers:
            keeper.lost.pop(kind, None)  # of an earlier attempt
        planned = {kind: path for kind in writers if (path := getattr(files, kind)) is not None}
        pictures = [] if draw is None else files.pictures
        optional = [*pictures, *planned.values()]
        for path in frames:
            check_suffix(path)
        with (
            keeper.left_out_after_interrupt(),
            staged_outputs([*frames, *optional], force=force, optional=optional) as staged,
        ):
            by_name = {path.name: path for path in staged}
            for path, frame in frames.items():
                with timed("writing"):
                    write_frame(frame, by_name[path.name], raw_text=raw_text)
            for more in pictures:
                with timed("drawing"):
                    draw(more.stem, by_name[more.name])  # type: ignore[misc]
            for kind, path in planned.items():
                place = by_name[path.name]
                work = functools.partial(writers[kind], place)
                keeper.attempt(kind, work, None, path=place, interruptible=kind != "model")
            absent = [path.stem for path in pictures if not by_name[path.name].exists()]
            absent += [kind for kind, path in planned.items() if not by_name[path.name].exists()]
        return files.without([*keeper.lost, *absent])


class FittedResult(RunResult):
    """The result of a run that fits one method."""

    _fit: Fit

    @property
    def estimator(self) -> Any:
        return self._fit.estimator

    @property
    def model(self) -> Any:
        return self._fit.model

    @property
    def stopped_early(self) -> bool:
        return self._fit.stopped

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage."""
        return self._stages.seconds

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model; :func:`lowland.load` reads it."""
        with self._stages.timed("writing"):
            self.model.save(path)


# The folder of a map whose rows are read in chunks.


RUN, PARTS, PLACED = "run.json", "map", "placed"


def run_identity(facts: Mapping[str, Any]) -> str:
    """A name for a run: what decides about its bytes."""
    from lowland import __version__

    text = json.dumps({**facts, "lowland": __version__}, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


class TemporaryFolder:
    """A temporary folder that is removed with this object, without a warning that it was left."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lowland-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


class RunFolder:
    """The folder of a run in chunks: the model, what is known about its fit, and the map.

    The model is saved before rows are placed, so that a run can go on where it stopped.
    """

    def __init__(self, folder: Path, *, resume: bool, force: bool) -> None:
        self.folder, self.resume, self.force = folder, resume, force
        self.model, self.parts = folder / MODEL, folder / PARTS
        self.placed = folder / PLACED  # where parts wait that steps on all rows will move
        self.begun = folder / RUN  # the file that is there once the model of a run was saved

    def files(self, *, report: bool = True) -> MapFiles:
        """The files of such a map."""
        page = self.folder / REPORT if report else None
        return MapFiles(self.parts, self.folder / PICTURE, page, self.model)

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
        if not self.resume or not self.begun.exists():
            return None
        try:
            found = json.loads(self.begun.read_text(encoding="utf-8"))
            same, facts = found["identity"] == identity, dict(found["fit"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.begun}: cannot be read; choose another folder.") from error
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
        with whole_file(self.model) as unfinished:
            model.save(unfinished)
        about = json.dumps({"identity": identity, "fit": dict(facts)}, indent=1)
        with whole_file(self.begun) as unfinished:
            unfinished.write_text(about, encoding="utf-8")
        return load(self.model)

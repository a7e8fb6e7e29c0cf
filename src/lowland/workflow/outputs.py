"""The files of a run: their names, and the folder they go to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland.tables import check_suffix, staged_outputs, write_frame
from lowland.workflow._stages import OptionalStages, Stages

if TYPE_CHECKING:
    import polars as pl


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

        ``trust`` says whether there may be a table about the points, in the same format.
        ``copy_of`` names the H5AD file that a copy is made of, if any, and ``pictures`` those that
        the method may have (:func:`lowland.workflow.pictures.methods.picture_names`).
        """
        return cls(
            folder / f"map.{file_format}",
            folder / "map.png",
            folder / "report.html" if report else None,
            folder / "model.lowland",
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


class Writing(NamedTuple):
    """How files are written, and who is told of those that could not be."""

    keeper: OptionalStages
    stages: Stages
    force: bool
    raw_text: bool

    def write(
        self,
        files: MapFiles,
        frame: pl.DataFrame,
        writers: Mapping[str, Callable[[Path], None]],
        draw: Callable[[str, Path], None],
    ) -> MapFiles:
        """Write the given files, which lie in one folder; the result has those written.

        ``writers`` write the files beside the map, by kind, or leave them out; ``draw`` a picture
        by its name, before the report, which shows it, too.
        """
        check_suffix(files.map)
        keeper = self.keeper
        for kind in writers:
            keeper.lost.pop(kind, None)  # of an earlier attempt
        paths = files.paths()
        with (
            keeper.left_out_after_interrupt(),
            staged_outputs(paths, force=self.force, optional=paths[1:]) as staged,
        ):
            by_name = {path.name: path for path in staged}
            with self.stages.timed("writing"):
                write_frame(frame, by_name[files.map.name], raw_text=self.raw_text)
            for more in files.pictures:
                with self.stages.timed("drawing"):
                    draw(more.stem, by_name[more.name])
            for kind, write in writers.items():
                path: Path | None = getattr(files, kind)
                if path is not None:
                    place = by_name[path.name]
                    work = functools.partial(write, place)
                    keeper.attempt(kind, work, None, path=place, interruptible=kind != "model")
            absent = [path.stem for path in files.pictures if not by_name[path.name].exists()]
            planned = {kind: getattr(files, kind) for kind in writers}
            absent += [
                kind
                for kind, path in planned.items()
                if path is not None and not by_name[path.name].exists()
            ]
        return files.without([*keeper.lost, *absent])

"""The files of a map, written as a whole: the map or nothing, the others where they can be made."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lowland.io import check_suffix, staged_outputs, write_frame
from lowland.study._keeping import Keeper
from lowland.study._stages import Stages
from lowland.study.outputs import MapFiles

if TYPE_CHECKING:
    import polars as pl


class Writing(NamedTuple):
    """How files are written, and who is told of those that could not be."""

    keeper: Keeper
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
            keeper.patience(),
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
                    keeper.attempt(kind, work, None, path=place, patient=kind == "model")
            absent = [path.stem for path in files.pictures if not by_name[path.name].exists()]
            planned = {kind: getattr(files, kind) for kind in writers}
            absent += [
                kind
                for kind, path in planned.items()
                if path is not None and not by_name[path.name].exists()
            ]
        return files.without([*keeper.lost, *absent])

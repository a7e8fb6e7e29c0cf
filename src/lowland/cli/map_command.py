"""``lowland map``: from a table to a map, a picture, a report and a model."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from lowland._base.constraints import Choice, read_value
from lowland._base.errors import ParameterError, count
from lowland._base.interrupts import KEPT
from lowland.cli import options
from lowland.cli.console import beside, file_lines, preparation_lines, trust_lines
from lowland.cli.failures import noted
from lowland.cli.options import Frame, framed, valued
from lowland.tables.options import TABLE
from lowland.workflow._parameters import DEFAULT_METHOD
from lowland.workflow.options import MAKING

if TYPE_CHECKING:
    from lowland.workflow import MapResult
    from lowland.workflow.outputs import MapFiles

Method = valued("--method -m METHOD", "See 'lowland methods'.", default=True)
Into = valued(
    "--into obsm",
    "Write a copy of an H5AD file, too, with the map in obsm['X_METHOD'].",
    group="output",
)


@framed("force", "raw_text", table=TABLE, settings=(*MAKING, "refine", "resume"))
def map_command(
    frame: Frame,
    sources: options.Inputs,
    method: Method = DEFAULT_METHOD,
    output: options.ResultFolder = None,
    file_format: options.Format = None,
    into: Into = None,
) -> int:
    """Reduce a table to a map: coordinates, a picture, a report on how far to trust it, and a model
    that places new rows.

    Columns of numbers are reduced; columns of text and dates are labels and are kept with the map.
    A table larger than memory is read in chunks. Its map is a folder of Parquet files.

    The lines marked ok, caution or serious state where the map is reliable; trust.csv states it for
    each point.

    Every parameter of the method is an option too, such as --perplexity 50:
    'lowland methods METHOD' lists them.
    """
    from lowland._base import registry
    from lowland.tables.formats.h5ad_writing import check_h5ad_target
    from lowland.workflow.making import choose, make_by_choice
    from lowland.workflow.outputs import MapFiles, RunFolder, result_folder
    from lowland.workflow.pictures.methods import picture_names

    cls = registry.get(method)
    name = registry.snake_case(cls.__name__)
    copied = sources[0] if into and read_value("--into", Choice("obsm"), into) else ""
    folder, measured = output or result_folder(sources, name), frame.settings.measure
    planned = MapFiles.in_folder(
        folder,
        file_format=options.map_format(file_format, sources[0]),
        report=measured,
        trust=measured,
        copy_of=copied,
        pictures=picture_names(cls),
    )
    run, resume = frame.run, frame.settings.resume
    home = RunFolder(folder, resume=resume, force=frame.force)
    choice = choose(frame.data, cls, run)
    if choice.streamed:
        refuse_for_parts(file_format, into)
        home.check(report=measured)
        frame.check_folder(folder, [])
    else:
        frame.check_folder(folder, planned.paths())
    if copied:
        if len(sources) > 1:
            raise ParameterError(f"--into: {len(sources)} files were given; give one H5AD file.")
        if frame.table.transpose:
            raise ParameterError(
                "--into: the rows of the map are the columns of the file; leave --transpose out."
            )
        check_h5ad_target(copied, name, force=frame.force)
    with noted(KEPT, home.begun):
        result = make_by_choice(choice, frame.data, cls, frame.parameters, run, home)
        if result.parts is not None:
            planned = home.files(report=measured)
        force = frame.force or resume
        files = result.write_files(planned, force=force, raw_text=frame.raw_text)
    return frame.end(result, files, functools.partial(lines, check=frame.settings.check))


def refuse_for_parts(file_format: str | None, into: str | None) -> None:
    """Refuse options about a map in one file, where the map is a folder of parts."""
    if file_format not in (None, "parquet") or into is not None:
        option = "--into" if into is not None else "--format"
        raise ParameterError(
            f"{option}: rows are read in chunks, and their map is a folder of Parquet files; "
            f"leave {option} out."
        )


def lines(result: MapResult, files: MapFiles, check: bool) -> list[str]:
    """A short summary for a person."""
    found = result.to_dict()
    made = [f"{count(found['dimensions'], 'dimension')} in {found['seconds']:.2f} s"]
    shares = found["explained_variance_ratio"]
    if shares is not None:
        which = " between classes" if result.estimator.needs_target else ""
        made.append(f"{sum(shares):.1%} of the variance{which}")
    if result.stopped_early:
        made.append("stopped early")
    written = files.named()
    if "parts" in found:
        kept = found["parts"]["kept"]
        kept = f", {kept} kept by --resume" if kept else ""
        written["map"] += f" ({count(found['parts']['files'], 'part')}{kept})"
    measures = [] if result.quality is None else list(result.quality)
    telling = [row for row in measures if row.name in ("trustworthiness", "neighbor_recall")]
    return [
        *preparation_lines(found["input"], found["preparation"]),
        f"{type(result.estimator).__name__}: {'; '.join(made)}",
        *(f"  {row.name.replace('_', ' ')} {beside(row)}" for row in telling),
        *trust_lines(result.trust, reasons=check),
        *file_lines(written),
    ]

"""``lowland map``: from a table to a map, a picture, a report and a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lowland.cli import options
from lowland.cli.console import beside, file_lines, trust_lines
from lowland.cli.failures import resumable
from lowland.cli.options import Frame, framed, valued
from lowland.tables.options import TABLE, TableOptions
from lowland.workflow._parameters import DEFAULT_METHOD
from lowland.workflow.options import MAKING, RunSettings

if TYPE_CHECKING:
    from lowland.workflow import MapResult
    from lowland.workflow.outputs import MapFiles

STOPPED = 1  # exit code: a partial result was written
Method = Annotated[
    str, typer.Option("--method", "-m", metavar="METHOD", help="See 'lowland methods'.")
]
Into = valued(
    str,
    "--into",
    metavar="obsm",
    text="Write a copy of an H5AD file, too, with the map in obsm['X_METHOD'].",
    group="output",
)


@framed(
    *("force", "raw_text"),
    table=(TableOptions, TABLE),
    settings=(RunSettings, (*MAKING, "refine", "resume")),
)
def map_command(
    frame: Frame,
    sources: options.Inputs,
    method: Method = DEFAULT_METHOD,
    output: options.ResultFolder = None,
    file_format: options.Format = None,
    into: Into = None,
    *,
    table: TableOptions,
    settings: RunSettings,
) -> int:
    """Reduce a table to a map: coordinates, a picture, a report on how far to trust it, and a model
    that places new rows.

    Columns of numbers are reduced; columns of text and dates are labels and stay beside the map. A
    table larger than memory is read in chunks. Its map is a folder of Parquet files.

    The lines marked ok, caution or serious say where the map can be believed; trust.csv says it of
    each point.

    Every parameter of the method is an option too, such as --perplexity 50:
    'lowland methods METHOD' lists them.
    """
    from lowland._base import registry
    from lowland._base.constraints import Choice, read_value
    from lowland._base.errors import ParameterError
    from lowland.tables import check_free, check_writable
    from lowland.tables.formats.h5ad_writing import check_h5ad_target
    from lowland.workflow.making import choose, make_by_choice
    from lowland.workflow.outputs import MapFiles, RunFolder, result_folder
    from lowland.workflow.pictures.methods import picture_names

    cls = registry.get(method)
    copied = sources[0] if into and read_value("--into", Choice("obsm"), into) else ""
    folder = output or result_folder(sources, registry.snake_case(cls.__name__))
    planned = MapFiles.in_folder(
        folder,
        file_format=options.map_format(file_format, sources[0]),
        report=settings.measure,
        trust=settings.measure,
        copy_of=copied,
        pictures=picture_names(cls),
    )
    run = settings.of(table, frame.typed, frame.console.note)
    data = options.as_data(sources)
    home = RunFolder(folder, resume=settings.resume, force=frame.force)
    choice = choose(data, cls, run)
    if choice.streamed:
        refuse_for_parts(file_format, into)
        home.check(report=settings.measure)
    else:
        check_free(planned.paths(), force=frame.force, sources=sources)
    if copied:
        if len(sources) > 1:
            raise ParameterError(f"--into: {len(sources)} files were given; give one H5AD file.")
        if table.transpose:
            raise ParameterError(
                "--into: the rows of the map are the columns of the file; leave --transpose out."
            )
        check_h5ad_target(copied, registry.snake_case(cls.__name__), force=frame.force)
    check_writable(folder)
    with resumable(home.begun):
        result = make_by_choice(choice, data, cls, frame.parameters, run, home)
        if result.parts is not None:
            planned = home.files(report=settings.measure)
        files = result.write_files(
            planned, force=frame.force or settings.resume, raw_text=frame.raw_text
        )
    frame.result(
        lambda: (
            lines(result, files, settings.check),
            {**result.to_dict(), "outputs": files.named()},
        )
    )
    return STOPPED if result.stopped_early or result.not_made else 0


def refuse_for_parts(file_format: str | None, into: str | None) -> None:
    """Refuse options about a map in one file, where the map is a folder of parts."""
    from lowland._base.errors import ParameterError

    if file_format not in (None, "parquet") or into is not None:
        option = "--into" if into is not None else "--format"
        raise ParameterError(
            f"{option}: rows are read in chunks, and their map is a folder of Parquet files; "
            f"leave {option} out."
        )


def lines(result: MapResult, files: MapFiles, check: bool = False) -> list[str]:
    """A short summary for a person."""
    from lowland._base.errors import count

    found = result.to_dict()
    made = [f"{count(found['dimensions'], 'dimension')} in {found['seconds']:.2f} s"]
    shares = found["explained_variance_ratio"]
    if shares is not None:
        which = " between classes" if result.estimator.needs_target else ""
        made.append(f"{sum(shares):.1%} of the variance{which}")
    if result.stopped_early:
        made.append("stopped early")
    first, *rest = found["preparation"]
    written = files.named()
    if "parts" in found:
        kept = found["parts"]["kept"]
        kept = f", {kept} kept by --resume" if kept else ""
        written["map"] += f" ({count(found['parts']['files'], 'part')}{kept})"
    return [
        f"{found['input']}: {first}",
        *(f"  {line}" for line in rest),
        f"{type(result.estimator).__name__}: {'; '.join(made)}",
        *quality_lines(result),
        *trust_lines(result.trust, reasons=check),
        *file_lines(written),
    ]


def quality_lines(result: MapResult) -> list[str]:
    """The two most telling measures, beside those of a PCA map and of a random one."""
    table = [] if result.quality is None else list(result.quality)
    names = ("trustworthiness", "neighbor_recall")
    return [f"  {row.name.replace('_', ' ')} {beside(row)}" for row in table if row.name in names]

"""``lowland map``: from a table to a map, a picture, a report and a model."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lowland.cli import options, table_options
from lowland.cli.console import Console, trust_lines
from lowland.cli.failures import after_writing, resumable
from lowland.cli.method_options import METHOD, chosen_parameters, typed_command

if TYPE_CHECKING:
    from lowland.workflow import MapResult
    from lowland.workflow.outputs import MapFiles

STOPPED = 1  # exit code: a partial result was written


class Into(enum.StrEnum):
    """Where a map goes inside a copy of the input."""

    OBSM = "obsm"


@table_options.about_table()
def map_command(
    ctx: typer.Context,
    sources: options.Inputs,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="See 'lowland methods'.")
    ] = METHOD,
    output: options.ResultFolder = None,
    file_format: Annotated[
        options.Format | None,
        typer.Option(
            "--format", help="Format of the map; default as the input.", show_default=False
        ),
    ] = None,
    into: Annotated[
        Into | None,
        typer.Option(
            "--into",
            help="Write a copy of an H5AD file, too, with the map in obsm['X_METHOD'].",
            show_default=False,
        ),
    ] = None,
    color: options.Color = None,
    *,
    table: table_options.Table,
    pca: options.Pca = "auto",
    orient: Annotated[
        str | None,
        typer.Option(
            "--orient",
            metavar="HOW",
            help="Turn the map: north=ROW,west=ROW, or a file of coordinates joined by id.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Measure the map and write a report.")
    ] = True,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Make the map again, of parts of the rows and of data without structure, to see "
            "what is stable and what is chance.",
        ),
    ] = False,
    engine: options.Engine = options.Engines.AUTO,
    scheduler: options.Scheduler = None,
    sample: options.Sample = None,
    refine: Annotated[
        int | None,
        typer.Option(
            "--refine",
            metavar="STEPS",
            help="Move all rows by so many steps after they are placed; for tsne.",
            show_default=False,
        ),
    ] = None,
    resume: options.Resume = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    raw_text: options.RawText = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> int:
    """Reduce a table to a map: coordinates, a picture, a report on how far to trust it, and a model
    that places new rows.

    Columns of numbers are reduced; columns of text and dates are labels and stay beside the map.

    A table larger than memory is read in chunks. Its map is a folder of Parquet files.

    The lines marked ok, caution or serious say where the map can be believed; trust.csv says it of
    each point.

    Every parameter of the method is an option too, such as --perplexity 50:
    'lowland methods METHOD' lists them.
    """
    from lowland._base import registry
    from lowland._base.errors import COMMAND_LINE, ParameterError
    from lowland.tables import check_free, check_writable
    from lowland.tables.formats.h5ad_writing import check_h5ad_target
    from lowland.workflow.choosing import StreamOptions, choose, make_by_choice
    from lowland.workflow.fitting import FitOptions
    from lowland.workflow.outputs import MapFiles, RunFolder, result_folder
    from lowland.workflow.pictures.methods import picture_names
    from lowland.workflow.run import RunOptions

    console = Console(quiet=quiet, as_json=as_json)
    cls = registry.get(method)
    sources = options.found(sources)
    folder = output or result_folder(sources, registry.snake_case(cls.__name__))
    written_as = file_format.value if file_format else format_like(sources[0])
    copied = sources[0] if into else ""
    files = MapFiles.in_folder(
        folder,
        file_format=written_as,
        report=report,
        trust=report,
        copy_of=copied,
        pictures=picture_names(cls),
    )
    if check and not report:
        raise ParameterError(
            "--check: a map that is not measured is not checked; drop --no-report."
        )
    stream = StreamOptions(engine.value, scheduler, sample, resume, refine, COMMAND_LINE)
    fit = FitOptions(seed, jobs, console.shows_progress, pca, COMMAND_LINE)
    run = RunOptions(table, fit, color, report, typed_command(ctx), console.note, orient, check)
    data, home = options.as_data(sources), RunFolder(folder, resume=resume, force=force)
    choice = choose(data, cls, run, stream)
    if choice.streamed:
        refuse_for_parts(file_format, into)
        home.check(report=report)
    else:
        check_free(files.paths(), force=force, sources=sources)
    if copied:
        if len(sources) > 1:
            raise ParameterError(f"--into: {len(sources)} files were given; give one H5AD file.")
        if table.transpose:
            raise ParameterError(
                "--into: the rows of the map are the columns of the file; leave --transpose out."
            )
        check_h5ad_target(copied, registry.snake_case(cls.__name__), force=force)
    check_writable(folder)
    with console.warnings_as_notes(), resumable(home.begun):
        parameters = chosen_parameters(ctx)
        result = make_by_choice(choice, data, cls, parameters, run, stream, home)
        files = files if result.parts is None else home.files(report=report)
        files = result.write_files(files, force=force or resume, raw_text=raw_text)
    with after_writing():
        found = {"command": "map", **result.to_dict(), "outputs": files.named()}
        console.result(lines(result, files, check), found)
    return STOPPED if result.stopped_early or result.not_made else 0


def refuse_for_parts(file_format: options.Format | None, into: Into | None) -> None:
    """Refuse options about a map in one file, where the map is a folder of parts."""
    from lowland._base.errors import ParameterError

    asked = file_format is not None and file_format is not options.Format.PARQUET
    if asked or into is not None:
        option = "--into" if into is not None else "--format"
        raise ParameterError(
            f"{option}: rows are read in chunks, and their map is a folder of Parquet files; "
            f"leave {option} out."
        )


def format_like(source: str) -> str:
    """The format of a map that is written as its input is."""
    return "parquet" if Path(source).suffix.lower() == ".parquet" else "csv"


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
    width = max(8, *map(len, written))
    return [
        f"{found['input']}: {first}",
        *(f"  {line}" for line in rest),
        f"{type(result.estimator).__name__}: {'; '.join(made)}",
        *quality_lines(result),
        *trust_lines(result.trust, reasons=check),
        *(f"  {kind:<{width}} {path}" for kind, path in written.items()),
    ]


def quality_lines(result: MapResult) -> list[str]:
    """The two most telling measures, beside those of a PCA map and of a random one."""
    table = [] if result.quality is None else list(result.quality)
    lines = []
    for row in table:
        if row.name in ("trustworthiness", "neighbor_recall"):
            beside = [("PCA", row.pca), ("chance", row.random)]
            others = ", ".join(f"{who} {value:.2f}" for who, value in beside if value is not None)
            lines.append(f"  {row.name.replace('_', ' ')} {row.value:.3f} ({others})")
    return lines

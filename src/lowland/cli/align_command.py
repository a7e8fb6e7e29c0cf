"""``lowland align``: two or more tables in one map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lowland.cli import options, table_options
from lowland.cli.console import Console
from lowland.cli.failures import after_writing
from lowland.cli.map_command import STOPPED
from lowland.cli.method_options import MethodCommand, chosen_parameters, typed_command

if TYPE_CHECKING:
    from lowland.workflow import AlignedTables
    from lowland.workflow.outputs import MapFiles

Tables = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help=f"Two or more tables. {options.KINDS}.",
        show_default=False,
    ),
]


class AlignCommand(MethodCommand):
    """A command that also takes the options of the method that aligns tables."""

    def method_named(self, name: str | None) -> Any:
        """The class, whatever its ``--method`` is, which is a parameter of the class."""
        from lowland.workflow.aligning.running import alignment_class

        return alignment_class()

    def others(self) -> list[Any]:
        """There is only one class."""
        return [self.method_named(None)]


@table_options.about_table(table_options.ALIGNING)
def align_command(
    ctx: typer.Context,
    sources: Tables,
    match: Annotated[
        str | None,
        typer.Option(
            "--match",
            metavar="COLUMN",
            help="The column of ids by which rows are matched; LEFT=RIGHT if its names differ.",
            show_default=False,
        ),
    ] = None,
    same_order: Annotated[
        bool, typer.Option("--same-order", help="Row i of each table is the same object.")
    ] = False,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="laplacian|procrustes",
            help="How tables are aligned.",
            show_default="laplacian",
        ),
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option("--hold-out", metavar="SHARE", help="Pairs to try the alignment on; 0: none."),
    ] = 0.2,
    output: options.ResultFolder = None,
    file_format: Annotated[
        options.Format | None,
        typer.Option(
            "--format", help="Format of the map; default as the first input.", show_default=False
        ),
    ] = None,
    color: options.Color = None,
    *,
    table: table_options.Table,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Measure the map and write a report.")
    ] = True,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    raw_text: options.RawText = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> int:
    """Put two or more tables into one map, so that rows of the same object lie together.

    Each table is prepared by itself, as 'lowland map' does it; rows and columns may differ. Rows
    are matched by a column of ids (--match) or by their order (--same-order); without either, by
    local patterns. An option that names columns holds for the tables that have them.

    Some pairs are held out of a second fit, to tell how well unknown partners are found; the map is
    made with all pairs. 'lowland transform' places new rows of any of the tables (--domain).

    Every parameter of the method is an option too, such as --n-neighbors 20:
    'lowland methods manifold_alignment' lists them.
    """
    from lowland._base.errors import COMMAND_LINE, ParameterError
    from lowland.cli.map_command import format_like
    from lowland.tables import check_free, check_writable
    from lowland.workflow._parameters import read_value
    from lowland.workflow.aligning.result import PICTURES
    from lowland.workflow.aligning.running import Matching, alignment_class, run_alignment
    from lowland.workflow.fitting import FitOptions
    from lowland.workflow.outputs import MapFiles
    from lowland.workflow.run import RunOptions

    console = Console(quiet=quiet, as_json=as_json)
    sources = options.found(sources)
    if len(sources) < 2:
        raise ParameterError(
            f"{sources[0]}: an alignment puts several tables into one map; give two or more."
        )
    given = chosen_parameters(ctx)
    if method is not None:
        constraint = alignment_class().parameters()["method"].metadata["constraint"]
        given["method"] = read_value("--method", constraint, method)
    if given.get("method") == "procrustes" and match is None and not same_order:
        raise ParameterError(
            "-m procrustes turns maps by rows that are matched; add --match COLUMN or --same-order."
        )
    folder = output or alignment_folder(sources)
    written_as = file_format.value if file_format else format_like(sources[0])
    files = MapFiles.in_folder(folder, file_format=written_as, report=report, pictures=PICTURES)
    check_free(files.paths(), force=force, sources=sources)
    check_writable(folder)
    fit = FitOptions(seed, jobs, console.shows_progress, "none", COMMAND_LINE)
    run = RunOptions(table, fit, color, report, typed_command(ctx), console.note)
    with console.warnings_as_notes():
        matching = Matching(match, same_order, hold_out)
        result = run_alignment(sources, given, matching, run)
        files = result.write_files(files, force=force, raw_text=raw_text)
    with after_writing():
        found = {"command": "align", **result.to_dict(), "outputs": files.named()}
        console.result(lines(result, files), found)
    return STOPPED if result.stopped_early or result.not_made else 0


def alignment_folder(sources: list[str]) -> Path:
    """The default folder: ``lowland-out/left-and-right-aligned`` for two files."""
    from lowland.workflow.outputs import result_folder, result_stem

    if len(sources) > 2:
        return result_folder(sources, "aligned")
    return Path("lowland-out") / f"{'-and-'.join(map(result_stem, sources))}-aligned"


def lines(result: AlignedTables, files: MapFiles) -> list[str]:
    """A short summary for a person."""
    from lowland._base.errors import count

    found = result.to_dict()
    said = []
    for one in found["sets"]:
        first, *rest = one["preparation"]
        said += [f"{one['set']}: {first}", *(f"  {line}" for line in rest)]
    made = f"{count(found['dimensions'], 'dimension')} in {found['seconds']:.2f} s"
    early = "; stopped early" if result.stopped_early else ""
    written = files.named()
    width = max(8, *map(len, written))
    return [
        *said,
        f"{type(result.estimator).__name__}: {found['rows']} rows, {made}{early}",
        *(f"  {line}" for line in found["preparation"]),
        *match_lines(found),
        *quality_lines(result),
        *(f"  {kind:<{width}} {path}" for kind, path in written.items()),
    ]


def match_lines(found: dict[str, Any]) -> list[str]:
    """How many objects are known, and how well held-out ones were found."""
    from lowland._base.errors import count

    if not found["objects"]:
        return [f"  {found['matched_by']}"]
    said = [f"  {count(found['objects'], 'object')} in several tables ({found['matched_by']})"]
    tried = found["held_out"]
    if tried is None:
        return said
    said.append(f"  {tried['objects']} of them held out of a second fit; the map has all:")
    kinds = {"nearest": "nearest row is the partner", "rank": "rows nearer than the partner"}
    simple = tried["pca_procrustes"]
    for key, meaning in kinds.items():
        beside = [f"chance {percentage(tried['chance'][key])}"]
        if simple is not None:
            beside.append(f"PCA and Procrustes {percentage(simple[key])}")
        said.append(f"    {meaning}: {percentage(tried[key])} ({', '.join(beside)})")
    return said


def percentage(share: float) -> str:
    """A share in percent; one that is almost nothing keeps a digit."""
    return f"{share:.1%}" if share == 0 or share >= 0.0005 else f"{100 * share:.1g}%"


def quality_lines(result: AlignedTables) -> list[str]:
    """The trustworthiness of each set's part of the map, beside that of a PCA map and of chance."""
    said = []
    for name, table in result.quality.items():
        for row in table:
            if row.name == "trustworthiness":
                beside = [("PCA", row.pca), ("chance", row.random)]
                others = ", ".join(
                    f"{who} {value:.2f}" for who, value in beside if value is not None
                )
                said.append(f"  trustworthiness of {name} {row.value:.3f} ({others})")
    return said

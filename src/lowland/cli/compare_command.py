"""``lowland compare``: several methods on the same rows, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowland._base.constraints import listed
from lowland._base.errors import COMMAND_LINE, ParameterError
from lowland.cli import options
from lowland.cli.console import aligned, file_lines, preparation_lines
from lowland.cli.options import Frame, framed, valued
from lowland.tables.options import TABLE
from lowland.workflow.options import COMPARING

if TYPE_CHECKING:
    from lowland.workflow import MapComparison
    from lowland.workflow.comparing.result import ComparisonFiles

Methods = valued(
    "--methods -m METHODS",
    "Comma-separated, with parameters after colons: pca,tsne:perplexity=5; see 'lowland methods'.",
    default=True,
)
Along = valued(
    "--along NAME=VALUES",
    "One map for each value of a parameter, for the methods that have it: "
    "exaggeration=1,4,30; may be repeated.",
    list[str],
)


@framed("force", "raw_text", table=TABLE, settings=COMPARING)
def compare_command(
    frame: Frame,
    sources: options.Inputs,
    methods: Methods = "pca,tsne",
    along: Along = None,
    output: options.ResultFolder = None,
) -> int:
    """Map a table by several methods, or by one with several parameters: one table of time, memory
    and quality, and one report.

    -m pca,tsne:perplexity=5,tsne:perplexity=50:max_iter=500 makes three maps. -m tsne --along
    perplexity=5,50 is shorter for two values of one parameter; -m umap,tsne,laplacian_eigenmaps
    --along exaggeration=1,4,30 goes from repulsion to attraction. Picture and report show the maps
    turned to resemble the first; map-*.csv has each map as its method made it.

    Ctrl-C stops the method that runs and keeps its map so far; if there is none yet, or pressed
    again, it ends the comparison and keeps the maps made before.
    """
    from lowland.workflow.comparing import entries, running
    from lowland.workflow.comparing.result import ComparisonFiles
    from lowland.workflow.outputs import result_folder

    values = entries.split_along(along or ())
    chosen = entries.comparison_entries(listed([methods]), values, COMMAND_LINE)
    if not chosen:
        raise ParameterError(f"--methods: {methods!r} names no method; see 'lowland methods'.")
    folder = output or result_folder(sources, "compare")
    planned = ComparisonFiles.in_folder(folder, chosen)
    frame.check_folder(folder, planned.paths())
    result = running.run_comparison(frame.data, chosen, frame.run)
    files = result.write_files(planned, force=frame.force, raw_text=frame.raw_text)
    code = frame.end(result, files, lines)
    return options.STOPPED if result.failures else code


def lines(result: MapComparison, files: ComparisonFiles) -> list[str]:
    """The table for a person."""
    from lowland.workflow.comparing.result import SHOWN, alike

    found, written = result.to_dict(), files.named()
    names = [name.replace("_", " ") for name in SHOWN]
    cells = [["method", "seconds", "peak MB", *names, "gaps not in data"]]
    learned: dict[str, list[str]] = {}  # methods by the column that told them the rows apart
    for row in found["methods"]:
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.2f}"
        peak = "-" if row["peak_mb"] is None else str(row["peak_mb"])
        numbers = [_with_error(row[name], row[f"{name}_error"]) for name in SHOWN]
        false = "-" if row["gaps"] is None else f"{row['gaps_not_in_data']} of {row['gaps']}"
        cells.append([row["method"], seconds, peak, *numbers, false])
        if row["learned_from"]:
            learned.setdefault(row["learned_from"], []).append(row["method"])
    first, *more = written.pop("maps").values()
    return [
        *preparation_lines(found["input"], found["preparation"]),
        *aligned(cells),
        *(f"  learned from the column {name}: {', '.join(by)}" for name, by in learned.items()),
        *(f"  {line}" for line in alike(found["disparities"])),
        *file_lines({**written, "maps": first}),
        *(f"  {'':<8} {path}" for path in more),
        "  picture and report show the maps turned to resemble the first; the files of the maps do "
        "not",
    ]


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f} +- {1.96 * error:.3f}" if error else f"{value:.3f}"

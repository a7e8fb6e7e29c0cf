"""``lowland compare``: several methods on the same rows, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lowland.cli import options
from lowland.cli.console import aligned
from lowland.cli.map_command import STOPPED
from lowland.cli.options import Frame, framed, valued
from lowland.tables.options import TABLE, TableOptions
from lowland.workflow.options import COMPARING, RunSettings

if TYPE_CHECKING:
    from lowland.workflow.comparing.result import ComparisonFiles

Methods = Annotated[
    str,
    typer.Option(
        *("--methods", "-m"),
        metavar="METHODS",
        help="Comma-separated, with parameters after colons: pca,tsne:perplexity=5; see "
        "'lowland methods'.",
    ),
]
Along = valued(
    list[str],
    "--along",
    metavar="NAME=VALUES",
    text="One map for each value of a parameter, for the methods that have it: "
    "exaggeration=1,4,30; may be repeated.",
)


@framed("force", "raw_text", table=(TableOptions, TABLE), settings=(RunSettings, COMPARING))
def compare_command(
    frame: Frame,
    sources: options.Inputs,
    methods: Methods = "pca,tsne",
    along: Along = None,
    output: options.ResultFolder = None,
    *,
    table: TableOptions,
    settings: RunSettings,
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
    from lowland._base.errors import ParameterError
    from lowland.tables import check_free, check_writable
    from lowland.workflow.comparing.entries import comparison_entries, split_along, split_entries
    from lowland.workflow.comparing.result import ComparisonFiles
    from lowland.workflow.comparing.running import run_comparison
    from lowland.workflow.outputs import result_folder

    values = split_along(along or (), "--along")
    entries = comparison_entries(split_entries(methods), "--methods", values, "--along")
    if not entries:
        raise ParameterError(f"--methods: {methods!r} names no method; see 'lowland methods'.")
    folder = output or result_folder(sources, "compare")
    planned = ComparisonFiles.in_folder(folder, entries)
    check_free(planned.paths(), force=frame.force, sources=sources)
    check_writable(folder)
    run = settings.of(table, frame.typed, frame.console.note)
    result = run_comparison(options.as_data(sources), entries, run)
    files = result.write_files(planned, force=frame.force, raw_text=frame.raw_text)
    found = result.to_dict()
    frame.result(lambda: (lines(found, files), {**found, "outputs": named(files)}))
    incomplete = result.failures or result.not_made or result.stopped_early
    return STOPPED if incomplete else 0


def lines(found: dict[str, Any], files: ComparisonFiles) -> list[str]:
    """The table for a person."""
    from lowland.workflow.comparing.result import SHOWN, alike

    names = [name.replace("_", " ") for name in SHOWN]
    cells = [["method", "seconds", "peak MB", *names, "gaps not in data"]]
    for row in found["methods"]:
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.2f}"
        peak = "-" if row["peak_mb"] is None else str(row["peak_mb"])
        numbers = [_with_error(row[name], row[f"{name}_error"]) for name in SHOWN]
        false = "-" if row["gaps"] is None else f"{row['gaps_not_in_data']} of {row['gaps']}"
        cells.append([row["method"], seconds, peak, *numbers, false])
    first, *rest = found["preparation"]
    shown = {"table": files.table, "picture": files.picture, "report": files.report}
    return [
        f"{found['input']}: {first}",
        *(f"  {line}" for line in rest),
        *aligned(cells),
        *learned_lines(found["methods"]),
        *(f"  {line}" for line in alike(found["disparities"])),
        *(f"  {kind:<8} {path}" for kind, path in shown.items() if path is not None),
        *(f"  {'maps' if i == 0 else '':<8} {path}" for i, path in enumerate(files.maps.values())),
        "  picture and report show the maps turned to resemble the first; the files of the maps do "
        "not",
    ]


def learned_lines(methods: list[dict[str, Any]]) -> list[str]:
    """Which of the maps were made with a column that tells their rows apart."""
    learned: dict[str, list[str]] = {}
    for row in methods:
        if row["learned_from"]:
            learned.setdefault(row["learned_from"], []).append(row["method"])
    return [f"  learned from the column {name}: {', '.join(by)}" for name, by in learned.items()]


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f} +- {1.96 * error:.3f}" if error else f"{value:.3f}"


def named(files: ComparisonFiles) -> dict[str, Any]:
    """The files that were written, for ``--json``."""
    single = {"table": files.table, "picture": files.picture, "report": files.report}
    return {
        **{kind: str(path) for kind, path in single.items() if path is not None},
        "maps": {name: str(path) for name, path in files.maps.items()},
    }

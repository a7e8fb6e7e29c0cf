"""``lowland compare``: several methods on the same rows, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lowland.cli import options, study
from lowland.cli.console import Console, aligned
from lowland.cli.map_command import STOPPED, result_stem
from lowland.cli.method_options import typed_command
from lowland.cli.preparing import Choices, Ready, make_ready
from lowland.cli.study import Measures, Settings, Study
from lowland.cli.summary import map_entry, summarize

if TYPE_CHECKING:
    from lowland._core.base import Reducer

__all__ = ["compare_command"]

SHOWN = ("trustworthiness", "continuity", "neighbor_recall", "shepard_correlation")


class Entry(NamedTuple):
    """One method: what it made, or why it did not."""

    name: str
    study: Study | None
    measures: Measures
    reason: str = ""


def compare_command(
    ctx: typer.Context,
    source: options.Input,
    methods: Annotated[
        str,
        typer.Option(
            "--methods", "-m", metavar="METHODS", help="Comma-separated; see 'lowland methods'."
        ),
    ] = "pca,tsne",
    output: options.ResultFolder = None,
    color: options.Color = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    labels: options.Labels = None,
    one_hot: options.OneHot = None,
    id_column: options.Id = None,
    target: options.Target = None,
    scale: options.Scale = options.Scaling.AUTO,
    impute: options.Impute = None,
    pca: options.Pca = "auto",
    distances: options.Distances = False,
    part: options.Part = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> int:
    """Map a table by several methods: one table of time, memory and quality, and one report.

    Each method has its default parameters; the maps are turned so that they can be compared by eye.
    """
    from lowland._core import registry
    from lowland._core.errors import ParameterError
    from lowland.io import check_free

    console = Console(quiet=quiet, as_json=as_json)
    classes = [registry.get(name) for name in options.split([methods])]
    if not classes:
        raise ParameterError(f"--methods: {methods!r} names no method; see 'lowland methods'.")
    folder = output or Path("lowland-out") / f"{result_stem(source)}-compare"
    names = [registry.snake_case(cls.__name__) for cls in classes]
    outputs = Outputs.place(folder, names)
    check_free(outputs.paths(), force=force, sources=[source])
    choices = Choices(
        source, columns, drop, labels, one_hot, id_column, target, scale, impute, distances, part
    )
    settings = Settings(seed, jobs, console.shows_progress, pca)
    with console.warnings_as_notes():
        ready = make_ready(choices)
        for note in ready.table.notes:
            console.note(note)
        color = color or target or study.first_class(ready.table)
        if color is not None:
            ready.table.column(color)
        entries = [_run_one(ready, cls, target, color, settings, console) for cls in classes]
        write(outputs, ready, entries, typed_command(ctx), color, force=force)
    console.result(lines(ready, entries, outputs), data(ready, entries, outputs))
    unfinished = any(entry.study is None or entry.study.stopped for entry in entries)
    return STOPPED if unfinished else 0


def _run_one(
    ready: Ready,
    cls: type[Reducer],
    target: str | None,
    color: str | None,
    settings: Settings,
    console: Console,
) -> Entry:
    """A method that cannot do it is named, and the others go on."""
    from lowland._core import registry
    from lowland._core.errors import LowlandError

    name = registry.snake_case(cls.__name__)
    try:
        y = study.target_values(ready, cls, target)
        made = study.run(ready, cls, {}, y, settings)
        return Entry(name, made, study.measure(ready, made.Y, color, settings.jobs))
    except LowlandError as error:
        console.note(f"{name}: {error}")
        return Entry(name, None, Measures(None, {}, 0.0), str(error))


class Outputs(NamedTuple):
    """The files of a comparison."""

    table: Path
    picture: Path
    report: Path
    maps: dict[str, Path]

    @classmethod
    def place(cls, folder: Path, names: list[str]) -> Outputs:
        """All in one folder."""
        maps = {name: folder / f"map-{name}.csv" for name in dict.fromkeys(names)}
        return cls(folder / "comparison.csv", folder / "maps.png", folder / "report.html", maps)

    def paths(self) -> list[Path]:
        """All files there may be."""
        return [self.table, self.picture, self.report, *self.maps.values()]


def write(
    outputs: Outputs,
    ready: Ready,
    entries: list[Entry],
    command: str,
    color: str | None,
    *,
    force: bool,
) -> None:
    """The table, the picture, the report and the maps, all or none."""
    import polars as pl

    from lowland._core.errors import DataError
    from lowland._engines.linalg.procrustes import align
    from lowland.io import map_frame, staged_outputs, write_frame
    from lowland.plot import compare_maps, save_figure
    from lowland.report import write_report

    made = [entry for entry in entries if entry.study is not None]
    if not made:
        reasons = "; ".join(f"{entry.name}: {entry.reason}" for entry in entries)
        raise DataError(f"no method could do it: {reasons}")
    paths = [path for path in outputs.paths() if path not in _of_failed(outputs, entries)]
    values = None if color is None else ready.table.column(color).to_numpy()
    shown, log = [], []
    reference = made[0].study.Y  # type: ignore[union-attr]
    for entry in made:
        assert entry.study is not None
        part = map_entry(entry.study, entry.measures)
        if entry is not made[0]:
            part["coordinates"] = align(reference, entry.study.Y).aligned
        shown.append(part)
        log += [f"{entry.name}: {line}" for line in entry.study.log]
    log += [f"{entry.name}: not made: {entry.reason}" for entry in entries if entry.study is None]
    with staged_outputs(paths, force=force) as staged:
        by_name = {path.name: path for path in staged}
        pl.DataFrame([row(entry) for entry in entries]).write_csv(by_name["comparison.csv"])
        figure = compare_maps(
            [part["coordinates"] for part in shown],
            [part["title"] for part in shown],
            values,
            label_name=color,
        )
        save_figure(figure, by_name["maps.png"])
        write_report(summarize(ready, shown, log, command, color), by_name["report.html"])
        for entry in made:
            assert entry.study is not None
            frame = map_frame(ready.table, entry.study.Y)
            write_frame(frame, by_name[outputs.maps[entry.name].name])


def _of_failed(outputs: Outputs, entries: list[Entry]) -> set[Path]:
    return {outputs.maps[entry.name] for entry in entries if entry.study is None}


def row(entry: Entry) -> dict[str, Any]:
    """A line of the table."""
    made, table = entry.study, entry.measures.table
    found: dict[str, Any] = {
        "method": entry.name,
        "seconds": None if made is None else round(made.seconds, 3),
        "peak_mb": None if made is None or made.peak_bytes is None else made.peak_bytes // 10**6,
    }
    measured = {} if table is None else {line.name: line.value for line in table}
    for name in SHOWN:
        value = measured.get(name)
        found[name] = None if value is None else float(value)
        found[f"{name}_error"] = None if value is None else value.standard_error
    return found


def lines(ready: Ready, entries: list[Entry], outputs: Outputs) -> list[str]:
    """The table for a person."""
    cells = [["method", "seconds", "peak MB", *(name.replace("_", " ") for name in SHOWN)]]
    for entry in entries:
        found = row(entry)
        if entry.study is None:
            cells.append([entry.name, "-", "-", *("-" for _ in SHOWN)])
            continue
        peak = "-" if found["peak_mb"] is None else str(found["peak_mb"])
        numbers = [_with_error(found[name], found[f"{name}_error"]) for name in SHOWN]
        cells.append([entry.name, f"{found['seconds']:.2f}", peak, *numbers])
    named = {"table": outputs.table, "picture": outputs.picture, "report": outputs.report}
    return [
        f"{ready.table.source}: {ready.log[0]}",
        *(f"  {line}" for line in ready.log[1:]),
        *aligned(cells),
        *(f"  {kind:<8} {path}" for kind, path in named.items()),
        f"  maps     {outputs.table.parent / 'map-METHOD.csv'}",
    ]


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f} +- {1.96 * error:.3f}" if error else f"{value:.3f}"


def data(ready: Ready, entries: list[Entry], outputs: Outputs) -> dict[str, Any]:
    """The same for ``--json``."""
    return {
        "command": "compare",
        "input": ready.table.source,
        "rows": ready.table.shape[0],
        "columns": ready.table.shape[1],
        "preparation": ready.log,
        "dropped_rows": ready.dropped,
        "methods": [
            {
                **row(entry),
                "failed": entry.reason or None,
                "quality": None if entry.measures.table is None else entry.measures.table.to_dict(),
            }
            for entry in entries
        ],
        "outputs": {
            "table": str(outputs.table),
            "picture": str(outputs.picture),
            "report": str(outputs.report),
            "maps": {
                entry.name: str(outputs.maps[entry.name])
                for entry in entries
                if entry.study is not None
            },
        },
    }

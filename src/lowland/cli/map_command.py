"""``lowland map``: from a table to a map, a picture, a report and a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lowland.cli import options, study
from lowland.cli.console import Console, count
from lowland.cli.method_options import DEFAULT_METHOD, chosen_parameters, typed_command
from lowland.cli.preparing import Choices, Ready, make_ready
from lowland.cli.study import Measures, Settings, Study
from lowland.cli.summary import map_entry, plain_value, summarize, variance_shares

if TYPE_CHECKING:
    from lowland.io import Table

__all__ = ["map_command", "result_stem"]

STOPPED = 1  # exit code: a partial result was written


def map_command(
    ctx: typer.Context,
    source: options.Input,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="See 'lowland methods'.")
    ] = DEFAULT_METHOD,
    output: options.ResultFolder = None,
    file_format: Annotated[
        options.Format | None,
        typer.Option(
            "--format", help="Format of the map; default as the input.", show_default=False
        ),
    ] = None,
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
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Measure the map and write a report.")
    ] = True,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> int:
    """Reduce a table to a map: coordinates, a picture, a report on how far to trust it, and a model
    that places new rows.

    Columns of numbers are reduced; columns of text and dates are labels and stay beside the map.

    Every parameter of the method is an option too, such as --perplexity 50:
    'lowland methods METHOD' lists them.
    """
    from lowland._core import registry
    from lowland.io import check_free

    console = Console(quiet=quiet, as_json=as_json)
    cls = registry.get(method)
    outputs = Outputs.place(source, registry.snake_case(cls.__name__), output, file_format, report)
    check_free(outputs.paths(), force=force, sources=[source])
    table = source, columns, drop, labels, one_hot, id_column, target, scale, impute, distances
    choices = Choices(*table, part, unknown_distances=getattr(cls, "may_miss", False))
    settings = Settings(seed, jobs, console.shows_progress, pca)
    with console.warnings_as_notes():
        ready = make_ready(choices)
        for note in ready.table.notes:
            console.note(note)
        color = color or target or study.first_class(ready.table)
        if color is not None:
            ready.table.column(color)  # an unknown column must not cost a long fit first
        y = study.target_values(ready, cls, target)
        made = study.run(ready, cls, chosen_parameters(ctx), y, settings)
        if made.stopped:
            console.note("stopped; the map as it was is written")
        measures = Measures(None, {}, 0.0)
        if report:
            measures = study.measure(ready, made.Y, color, jobs)
        run = Run(ready, made, measures, color, outputs, typed_command(ctx))
        run.write(force=force)
    console.result(run.lines(), run.data())
    return STOPPED if made.stopped else 0


class Outputs(NamedTuple):
    """The files of one run."""

    map: Path
    picture: Path
    report: Path | None
    model: Path

    @classmethod
    def place(
        cls,
        source: str,
        method: str,
        folder: Path | None,
        file_format: options.Format | None,
        report: bool,
    ) -> Outputs:
        """All files of a run in one folder."""
        if folder is None:
            folder = Path("lowland-out") / f"{result_stem(source)}-{method}"
        if file_format is None:
            is_parquet = Path(source).suffix.lower() == ".parquet"
            file_format = options.Format.PARQUET if is_parquet else options.Format.CSV
        return cls(
            folder / f"map.{file_format.value}",
            folder / "map.png",
            folder / "report.html" if report else None,
            folder / "model.lowland",
        )

    def paths(self) -> list[Path]:
        """The files that there will be."""
        return [path for path in self if path is not None]

    def named(self) -> dict[str, str]:
        """They by what they are."""
        return {kind: str(path) for kind, path in self._asdict().items() if path is not None}


def result_stem(source: str) -> str:
    """The name of a source without folders and suffixes: ``a/cells.csv.gz`` is ``cells``."""
    path = Path(source)
    name = path.resolve().name if path.name in ("", ".", "..") else path.name
    stem = name.removesuffix(".gz")
    return Path(stem).stem or stem


class Run(NamedTuple):
    """What a run was and gave, for people and for programs."""

    ready: Ready
    study: Study
    measures: Measures
    color: str | None
    outputs: Outputs
    command: str

    @property
    def table(self) -> Table:
        return self.ready.table

    def write(self, *, force: bool) -> None:
        """Map, picture, report and model, all or none."""
        from lowland.cli.pictures import picture_of
        from lowland.io import map_frame, staged_outputs, write_frame
        from lowland.plot import save_figure

        with staged_outputs(self.outputs.paths(), force=force) as staged:
            by_name = {path.name: path for path in staged}
            write_frame(map_frame(self.table, self.study.Y), by_name[self.outputs.map.name])
            save_figure(picture_of(self.table, self.study, self.color), by_name["map.png"])
            if self.outputs.report is not None:
                from lowland.report import write_report

                write_report(self.summary(), by_name["report.html"])
            self.study.model.save(by_name["model.lowland"])

    def summary(self) -> dict[str, Any]:
        """The dictionary that the report is made of."""
        entry = map_entry(self.study, self.measures)
        return summarize(self.ready, [entry], self.study.log, self.command, self.color)

    def lines(self) -> list[str]:
        """A short summary."""
        made = [f"{count(self.study.Y.shape[1], 'dimension')} in {self.study.seconds:.2f} s"]
        shares = variance_shares(self.study.estimator)
        if shares is not None:
            which = " between classes" if self.study.estimator.needs_target else ""
            made.append(f"{sum(shares):.1%} of the variance{which}")
        if self.study.stopped:
            made.append("stopped early")
        return [
            f"{self.table.source}: {self.ready.log[0]}",
            *(f"  {line}" for line in [*self.ready.log[1:], *self.study.log]),
            f"{type(self.study.estimator).__name__}: {'; '.join(made)}",
            *self.quality_lines(),
            *(f"  {kind:<8} {path}" for kind, path in self.outputs.named().items()),
        ]

    def quality_lines(self) -> list[str]:
        """The two numbers that tell most, beside what PCA and chance reach."""
        table = self.measures.table
        if table is None:
            return []
        names = [row.name for row in table]
        shown = [name for name in ("trustworthiness", "neighbor_recall") if name in names]
        lines = []
        for name in shown:
            row = table[name]
            beside = [("PCA", row.pca), ("chance", row.random)]
            others = ", ".join(f"{who} {value:.2f}" for who, value in beside if value is not None)
            lines.append(f"  {name.replace('_', ' ')} {row.value:.3f} ({others})")
        return lines

    def data(self) -> dict[str, Any]:
        """The same for ``--json``, with every parameter."""
        names = self.table.feature_names
        quality = self.measures.table
        return {
            "command": "map",
            "input": self.table.source,
            "rows": self.table.shape[0],
            "columns": self.table.shape[1],
            "features": None if names is None else list(names),
            "labels": self.table.labels.columns,
            "id": self.table.ids.name,
            "color": self.color,
            "preparation": [*self.ready.log, *self.study.log],
            "dropped_rows": self.ready.dropped,
            "method": self.study.name,
            "parameters": {
                name: plain_value(value)
                for name, value in self.study.estimator.get_params().items()
            },
            "dimensions": self.study.Y.shape[1],
            "explained_variance_ratio": variance_shares(self.study.estimator),
            "stopped_early": self.study.stopped,
            "seconds": self.study.seconds,
            "quality": None if quality is None else quality.to_dict(),
            "outputs": self.outputs.named(),
            "notes": list(self.table.notes),
        }

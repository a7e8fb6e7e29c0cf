"""``lowland map``: from a table to a map, a picture and a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lowland.cli import options
from lowland.cli.console import Console, count, listing
from lowland.cli.method_options import DEFAULT_METHOD, chosen_parameters

if TYPE_CHECKING:
    import numpy as np

    from lowland._core.base import Reducer
    from lowland.io import Table

__all__ = ["map_command"]


def map_command(
    ctx: typer.Context,
    source: options.Input,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="METHOD", help="See 'lowland methods'.")
    ] = DEFAULT_METHOD,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where the results go; default lowland-out/INPUT-METHOD.",
            show_default=False,
        ),
    ] = None,
    file_format: Annotated[
        options.Format | None,
        typer.Option(
            "--format", help="Format of the map; default as the input.", show_default=False
        ),
    ] = None,
    color: Annotated[
        str | None,
        typer.Option(
            "--color",
            metavar="COLUMN",
            help="The column that colors the picture; default the first label.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="The classes that a supervised method learns; default the first label.",
            show_default=False,
        ),
    ] = None,
    labels: options.Labels = None,
    id_column: options.Id = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Reduce a table to a map: coordinates, a picture, and a model that places new rows.

    Columns of numbers are reduced; columns of text and dates are labels and stay beside the map.

    Every parameter of the method is an option too, such as --n-components 3:
    'lowland methods METHOD' lists them.
    """
    from lowland._core import registry
    from lowland.io import check_free, read_table

    console = Console(quiet=quiet, as_json=as_json)
    cls = registry.get(method)
    name = registry.snake_case(cls.__name__)
    outputs = Outputs.place(source, name, output, file_format)
    check_free(outputs, force=force, sources=[source])

    with console.warnings_as_notes():
        labels = [*(labels or ()), *([target] if target else [])]
        table = read_table(source, labels=list(dict.fromkeys(labels)), id_column=id_column)
        for note in table.notes:
            console.note(note)
        color = color or target or next(iter(table.labels.columns), None)
        if color is not None:
            table.column(color)  # an unknown column must not cost a long fit first
        y = target_values(table, cls, target)
        estimator = cls(
            **chosen_parameters(ctx),
            random_state=seed,
            n_jobs=jobs,
            verbose=console.shows_progress,
        )
        start = time.perf_counter()
        Y = estimator.fit_transform(table.features, y)
        seconds = time.perf_counter() - start
        estimator.set_params(verbose=False)  # a model does not remember who watched it being made
        write_outputs(outputs, table, Y, estimator, color, force=force)
    run = Run(table, estimator, name, Y, seconds, color, outputs)
    console.result(run.lines(), run.data())


def target_values(table: Table, cls: type[Reducer], target: str | None) -> Any:
    """The labels that a supervised method learns from; None for the others."""
    from lowland._core.errors import DataError

    if not cls.needs_target:
        return None
    target = target or next(iter(table.labels.columns), None)
    if target is None:
        raise DataError(
            f"{cls.__name__} learns from classes, and {table.source} has no column of labels; "
            "name the column of classes with --target."
        )
    return table.column(target).to_numpy()


class Outputs(NamedTuple):
    """The files of one run."""

    map: Path
    picture: Path
    model: Path

    @classmethod
    def place(
        cls, source: str, method: str, folder: Path | None, file_format: options.Format | None
    ) -> Outputs:
        """All files of a run in one folder."""
        if folder is None:
            folder = Path("lowland-out") / f"{Path(source).stem}-{method}"
        if file_format is None:
            is_parquet = Path(source).suffix.lower() == ".parquet"
            file_format = options.Format.PARQUET if is_parquet else options.Format.CSV
        return cls(
            folder / f"map.{file_format.value}", folder / "map.png", folder / "model.lowland"
        )


def write_outputs(
    outputs: Outputs,
    table: Table,
    Y: np.ndarray,
    estimator: Reducer,
    color: str | None,
    *,
    force: bool,
) -> None:
    """Map, picture and model, all or none."""
    from lowland.io import coordinate_names, map_frame, staged_outputs, write_frame
    from lowland.plot import save_figure, scatter_map

    shares = variance_shares(estimator)
    axes = coordinate_names(Y.shape[1])
    if shares is not None and len(shares) == len(axes):
        axes = [f"{axis} ({share:.1%})" for axis, share in zip(axes, shares, strict=True)]
    with staged_outputs(outputs, force=force) as staged:
        paths = Outputs(*staged)
        write_frame(map_frame(table, Y), paths.map)
        figure = scatter_map(
            Y,
            None if color is None else table.column(color).to_numpy(),
            title=f"{Path(table.source).stem}: {type(estimator).__name__} of {table.shape[0]} rows",
            label_name=color,
            axis_names=axes,
        )
        save_figure(figure, paths.picture)
        estimator.save(paths.model)


def variance_shares(estimator: Reducer) -> list[float] | None:
    """The share of variance along each axis, for methods that know it."""
    shares = getattr(estimator, "explained_variance_ratio_", None)
    return None if shares is None else [float(share) for share in shares]


class Run(NamedTuple):
    """What a run was and gave, for people and for programs."""

    table: Table
    estimator: Reducer
    method: str
    Y: np.ndarray
    seconds: float
    color: str | None
    outputs: Outputs

    def lines(self) -> list[str]:
        """A short summary."""
        rows, columns = self.table.shape
        names = self.table.feature_names
        used = f" ({listing(names)})" if names else ""
        read = [f"{count(rows, 'row')}, {count(columns, 'column')} of numbers{used}"]
        if self.table.labels.width:
            read.append(f"kept as labels: {listing(self.table.labels.columns)}")
        made = [f"{count(self.Y.shape[1], 'dimension')} in {self.seconds:.2f} s"]
        shares = variance_shares(self.estimator)
        if shares is not None:
            which = " between classes" if self.estimator.needs_target else ""
            made.append(f"{sum(shares):.1%} of the variance{which}")
        return [
            f"{self.table.source}: {'; '.join(read)}",
            f"{type(self.estimator).__name__}: {'; '.join(made)}",
            *(f"  {kind:<8} {path}" for kind, path in self.outputs._asdict().items()),
        ]

    def data(self) -> dict[str, Any]:
        """The same for ``--json``, with every parameter."""
        names = self.table.feature_names
        return {
            "command": "map",
            "input": self.table.source,
            "rows": self.table.shape[0],
            "columns": self.table.shape[1],
            "features": None if names is None else list(names),
            "labels": self.table.labels.columns,
            "id": self.table.ids.name,
            "color": self.color,
            "method": self.method,
            "parameters": {
                name: plain_value(value) for name, value in self.estimator.get_params().items()
            },
            "dimensions": self.Y.shape[1],
            "explained_variance_ratio": variance_shares(self.estimator),
            "seconds": self.seconds,
            "outputs": {kind: str(path) for kind, path in self.outputs._asdict().items()},
            "notes": list(self.table.notes),
        }


def plain_value(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)

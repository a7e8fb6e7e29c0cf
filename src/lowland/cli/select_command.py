"""``lowland select``: keep the columns that matter, as they are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from lowland._core.errors import DataError, ParameterError
from lowland.cli import options
from lowland.cli.console import Console, count, listing
from lowland.cli.map_command import plain_value
from lowland.cli.method_options import (
    KEY,
    MethodOption,
    _long_options,
    _own_options,
    _unknown_option,
    method_options,
)

if TYPE_CHECKING:
    import polars as pl

    from lowland.io import Table

__all__ = ["SelectCommand", "select_command"]

WITH_TARGET, WITHOUT_TARGET = "mutual_information", "principal_variables"
MOST_LINES = 40


class SelectCommand(TyperCommand):
    """A command that also takes the options of the selector named by ``--method``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        own = _own_options(self)
        if any(name not in own for name, _ in _long_options(self, args)):
            args, ctx.meta[KEY] = take_options(self, args)
        return super().parse_args(ctx, args)


def select_command(
    ctx: typer.Context,
    source: options.Input,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="What the columns are to tell about; default the first label.",
            show_default=False,
        ),
    ] = None,
    n_features: Annotated[
        str | None,
        typer.Option(
            "--n-features",
            "-k",
            metavar="N",
            help="Columns to keep: how many, or which share; default what the method says.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="METHOD",
            help="anova_f, chi_square, correlation_score, fisher_score, laplacian_score, mrmr, "
            "mutual_information (default with a target), principal_variables (default without), "
            "recursive_elimination, relief_f, sequential_selection or variance_score; the "
            "beginning of a name will do.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .csv or .parquet file; default INPUT-selected.csv.",
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
    """Keep the columns of a table that matter: a ranking, and a file with the kept columns.

    The target and other labels stay in the file. Parameters of the method are options, too, such
    as --n-neighbors 5 for relief_f.
    """
    from lowland.io import check_free, check_suffix, read_table, staged_outputs, write_frame

    console = Console(quiet=quiet, as_json=as_json)
    output = output or default_output(source)
    check_suffix(output)
    check_free([output], force=force, sources=[source])

    with console.warnings_as_notes():
        labels = list(dict.fromkeys([*(labels or ()), *([target] if target else [])]))
        table = read_table(source, labels=labels, id_column=id_column)
        for note in table.notes:
            console.note(note)
        cls, target = choose(method, target, table)
        given = {"n_features": chosen_number(cls, n_features), **ctx.meta.get(KEY, {})}
        selector = cls(**given, random_state=seed, n_jobs=jobs, verbose=console.shows_progress)
        y = None if target is None else table.column(target).to_numpy()
        start = time.perf_counter()
        selector.fit(table.features, y)
        seconds = time.perf_counter() - start
        with staged_outputs([output], force=force) as [staged]:
            write_frame(reduced_frame(table, selector), staged)
    run = Selection(table, selector, target, seconds, output)
    console.result(run.lines(), run.data())


def default_output(source: str) -> Path:
    """A file in the current folder, named and typed like the input."""
    path = Path(source)
    suffix = ".parquet" if path.suffix.lower() == ".parquet" else ".csv"
    return Path(f"{path.stem}-selected{suffix}")


def choose(method: str | None, target: str | None, table: Table) -> tuple[Any, str | None]:
    """The selector, and the target if it needs one."""
    from lowland._core import registry

    found = target or next(iter(table.labels.columns), None)
    if method is None:
        method = WITHOUT_TARGET if found is None else WITH_TARGET
    cls = registry.get_selector(method)
    if not cls.needs_target:
        if target is not None:
            name = registry.snake_case(cls.__name__)
            raise ParameterError(f"{name} looks at no target; leave out --target {target}.")
        return cls, None
    if found is None:
        raise DataError(
            f"{table.source}: has no column of labels, and {cls.__name__} needs a target; name "
            "its column with --target."
        )
    return cls, found


def chosen_number(cls: Any, text: str | None) -> Any:
    """The value of -k."""
    if text is None:
        return None
    constraint = cls.parameters()["n_features"].metadata["constraint"]
    return MethodOption("n_features", constraint, None, "", False).read(text)


def column_names(table: Table) -> list[str]:
    """Names of the features; x0, x1, ... where they have none."""
    if table.feature_names is not None:
        return list(table.feature_names)
    prefix, taken = "x", {table.ids.name, *table.labels.columns}
    while taken & {f"{prefix}{i}" for i in range(table.shape[1])}:
        prefix += "_"
    return [f"{prefix}{i}" for i in range(table.shape[1])]


def reduced_frame(table: Table, selector: Any) -> pl.DataFrame:
    """The row id if the file has one, the kept columns, the labels."""
    import numpy as np
    import polars as pl

    kept = selector.get_support(indices=True)
    names = [column_names(table)[i] for i in kept]
    if isinstance(table.features, np.ndarray):
        frame = pl.from_numpy(
            np.ascontiguousarray(table.features[:, kept]), schema=names, orient="row"
        )
    else:
        frame = table.features.select(names)
    ids = [] if table.ids.name == "row" else [table.ids]
    return pl.DataFrame([*ids, *frame.get_columns(), *table.labels.get_columns()])


def take_options(command: TyperCommand, args: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The arguments without the selector's options, and the values of those."""
    from lowland._core import registry

    cls = registry.get_selector(named_method(args) or WITH_TARGET)
    own, known = _own_options(command), method_options(cls)
    taken: set[int] = set()
    values = {}
    for name, place in _long_options(command, args):
        if name in own or place in taken:
            continue
        if name not in known:
            method = registry.snake_case(cls.__name__)
            raise ParameterError(f"{method}: {_unknown_option(name, [*own, *known])}")
        option = known[name]
        text = args[place].partition("=")[2] if "=" in args[place] else None
        taken.add(place)
        if option.is_flag and text is None:
            values[option.parameter] = name == option.name
            continue
        if text is None:
            if place + 1 >= len(args):
                raise ParameterError(f"{name} needs a value: {option.constraint.describe()}.")
            text = args[place + 1]
            taken.add(place + 1)
        values[option.parameter] = option.read(text)
    return [arg for i, arg in enumerate(args) if i not in taken], values


def named_method(args: list[str]) -> str | None:
    """What follows -m or --method."""
    for i, arg in enumerate(args):
        if arg in ("-m", "--method") and i + 1 < len(args):
            return args[i + 1]
        for start in ("--method=", "-m"):
            if arg.startswith(start) and len(arg) > len(start) and not arg.startswith("--m-"):
                return arg[len(start) :]
    return None


class Selection(NamedTuple):
    """What was selected, for people and for programs."""

    table: Table
    selector: Any
    target: str | None
    seconds: float
    output: Path

    def ranked(self) -> list[dict[str, Any]]:
        """All columns, the best first."""
        names, selector = column_names(self.table), self.selector
        return [
            {
                "rank": int(selector.ranking_[i]),
                "column": names[i],
                "score": float(selector.scores_[i]),
                "kept": bool(selector.support_[i]),
            }
            for i in selector.ranking_.argsort()
        ]

    def lines(self) -> list[str]:
        """A short summary with the table of kept columns."""
        rows, columns = self.table.shape
        about = [f"{count(rows, 'row')}, {count(columns, 'column')} of numbers"]
        about += [f"target {self.target}"] if self.target else []
        kept = [entry for entry in self.ranked() if entry["kept"]]
        width = max(len("column"), *(len(entry["column"]) for entry in kept))
        table = [f"  {'rank':>4}  {'column':<{width}}  score"]
        for entry in kept[:MOST_LINES]:
            table.append(f"  {entry['rank']:>4}  {entry['column']:<{width}}  {entry['score']:.5g}")
        if len(kept) > MOST_LINES:
            more = [entry["column"] for entry in kept[MOST_LINES:]]
            table.append(f"  and {len(more)} more: {listing(more)}")
        return [
            f"{self.table.source}: {'; '.join(about)}",
            f"{type(self.selector).__name__}: {len(kept)} of {count(columns, 'column')} kept "
            f"in {self.seconds:.2f} s",
            *table,
            f"  file     {self.output}",
        ]

    def data(self) -> dict[str, Any]:
        """The same for ``--json``, with every column and parameter."""
        from lowland._core import registry

        return {
            "command": "select",
            "input": self.table.source,
            "rows": self.table.shape[0],
            "columns": self.table.shape[1],
            "labels": self.table.labels.columns,
            "id": self.table.ids.name,
            "target": self.target,
            "method": registry.snake_case(type(self.selector).__name__),
            "parameters": {
                name: plain_value(value)
                for name, value in self.selector.get_params(deep=False).items()
            },
            "kept": int(self.selector.support_.sum()),
            "ranking": self.ranked(),
            "seconds": self.seconds,
            "outputs": {"file": str(self.output)},
            "notes": list(self.table.notes),
        }

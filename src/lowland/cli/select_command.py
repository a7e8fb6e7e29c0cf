"""``lowland select``: keep the columns that matter, as they are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lowland._core.errors import DataError, ParameterError
from lowland.cli import options
from lowland.cli.console import Console, count, listing
from lowland.cli.map_command import result_stem
from lowland.cli.method_options import MethodCommand, MethodOption, chosen_parameters
from lowland.cli.summary import plain_value

if TYPE_CHECKING:
    import polars as pl

    from lowland.io import Table

__all__ = ["SelectCommand", "select_command"]

WITH_TARGET, WITHOUT_TARGET = "mutual_information", "principal_variables"
MOST_LINES = 40


class SelectCommand(MethodCommand):
    """A command that also takes the options of the selector named by ``--method``."""

    def method_named(self, name: str | None) -> Any:
        """The selector's class."""
        from lowland._core import registry

        return registry.get_selector(name or WITH_TARGET)

    def others(self) -> list[Any]:
        """All selectors."""
        from lowland._core import registry

        return registry.all_selectors()


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
        labels = list(dict.fromkeys([*options.split(labels), *([target] if target else [])]))
        table = read_table(source, labels=labels, id_column=id_column)
        for note in table.notes:
            console.note(note)
        cls, target = choose(method, target, table)
        given = {"n_features": chosen_number(cls, n_features), **chosen_parameters(ctx)}
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
    suffix = ".parquet" if source.lower().endswith(".parquet") else ".csv"
    return Path(f"{result_stem(source)}-selected{suffix}")


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
    if isinstance(table.features, pl.DataFrame):
        frame = table.features.select(names)
    else:
        values = table.features[:, kept]
        dense = values.toarray() if table.is_sparse else values
        frame = pl.from_numpy(np.ascontiguousarray(dense), schema=names, orient="row")
    ids = [] if table.ids.name == "row" else [table.ids]
    return pl.DataFrame([*ids, *frame.get_columns(), *table.labels.get_columns()])


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

"""``lowland select``: keep the columns that matter, as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lowland.cli import options, table_options
from lowland.cli.console import Console, listing
from lowland.cli.failures import after_writing
from lowland.cli.method_options import MethodCommand, MethodOption, chosen_parameters

if TYPE_CHECKING:
    from lowland.workflow import Selection

MOST_LINES = 40


class SelectCommand(MethodCommand):
    """A command that also takes the options of the selector named by ``--method``."""

    def method_named(self, name: str | None) -> Any:
        """The selector's class."""
        from lowland._base import registry
        from lowland.workflow.selecting import WITH_TARGET

        return registry.get_selector(name or WITH_TARGET)

    def others(self) -> list[Any]:
        """All selectors."""
        from lowland._base import registry

        return registry.all_selectors()


@table_options.about_table(table_options.SELECTING)
def select_command(
    ctx: typer.Context,
    sources: options.Inputs,
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
    *,
    table: table_options.Table,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    force: options.Force = False,
    raw_text: options.RawText = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Keep the columns of a table that matter: a ranking, and a file with the kept columns.

    The target and other labels stay in the file. Parameters of the method are options, too, such
    as --n-neighbors 5 for relief_f.
    """
    from lowland._base.errors import COMMAND_LINE
    from lowland.tables import check_free, check_suffix
    from lowland.tables.preparing import read
    from lowland.workflow.selecting import choose_selector, run_selection

    console = Console(quiet=quiet, as_json=as_json)
    sources = options.found(sources)
    output = output or options.table_file(sources, "selected")
    check_suffix(output)
    check_free([output], force=force, sources=sources)
    with console.warnings_as_notes():
        found_table = read(options.as_data(sources), table, allow_missing=False, allow_text=False)
        for note in found_table.notes:
            console.note(note)
        cls, target = choose_selector(method, table.target, found_table, COMMAND_LINE)
        given = {"n_features": chosen_number(cls, n_features), **chosen_parameters(ctx)}
        selector = cls(**given, random_state=seed, n_jobs=jobs, verbose=console.shows_progress)
        selection = run_selection(found_table, selector, target)
        selection.write(output, force=force, raw_text=raw_text)
    with after_writing():
        found = {"command": "select", **selection.to_dict(), "outputs": {"file": str(output)}}
        console.result(lines(selection, output), found)


def chosen_number(cls: Any, text: str | None) -> Any:
    """The value of -k."""
    if text is None:
        return None
    constraint = cls.parameters()["n_features"].metadata["constraint"]
    return MethodOption("n_features", constraint, None, "", False).read(text)


def lines(selection: Selection, output: Path) -> list[str]:
    """A short summary with the table of kept columns."""
    from lowland._base.errors import count

    rows, columns = selection.table.shape
    about = [f"{count(rows, 'row')}, {count(columns, 'column')} of numbers"]
    about += [f"target {selection.target}"] if selection.target else []
    kept = [entry for entry in selection.ranked() if entry["kept"]]
    width = max(len("column"), *(len(entry["column"]) for entry in kept))
    table = [f"  {'rank':>4}  {'column':<{width}}  score"]
    for entry in kept[:MOST_LINES]:
        table.append(f"  {entry['rank']:>4}  {entry['column']:<{width}}  {entry['score']:.5g}")
    if len(kept) > MOST_LINES:
        more = [entry["column"] for entry in kept[MOST_LINES:]]
        table.append(f"  and {len(more)} more: {listing(more)}")
    return [
        f"{selection.table.source}: {'; '.join(about)}",
        f"{type(selection.selector).__name__}: {len(kept)} of {count(columns, 'column')} kept "
        f"in {selection.seconds:.2f} s",
        *table,
        f"  file     {output}",
    ]

"""``lowland select``: keep the columns that matter, as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowland.cli import options
from lowland.cli.console import listing
from lowland.cli.method_options import MethodCommand, MethodOption
from lowland.cli.options import Frame, framed, valued
from lowland.tables.options import SELECTING, TableOptions
from lowland.workflow.options import FITTING, RunSettings

if TYPE_CHECKING:
    from lowland.workflow import Selection

MOST_LINES = 40
Number = valued(
    str,
    *("--n-features", "-k"),
    metavar="N",
    text="Columns to keep: how many, or which share; default what the method says.",
)
Method = valued(
    str,
    *("--method", "-m"),
    metavar="METHOD",
    text="anova_f, chi_square, correlation_score, fisher_score, laplacian_score, mrmr, "
    "mutual_information (default with a target), principal_variables (default without), "
    "recursive_elimination, relief_f, sequential_selection or variance_score; the beginning of a "
    "name will do.",
)
Output = options.output_file("A .csv or .parquet file; default INPUT-selected.csv.")


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


@framed("force", "raw_text", table=(TableOptions, SELECTING), settings=(RunSettings, FITTING))
def select_command(
    frame: Frame,
    sources: options.Inputs,
    n_features: Number = None,
    method: Method = None,
    output: Output = None,
    *,
    table: TableOptions,
    settings: RunSettings,
) -> None:
    """Keep the columns of a table that matter: a ranking, and a file with the kept columns.

    The target and other labels stay in the file. Parameters of the method are options, too, such
    as --n-neighbors 5 for relief_f.
    """
    from lowland._base.errors import COMMAND_LINE
    from lowland.tables import check_free, check_suffix
    from lowland.tables.preparing import read
    from lowland.workflow.selecting import choose_selector, run_selection

    output = output or options.table_file(sources, "selected")
    check_suffix(output)
    check_free([output], force=frame.force, sources=sources)
    found = read(options.as_data(sources), table, allow_missing=False, allow_text=False)
    frame.notes(found.notes)
    cls, target = choose_selector(method, table.target, found, COMMAND_LINE)
    given = {"n_features": chosen_number(cls, n_features), **frame.parameters}
    selection = run_selection(found, cls(**given, **settings.of_methods), target)
    selection.write(output, force=frame.force, raw_text=frame.raw_text)
    frame.result(
        lambda: (
            lines(selection, output),
            {**selection.to_dict(), "outputs": {"file": str(output)}},
        )
    )


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

"""``lowland select``: keep the columns that matter, as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowland._base import registry
from lowland._base.errors import COMMAND_LINE, count
from lowland.cli import options
from lowland.cli.console import file_lines, listing
from lowland.cli.method_options import MethodCommand, method_options
from lowland.cli.options import Frame, framed, valued
from lowland.tables.options import SELECTING
from lowland.workflow.options import FITTING

if TYPE_CHECKING:
    from lowland.workflow import Selection

MOST_LINES = 40
Number = valued(
    "--n-features -k N", "How many columns to keep, or which share; default: as the method decides."
)
Method = valued(
    "--method -m METHOD",
    "anova_f, chi_square, correlation_score, fisher_score, laplacian_score, mrmr, "
    "mutual_information (default with a target), principal_variables (default without), "
    "recursive_elimination, relief_f, sequential_selection or variance_score; the beginning of a "
    "name will do.",
)
Output = valued("--output -o FILE", "A .csv or .parquet file; default INPUT-selected.csv.", Path)


class SelectCommand(MethodCommand):
    """A command that also takes the options of the selector named by ``--method``."""

    def method_named(self, name: str | None) -> Any:
        """The selector's class."""
        from lowland.workflow.selecting import WITH_TARGET

        return registry.get_selector(name or WITH_TARGET)

    def others(self) -> list[Any]:
        """All selectors."""
        return registry.all_selectors()


@framed("force", "raw_text", table=SELECTING, settings=FITTING)
def select_command(
    frame: Frame,
    sources: options.Inputs,
    n_features: Number = None,
    method: Method = None,
    output: Output = None,
) -> None:
    """Keep the columns of a table that matter: a ranking, and a file with the kept columns.

    The target and other labels stay in the file. Parameters of the method are options, too, such
    as --n-neighbors 5 for relief_f.
    """
    from lowland.tables import check_suffix
    from lowland.tables.preparing import read
    from lowland.workflow.selecting import choose_selector, run_selection

    output = output or options.table_file(sources, "selected")
    check_suffix(output)
    frame.check([output])
    table = read(frame.data, frame.table, allow_missing=False, allow_text=False)
    frame.notes(table.notes)
    cls, target = choose_selector(method, frame.table.target, table, COMMAND_LINE)
    given = dict(frame.parameters)
    if n_features is not None:
        option = method_options(cls)["--n-features"]
        given[option.parameter] = option.read(n_features)
    selection = run_selection(table, cls(**given, **frame.settings.of_methods), target)
    selection.write(output, force=frame.force, raw_text=frame.raw_text)
    written = {"file": str(output)}
    frame.result(lambda: (lines(selection, written), {**selection.to_dict(), "outputs": written}))


def lines(selection: Selection, written: dict[str, str]) -> list[str]:
    """A short summary with the table of kept columns."""
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
        *file_lines(written),
    ]

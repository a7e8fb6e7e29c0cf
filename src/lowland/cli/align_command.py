"""``lowland align``: two or more tables in one map."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowland._base.constraints import read_value
from lowland._base.errors import ParameterError, count
from lowland.cli import options
from lowland.cli.console import beside, file_lines, preparation_lines
from lowland.cli.method_options import MethodCommand
from lowland.cli.options import Frame, argument, framed, valued
from lowland.tables.options import ALIGNING
from lowland.workflow.options import ALIGNED, Matching

if TYPE_CHECKING:
    from lowland.workflow import AlignedTables
    from lowland.workflow.outputs import MapFiles

Tables = argument("INPUT", f"Two or more tables. {options.KINDS}.", list[str])
Method = valued(
    "--method -m HOW", "How tables are aligned: laplacian or procrustes.", default="laplacian"
)


class AlignCommand(MethodCommand):
    """A command that also takes the options of the method that aligns tables."""

    def method_named(self, name: str | None) -> Any:
        """The class, whatever its ``--method`` is, which is a parameter of the class."""
        from lowland.workflow.aligning.running import alignment_class

        return alignment_class()

    def others(self) -> list[Any]:
        """There is only one class."""
        return [self.method_named(None)]


@framed("force", "raw_text", matching=tuple(Matching.declared()), table=ALIGNING, settings=ALIGNED)
def align_command(
    frame: Frame,
    sources: Tables,
    method: Method = None,
    output: options.ResultFolder = None,
    file_format: options.Format = None,
) -> int:
    """Put two or more tables into one map, so that rows of the same object lie together.

    Each table is prepared by itself, as 'lowland map' does it; rows and columns may differ. Rows
    are matched by a column of ids (--match) or by their order (--same-order); without either, by
    local patterns. Some pairs are held out of a second fit, to tell how well unknown partners are
    found; the map is made with all pairs. An option that names columns holds for the tables that
    have them. 'lowland transform' places new rows of any of the tables (--domain).

    Every parameter of the method is an option too, such as --n-neighbors 20:
    'lowland methods manifold_alignment' lists them.
    """
    from lowland.workflow.aligning.result import PICTURES
    from lowland.workflow.aligning.running import alignment_class, run_alignment
    from lowland.workflow.outputs import MapFiles, result_stem

    if len(sources) < 2:
        raise ParameterError(
            f"{sources[0]}: an alignment puts several tables into one map; give two or more."
        )
    given, matching = frame.parameters, frame.matching
    if method is not None:
        constraint = alignment_class().parameters()["method"].metadata["constraint"]
        given["method"] = read_value("--method", constraint, method)
    if given.get("method") == "procrustes" and matching.match is None and not matching.same_order:
        raise ParameterError(
            "-m procrustes turns maps by rows that are matched; add --match COLUMN or --same-order."
        )
    stem = "-and-".join(map(result_stem, sources)) if len(sources) == 2 else result_stem(sources)
    folder = output or Path("lowland-out") / f"{stem}-aligned"
    planned = MapFiles.in_folder(
        folder,
        file_format=options.map_format(file_format, sources[0]),
        report=frame.settings.measure,
        pictures=PICTURES,
    )
    frame.check_folder(folder, planned.paths())
    result = run_alignment(sources, given, matching, frame.run)
    files = result.write_files(planned, force=frame.force, raw_text=frame.raw_text)
    return frame.end(result, files, lines)


def lines(result: AlignedTables, files: MapFiles) -> list[str]:
    """A short summary for a person."""
    found = result.to_dict()
    made = f"{count(found['dimensions'], 'dimension')} in {found['seconds']:.2f} s"
    early = "; stopped early" if result.stopped_early else ""
    said = [preparation_lines(one["set"], one["preparation"]) for one in found["sets"]]
    return [
        *itertools.chain(*said),
        f"{type(result.estimator).__name__}: {found['rows']} rows, {made}{early}",
        *(f"  {line}" for line in found["preparation"]),
        *match_lines(found),
        *(
            f"  trustworthiness of {name} {beside(row)}"
            for name, table in result.quality.items()
            for row in table
            if row.name == "trustworthiness"
        ),
        *file_lines(files.named()),
    ]


def match_lines(found: dict[str, Any]) -> list[str]:
    """How many objects are known, and how well held-out ones were found."""
    if not found["objects"]:
        return [f"  {found['matched_by']}"]
    said = [f"  {count(found['objects'], 'object')} in several tables ({found['matched_by']})"]
    tried = found["held_out"]
    if tried is None:
        return said
    said.append(f"  {tried['objects']} of them held out of a second fit; the map has all:")
    kinds = {"nearest": "nearest row is the partner", "rank": "rows nearer than the partner"}
    for key, meaning in kinds.items():
        others = [f"chance {percentage(tried['chance'][key])}"]
        if tried["pca_procrustes"] is not None:
            others.append(f"PCA and Procrustes {percentage(tried['pca_procrustes'][key])}")
        said.append(f"    {meaning}: {percentage(tried[key])} ({', '.join(others)})")
    return said


def percentage(share: float) -> str:
    """A share in percent; one that is almost nothing keeps a digit."""
    return f"{share:.1%}" if share == 0 or share >= 0.0005 else f"{100 * share:.1g}%"

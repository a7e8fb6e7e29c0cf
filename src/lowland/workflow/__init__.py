"""From a table to a map in one call, with a report and a model: what the command line does.

    >>> from lowland.workflow import make_map
    >>> result = make_map("iris", "pca", color="class")
    >>> result.map.shape
    (150, 4)

``result.report("report.html")`` writes the report, ``result.save("model.lowland")`` the model, and
``result.write(folder)`` all files. The other functions do what the other commands do.

A function and what it needs are imported when it is first used: a command that places one row needs
no measure and no report.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowland.workflow.aligning.result import AlignedTables
    from lowland.workflow.aligning.running import align_tables
    from lowland.workflow.comparing.running import MapComparison, compare_methods
    from lowland.workflow.describing import describe_table
    from lowland.workflow.foreign.judging import MapScore, MapTrust, score_map, trust_map
    from lowland.workflow.making import make_map
    from lowland.workflow.placing import PlacedParts, PlacedRows, place_rows
    from lowland.workflow.result import MapResult
    from lowland.workflow.selecting import Selection, select_columns

__all__ = [
    "AlignedTables",
    "MapComparison",
    "MapResult",
    "MapScore",
    "MapTrust",
    "PlacedParts",
    "PlacedRows",
    "Selection",
    "align_tables",
    "compare_methods",
    "describe_table",
    "make_map",
    "place_rows",
    "score_map",
    "select_columns",
    "trust_map",
]

_HOMES = {
    "AlignedTables": "aligning.result",
    "MapComparison": "comparing.running",
    "MapResult": "result",
    "MapScore": "foreign.judging",
    "MapTrust": "foreign.judging",
    "PlacedParts": "placing",
    "PlacedRows": "placing",
    "Selection": "selecting",
    "align_tables": "aligning.running",
    "compare_methods": "comparing.running",
    "describe_table": "describing",
    "make_map": "making",
    "place_rows": "placing",
    "score_map": "foreign.judging",
    "select_columns": "selecting",
    "trust_map": "foreign.judging",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'lowland.workflow' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lowland.workflow.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])

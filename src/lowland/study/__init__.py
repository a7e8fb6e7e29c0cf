"""From a table to a map in one call, with a report and a model: what the command line does.

    >>> from lowland.study import make_map
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
    from lowland.study.aligning.result import AlignedTables
    from lowland.study.aligning.running import align_tables
    from lowland.study.comparing.running import MapComparison, compare_methods
    from lowland.study.describing import describe_table
    from lowland.study.making import make_map
    from lowland.study.placing import PlacedRows, place_rows
    from lowland.study.result import MapResult
    from lowland.study.scoring import MapScore, score_map
    from lowland.study.selecting import Selection, select_columns
    from lowland.study.streaming.placing import PlacedParts
    from lowland.study.streaming.result import StreamedMap
    from lowland.study.trusting_maps import MapTrust, trust_map

__all__ = [
    "AlignedTables",
    "MapComparison",
    "MapResult",
    "MapScore",
    "MapTrust",
    "PlacedParts",
    "PlacedRows",
    "Selection",
    "StreamedMap",
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
    "MapScore": "scoring",
    "MapTrust": "trusting_maps",
    "PlacedParts": "streaming.placing",
    "PlacedRows": "placing",
    "Selection": "selecting",
    "StreamedMap": "streaming.result",
    "align_tables": "aligning.running",
    "compare_methods": "comparing.running",
    "describe_table": "describing",
    "make_map": "making",
    "place_rows": "placing",
    "score_map": "scoring",
    "select_columns": "selecting",
    "trust_map": "trusting_maps",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'lowland.study' has no attribute {name!r}")
    return getattr(importlib.import_module(f"lowland.study.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])

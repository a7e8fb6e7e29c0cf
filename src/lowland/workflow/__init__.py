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

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland.workflow.aligning.result": "AlignedTables",
        "lowland.workflow.aligning.running": "align_tables",
        "lowland.workflow.comparing.running": "MapComparison compare_methods",
        "lowland.workflow.describing": "describe_table",
        "lowland.workflow.foreign.judging": "MapScore MapTrust score_map trust_map",
        "lowland.workflow.making": "make_map",
        "lowland.workflow.placing": "PlacedParts PlacedRows place_rows",
        "lowland.workflow.result": "MapResult",
        "lowland.workflow.selecting": "Selection select_columns",
    },
)

"""Reading tables and writing maps: everything that touches a user's files.

A function is imported when it is first used: the options about a table are part of the help.
"""

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland.tables.distances": "read_distances",
        "lowland.tables.in_memory": "as_distances as_table",
        "lowland.tables.sources": "holds_distances",
        "lowland.tables.table": "Table read_table",
        "lowland.tables.writing": """
            check_free check_suffix check_writable coordinate_names map_frame staged_outputs
            write_frame
        """,
    },
)

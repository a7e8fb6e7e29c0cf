"""Reading tables and writing maps: everything that touches a user's files.

A function is imported when it is first used: the options about a table are part of the help.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowland.tables.distances import read_distances
    from lowland.tables.in_memory import as_distances, as_table
    from lowland.tables.sources import holds_distances
    from lowland.tables.table import Table, read_table
    from lowland.tables.writing import (
        check_free,
        check_suffix,
        check_writable,
        coordinate_names,
        map_frame,
        staged_outputs,
        write_frame,
    )

_HOMES = {
    "Table": "table",
    "as_distances": "in_memory",
    "as_table": "in_memory",
    "holds_distances": "sources",
    "read_distances": "distances",
    "read_table": "table",
}
__all__ = [
    "Table",
    "as_distances",
    "as_table",
    "check_free",
    "check_suffix",
    "check_writable",
    "coordinate_names",
    "holds_distances",
    "map_frame",
    "read_distances",
    "read_table",
    "staged_outputs",
    "write_frame",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'lowland.tables' has no attribute {name!r}")
    home = _HOMES.get(name, "writing")
    return getattr(importlib.import_module(f"lowland.tables.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

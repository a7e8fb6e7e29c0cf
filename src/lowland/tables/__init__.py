"""Reading tables and writing maps: everything that touches a user's files."""

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

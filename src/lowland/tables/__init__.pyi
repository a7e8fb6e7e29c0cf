"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland.tables.distances import read_distances as read_distances
from lowland.tables.in_memory import as_distances as as_distances
from lowland.tables.in_memory import as_table as as_table
from lowland.tables.sources import holds_distances as holds_distances
from lowland.tables.table import Table as Table
from lowland.tables.table import read_table as read_table
from lowland.tables.writing import check_free as check_free
from lowland.tables.writing import check_suffix as check_suffix
from lowland.tables.writing import check_writable as check_writable
from lowland.tables.writing import coordinate_names as coordinate_names
from lowland.tables.writing import map_frame as map_frame
from lowland.tables.writing import staged_outputs as staged_outputs
from lowland.tables.writing import write_frame as write_frame

"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland._base.rows.parts import Parts as Parts
from lowland._base.rows.table import Rows as Rows
from lowland.chunks.dask_engine import Dask as Dask
from lowland.chunks.graph import knn_graph as knn_graph
from lowland.chunks.opening import open_rows as open_rows
from lowland.chunks.refining import Refined as Refined
from lowland.chunks.refining import refined as refined

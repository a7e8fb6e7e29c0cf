"""Tables larger than memory, and larger than a machine, for the same estimators.

rows = open_rows("folder/*.parquet")
pca = PCA(50).fit(rows)               # reads in chunks
with Dask("tcp://scheduler:8786"):    # the same bytes, on many machines
    pca.transform(rows).write("scores/")
"""

from lowland._base.rows.parts import Parts
from lowland._base.rows.table import Rows
from lowland.chunks.dask_engine import Dask
from lowland.chunks.graph import knn_graph
from lowland.chunks.opening import open_rows
from lowland.chunks.refining import Refined, refined

__all__ = ["Dask", "Parts", "Refined", "Rows", "knn_graph", "open_rows", "refined"]

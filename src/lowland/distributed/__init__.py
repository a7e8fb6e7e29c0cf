"""Tables larger than memory, and larger than a machine, for the same estimators.

rows = open_rows("folder/*.parquet")
pca = PCA(50).fit(rows)               # reads leaf by leaf
with Dask("tcp://scheduler:8786"):    # the same bytes, on many machines
    pca.transform(rows).write("scores/")
"""

from lowland._core.rows.parts import Parts
from lowland._core.rows.table import Rows
from lowland.distributed.dask_engine import Dask
from lowland.distributed.graph import knn_graph
from lowland.distributed.opening import open_rows
from lowland.distributed.refining import Refined, refined

__all__ = ["Dask", "Parts", "Refined", "Rows", "knn_graph", "open_rows", "refined"]

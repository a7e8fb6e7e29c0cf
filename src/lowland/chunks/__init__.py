"""Tables larger than memory, and larger than a machine, for the same estimators.

rows = open_rows("folder/*.parquet")
pca = PCA(50).fit(rows)               # reads in chunks
with Dask("tcp://scheduler:8786"):    # the same bytes, on many machines
    pca.transform(rows).write("scores/")
"""

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland._base.rows.parts": "Parts",
        "lowland._base.rows.table": "Rows",
        "lowland.chunks.dask_engine": "Dask",
        "lowland.chunks.graph": "knn_graph",
        "lowland.chunks.opening": "open_rows",
        "lowland.chunks.refining": "Refined refined",
    },
)

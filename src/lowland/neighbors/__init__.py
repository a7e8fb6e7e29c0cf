"""Nearest neighbors, as a result or as input of a method instead of data.

>>> from lowland.datasets import iris
>>> from lowland.neighbors import KNNTransformer, knn_graph
>>> knn_graph(iris().X, 15)
NeighborGraph(150 rows x 15 neighbors, exact)
>>> KNNTransformer(15).fit_transform(iris().X).shape
(150, 150)
"""

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {"lowland.neighbors.knn_transformer": "KNNTransformer NeighborGraph knn_graph knn_query"},
)

"""Nearest neighbors, as a result of their own or as input of a method instead of data.

>>> from lowland.datasets import iris
>>> from lowland.neighbors import KNNTransformer, knn_graph
>>> knn_graph(iris().X, 15)
NeighborGraph(150 rows x 15 neighbors, exact)
>>> KNNTransformer(15).fit_transform(iris().X).shape
(150, 150)
"""

from lowland.neighbors.knn_transformer import KNNTransformer, NeighborGraph, knn_graph, knn_query

__all__ = ["KNNTransformer", "NeighborGraph", "knn_graph", "knn_query"]

"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland._engines.neighbors.graph import NeighborGraph as NeighborGraph
from lowland.neighbors.knn_transformer import KNNTransformer as KNNTransformer
from lowland.neighbors.knn_transformer import knn_graph as knn_graph
from lowland.neighbors.knn_transformer import knn_query as knn_query

"""Small graphs, and graphs as dense arrays."""

import numpy as np
import scipy.sparse

from lowland._engines.embedding.affinity import dense_conditional
from lowland._engines.graphs.weights import symmetrize


def to_dense(graph):
    W = np.full(graph.shape, np.nan, graph.dtype)
    entries = graph.tocoo()
    W[entries.row, entries.col] = entries.data
    return W


def canonical(graph):
    rows = np.split(graph.indices, graph.indptr[1:-1])
    return all((np.diff(columns) > 0).all() for columns in rows) and graph.format == "csr"


def graph_of(labels):
    """A chain through the rows of each component, of length 0."""
    rows = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    i = np.concatenate([part[:-1] for part in rows])
    j = np.concatenate([part[1:] for part in rows])
    n = labels.size
    return symmetrize(scipy.sparse.csr_matrix((np.zeros(i.size), (i, j)), shape=(n, n)))


def clusters(n, d, c, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, c, n)
    return spread * rng.standard_normal((c, d))[labels] + rng.standard_normal((n, d)), labels


def dense_joint(graph, perplexity):
    """The joint affinities of all pairs as a matrix that sums to 1; see ``dense_conditional``."""
    P = dense_conditional(graph, perplexity)
    P = P + P.T
    return P / P.sum()

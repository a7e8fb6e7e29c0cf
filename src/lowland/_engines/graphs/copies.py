"""Graphs with one vertex for all rows that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lowland._engines.graphs.checking import row_numbers
from lowland._engines.neighbors.duplicates import EqualRows


def without_copies(graph: scipy.sparse.csr_matrix, equal: EqualRows | None) -> Any:
    """The graph of the groups of equal rows; each group has the edges of all its rows."""
    if equal is None:
        return graph
    m = len(equal.first)
    rows, columns = equal.group[row_numbers(graph)], equal.group[graph.indices]
    order = np.lexsort((graph.data, columns, rows))
    rows, columns, lengths = rows[order], columns[order], graph.data[order]
    new = np.ones(len(rows), bool)  # of several edges between two groups the shortest stays
    new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    new &= rows != columns
    starts = np.searchsorted(rows[new], np.arange(m + 1))
    return scipy.sparse.csr_matrix((lengths[new], columns[new], starts), shape=(m, m))

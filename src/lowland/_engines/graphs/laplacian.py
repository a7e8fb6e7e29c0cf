"""Laplacians of weighted graphs, as matrices and as functions that multiply by them.

With weights w_ij = w_ji >= 0 and degrees d_i = sum_j w_ij (a weight w_ii counts once),

    unnormalized  L = D - W
    symmetric     L = I - D^-1/2 W D^-1/2,   eigenvalues 0 to 2, null vector d^1/2

The random walk D^-1 W has the eigenvalues 1 - l of the symmetric form and the right eigenvectors
D^-1/2 v, so it needs no matrix of its own.

Reference: von Luxburg (2007), A tutorial on spectral clustering, Statistics and Computing 17,
doi:10.1007/s11222-007-9033-z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse

from lowland._core.errors import ParameterError, unknown_name
from lowland._engines.graphs.checking import checked_graph, row_numbers

KINDS = ["unnormalized", "symmetric"]


def laplacian(
    W: Any, kind: Literal["unnormalized", "symmetric"] = "unnormalized"
) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """The Laplacian of a graph of weights (not distances), and the degrees.

    A row without weights becomes a row of zeros, so that the multiplicity of the eigenvalue 0 is
    the number of components for both kinds. Exactly symmetric if W is. O(edges).
    """
    if kind not in KINDS:
        raise ParameterError(unknown_name("Laplacian", kind, KINDS))
    W = checked_graph(W, "W", keep_loops=True)
    rows = row_numbers(W)
    weights = W.data.astype(np.float64)
    degrees = np.bincount(rows, weights, minlength=W.shape[0]).astype(np.float64)  # ints if empty
    diagonal = degrees
    if kind == "symmetric":
        diagonal = (degrees > 0).astype(np.float64)
        root = np.sqrt(np.where(degrees > 0, degrees, 1.0))
        weights = weights / (root[rows] * root[W.indices])
    off = scipy.sparse.csr_matrix((-weights, W.indices, W.indptr), shape=W.shape)
    L = (scipy.sparse.diags_array(diagonal, format="csr") + off).astype(W.dtype)
    return scipy.sparse.csr_matrix(L), degrees.astype(W.dtype)


def laplacian_product(
    times: Callable[[np.ndarray], np.ndarray], degrees: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """V -> V - D^-1/2 W D^-1/2 V for weights that are known only by ``times(V) = W V``."""
    root = 1 / np.sqrt(degrees)[:, None]

    def product(V: np.ndarray) -> np.ndarray:
        return V - root * times(root * V)

    return product

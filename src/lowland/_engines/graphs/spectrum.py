"""The slowest modes of a random walk on a graph: Laplacian eigenmaps and diffusion maps need them.

With weights w_ij = w_ji >= 0 and degrees d = W 1, the matrix S = D^(-1/2) W D^(-1/2) has the
eigenvalues of the walk D^(-1) W, the largest of which is 1 with the eigenvector sqrt(d). The modes
are the pairs after it: the smallest of the Laplacian I - S, whose norm is at most 2.

References
----------
von Luxburg (2007), A tutorial on spectral clustering, doi:10.1007/s11222-007-9033-z.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.linalg.eigen import smallest_eigenpairs

__all__ = ["GraphSpectrum", "graph_spectrum", "walk_spectrum"]

TOLERANCE = 1e-4


class GraphSpectrum(NamedTuple):
    """Eigenvalues of S below the trivial 1, largest first, and unit eigenvectors in columns.

    ``residual`` is the largest |S v - l v| relative to the largest 1 - l.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float


def graph_spectrum(
    W: scipy.sparse.csr_matrix, q: int, run: FitContext
) -> tuple[GraphSpectrum, np.ndarray]:
    """The q slowest modes of a connected graph of weights, and the degrees."""
    n = W.shape[0]
    degrees = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    root = 1 / np.sqrt(degrees)
    rows = np.repeat(np.arange(n), np.diff(W.indptr))
    S = scipy.sparse.csr_matrix(
        (W.data * (root[rows] * root[W.indices]), W.indices, W.indptr), (n, n)
    )
    laplacian = scipy.sparse.csr_matrix(scipy.sparse.identity(n, format="csr") - S)
    return walk_spectrum(laplacian, np.sqrt(degrees), q, run), degrees


def walk_spectrum(laplacian: Any, trivial: np.ndarray, q: int, run: FitContext) -> GraphSpectrum:
    """The q slowest modes from I - S, a matrix or a function that multiplies by it."""
    found = smallest_eigenpairs(
        laplacian,
        q,
        tol=TOLERANCE,
        rng=run.rng,
        monitor=run.monitor,
        threads=run.threads,
        trivial=trivial,
        norm=2.0,
    )
    return GraphSpectrum(1 - found.values, found.vectors, found.residual)

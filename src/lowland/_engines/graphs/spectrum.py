"""The leading eigenpairs of a random walk on a graph, for spectral maps.

With weights w_ij = w_ji >= 0 and degrees d = W 1, the matrix S = D^(-1/2) W D^(-1/2) has the
eigenvalues of the walk D^(-1) W. The largest is 1 with the eigenvector sqrt(d). The pairs after it
are the smallest ones of the symmetric Laplacian I - S, whose norm is at most 2.

References
----------
von Luxburg (2007), A tutorial on spectral clustering, doi:10.1007/s11222-007-9033-z.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._engines.graphs.laplacian import laplacian
from lowland._engines.linalg.eigen import smallest_eigenpairs

TOLERANCE = 1e-4


class GraphSpectrum(NamedTuple):
    """Eigenvalues of S after the trivial 1, largest first, and unit eigenvectors in columns.

    ``residual`` is the largest |S v - l v| relative to the largest 1 - l.
    """

    values: np.ndarray
    vectors: np.ndarray
    residual: float


def graph_spectrum(
    W: scipy.sparse.csr_matrix, q: int, run: FitContext
) -> tuple[GraphSpectrum, np.ndarray]:
    """The q leading eigenpairs of S for a connected graph of weights, and the degrees."""
    L, degrees = laplacian(W, "symmetric")
    return laplacian_spectrum(L, np.sqrt(degrees), q, run), degrees


def laplacian_spectrum(L: Any, trivial: np.ndarray, q: int, run: FitContext) -> GraphSpectrum:
    """The same from I - S, a matrix or a function that multiplies by it, and sqrt(d)."""
    found = smallest_eigenpairs(
        L,
        q,
        tol=TOLERANCE,
        rng=run.rng,
        monitor=run.monitor,
        threads=run.threads,
        trivial=trivial,
        norm=2.0,
    )
    return GraphSpectrum(1 - found.values, found.vectors, found.residual)

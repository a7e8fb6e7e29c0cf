"""Initial layouts: principal components, eigenvectors of the graph, noise, or a given map.

A start from the data makes maps that agree between runs and keep the large-scale structure
(Kobak & Linderman 2021, doi:10.1038/s41587-020-00809-z).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import largest_eigenpairs
from lowland._engines.linalg.principal_axes import leading_axes

ROUGH = 1e-2  # residual of eigenvectors
SMALL = 1e-4  # standard deviation along the first axis: too small for repulsion to matter
CROWDED, NOISE = (
    1e-5,
    1e-3,
)  # rows closer than CROWDED get noise of size NOISE, both in units of SMALL
WIDEST = 1e9  # beyond it, distances of neighbors are lost in the rounding of float32


def principal_layout(X: Any, d: int, run: FitContext) -> np.ndarray:
    """The first d principal components of dense or sparse rows."""
    n, p = X.shape
    q = min(d, n - 1, p)
    found = leading_axes(X, q, run.threads, run.rng, run.monitor)
    Y = products.times(X, found.mean, found.axes.T, run.threads).astype(np.float64)
    return _separated(_small(_filled(Y, d, run.rng)), run.rng)


def spectral_layout(P: Any, d: int, run: FitContext) -> np.ndarray:
    """Leading eigenvectors of D^-1/2 P D^-1/2 after the trivial one, for a symmetric graph P.

    The eigenvectors have a residual of about 1 %, which is enough for a start.
    """
    import scipy.sparse  # here: importing it takes longer than small maps take

    n = P.shape[0]
    root = 1 / np.sqrt(np.maximum(np.asarray(P.sum(axis=1)).ravel(), 1e-300))
    A = scipy.sparse.csr_matrix(scipy.sparse.diags(root) @ P @ scipy.sparse.diags(root))
    q = min(d, n - 2)
    if q < 1:
        return random_layout(n, d, run)
    found = largest_eigenpairs(
        products.matrix_times(A, run.threads),
        q,
        order=n,
        tol=ROUGH,
        rng=run.rng,
        monitor=run.monitor,
        width=max(4, q + 2),
        trivial=1 / root,
        rough=True,
    )
    return _separated(_small(_filled(found.vectors * root[:, None], d, run.rng)), run.rng)


def random_layout(n: int, d: int, run: FitContext) -> np.ndarray:
    """Independent normal coordinates."""
    return _small(run.rng.standard_normal((n, d)))


def given_layout(init: Any, n: int, d: int) -> np.ndarray:
    """A layout from the user, centered, for example an earlier map."""
    Y = np.array(init, dtype=np.float64)
    if Y.shape != (n, d):
        raise DataError(f"init has shape {Y.shape}, but the map is {n} rows x {d} columns.")
    if not np.isfinite(Y).all():
        raise DataError("init holds NaN or infinity; every row needs coordinates.")
    if np.abs(Y).max() > WIDEST:
        raise DataError(
            f"init has a coordinate of {np.abs(Y).max():g}, beyond the largest that is "
            f"allowed, {WIDEST:g}, where neighbors no longer interact; divide init by a number."
        )
    return Y - Y.mean(axis=0)


def _filled(Y: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    """Y with d columns; missing and constant columns are filled with a little noise."""
    spread = np.zeros(d)
    spread[: Y.shape[1]] = Y.std(axis=0)
    filled = np.zeros((len(Y), d))
    filled[:, : Y.shape[1]] = Y
    flat = ~(spread > 1e-10 * spread.max(initial=0.0))
    noise = rng.standard_normal((len(Y), d))
    scale = 0.1 * spread.max(initial=0.0)
    filled[:, flat] = noise[:, flat] * (scale if scale > 0 else 1.0)
    return filled


def _small(Y: np.ndarray) -> np.ndarray:
    """Centered, with standard deviation ``SMALL`` along the widest axis."""
    Y = Y - Y.mean(axis=0)
    largest = np.abs(Y).max(initial=0.0)
    if largest > 0:
        Y /= largest  # squares of huge or tiny numbers would overflow or vanish
    return Y * (SMALL / max(Y.std(axis=0).max(initial=0.0), 1e-300))


def _separated(Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add noise to rows in one place, which have the same forces and would never separate.

    Such rows are common where the data are a design or categories: all rows that differ only in
    columns beyond the leading axes, or in one component of a graph.
    """
    cells = np.round(Y / (CROWDED * SMALL))
    _, cell, members = np.unique(
        cells @ rng.standard_normal(Y.shape[1]), return_inverse=True, return_counts=True
    )
    crowded = members[cell] > 1
    Y[crowded] += NOISE * SMALL * rng.standard_normal((int(crowded.sum()), Y.shape[1]))
    return Y

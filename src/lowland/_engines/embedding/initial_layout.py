"""Where a layout starts: principal components, the graph's slow modes, noise, or a given map.

A start from the data makes maps that agree between runs and keep the large-scale structure
(Kobak & Linderman 2021, doi:10.1038/s41587-020-00809-z).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._core.errors import DataError
from lowland._engines.linalg import products
from lowland._engines.linalg.dense_eigen import fix_signs
from lowland._engines.linalg.magnitude import near_one
from lowland._engines.linalg.principal_axes import leading_axes

__all__ = ["given_layout", "principal_layout", "random_layout", "spectral_layout"]

SMALL = 1e-4  # standard deviation along the first axis: repulsion must not see the start
CROWDED, PARTED = 1e-5, 1e-3  # rows nearer than this (in units of SMALL) are parted by about that
WIDEST = 1e9  # coordinates beyond lose the distances of neighbors in float32


def principal_layout(X: Any, d: int, run: FitContext) -> np.ndarray:
    """The first d principal components of dense or sparse rows."""
    X = near_one(X)  # the layout has a size of its own
    n, p = X.shape
    q = min(d, n - 1, p)
    found = leading_axes(X, q, run.threads, run.rng, run.monitor)
    Y = products.times(X, found.mean, found.axes.T, run.threads).astype(np.float64)
    return _parted(_small(_filled(Y, d, run.rng)), run.rng)


def spectral_layout(P: Any, d: int, run: FitContext) -> np.ndarray:
    """Leading eigenvectors of D^-1/2 P D^-1/2 after the trivial one, for a symmetric graph P.

    Only a start: the eigenvectors are found to some 1 %. What the solver does not find is noise.
    """
    import scipy.sparse.linalg  # here: it takes longer to import than small maps take to make

    n = P.shape[0]
    root = 1 / np.sqrt(np.maximum(np.asarray(P.sum(axis=1)).ravel(), 1e-300))
    A = scipy.sparse.diags(root) @ P @ scipy.sparse.diags(root)
    trivial = 1 / root / np.linalg.norm(1 / root)
    q = min(d, n - 2)
    if q < 1:
        return random_layout(n, d, run)
    start = run.rng.standard_normal(n)
    if n <= 50 + q:
        values, vectors = np.linalg.eigh(A.toarray())
    else:
        try:
            values, vectors = scipy.sparse.linalg.eigsh(
                A, q + 1, which="LA", v0=start, tol=1e-2, maxiter=300
            )
        except scipy.sparse.linalg.ArpackNoConvergence as failure:
            values, vectors = failure.eigenvalues, failure.eigenvectors
    strangers = np.abs(vectors.T @ trivial) < 0.9
    order = np.argsort(-values[strangers], kind="stable")[:q]
    modes = fix_signs(vectors[:, strangers][:, order]) if order.size else np.empty((n, 0))
    return _parted(_small(_filled(modes * root[:, None], d, run.rng)), run.rng)


def random_layout(n: int, d: int, run: FitContext) -> np.ndarray:
    """Independent normal coordinates."""
    return _small(run.rng.standard_normal((n, d)))


def given_layout(init: Any, n: int, d: int) -> np.ndarray:
    """A layout from the user, as it is: to go on from an earlier map."""
    Y = np.array(init, dtype=np.float64)
    if Y.shape != (n, d):
        raise DataError(f"init has shape {Y.shape}, but the map is {n} rows x {d} columns.")
    if not np.isfinite(Y).all():
        raise DataError("init holds NaN or infinity; every row needs a place to start from.")
    if np.abs(Y).max() > WIDEST:
        raise DataError(
            f"init has a coordinate of {np.abs(Y).max():g}, so far out that no point would feel "
            f"another; coordinates of a map are at most {WIDEST:g} here: give a smaller copy."
        )
    return Y - Y.mean(axis=0)


def _filled(Y: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    """Axes that the data do not have, or on which nothing varies, get a little noise."""
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
        Y /= largest  # squares of huge or tiny numbers would not fit
    return Y * (SMALL / max(Y.std(axis=0).max(initial=0.0), 1e-300))


def _parted(Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows on one place would feel the same forces and stay together for ever: they get noise.

    Such rows are common where the data are a design or categories: all that differ only in
    columns beyond the leading axes, or in one component of a graph.
    """
    cells = np.round(Y / (CROWDED * SMALL))
    _, cell, members = np.unique(
        cells @ rng.standard_normal(Y.shape[1]), return_inverse=True, return_counts=True
    )
    crowded = members[cell] > 1
    Y[crowded] += PARTED * SMALL * rng.standard_normal((int(crowded.sum()), Y.shape[1]))
    return Y

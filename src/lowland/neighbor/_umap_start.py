"""Where the descent of UMAP begins: eigenvectors of the fuzzy graph, about ten units wide.

If the graph has several components, each gets the layout of its own eigenvectors, and they are put
where the principal components of their rows are; without rows, on a circle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.context import FitContext
from lowland._engines.embedding import initial_layout
from lowland.neighbor._fuzzy_graph import FuzzyGraph

SPAN = 10.0  # of a start
NARROW, WIDE = 1.0, 100.0  # spans of a given start that are left as they are
NOISE = 1e-4
FEW_ROWS = 50  # smaller components start as a cloud: the descent finds their layout at once


def starting_layout(
    init: Any, rows: Any, graph: FuzzyGraph, d: int, run: FitContext
) -> tuple[np.ndarray, int]:
    """The start (n, d), float32, and the number of components of the graph.

    ``rows`` are rows of features, or None if there are none.
    """
    from lowland._engines.graphs.components import connected_components  # imports scipy

    W = graph.to_csr()
    n_components, labels = connected_components(W)
    if not isinstance(init, str):
        Y = initial_layout.given_layout(init, graph.n, d)
        span = float(np.ptp(Y, axis=0).max())
        if not NARROW <= span <= WIDE:
            Y = _spanned(Y)
    elif init == "random":
        Y = SPAN * (run.rng.random((graph.n, d)) - 0.5)
    elif init == "pca" and rows is not None:
        Y = _spanned(initial_layout.principal_layout(rows, d, run))
    elif n_components == 1:
        Y = initial_layout.spectral_layout(W, d, run)
        Y = SPAN * Y / np.maximum(np.ptp(Y, axis=0), 1e-30)
    else:
        Y = _by_components(W, labels, rows, d, run)
    Y = Y - Y.mean(axis=0)
    return (Y + NOISE * run.rng.standard_normal(Y.shape)).astype(np.float32), n_components


def _spanned(Y: np.ndarray) -> np.ndarray:
    """Y with a largest span of ``SPAN``."""
    return Y * (SPAN / max(float(np.ptp(Y, axis=0).max()), 1e-300))


def _by_components(W: Any, labels: np.ndarray, rows: Any, d: int, run: FitContext) -> np.ndarray:
    """Each component around its center, as large as its share of the rows."""
    n, sizes = len(labels), np.bincount(labels)
    if rows is not None:
        places = _spanned(initial_layout.principal_layout(rows, d, run))
        sums = [np.bincount(labels, places[:, k]) for k in range(d)]
        centers = np.stack(sums, axis=1) / sizes[:, None]
    else:
        turns = 2 * np.pi * np.arange(len(sizes)) / len(sizes)
        centers = np.zeros((len(sizes), d))
        centers[:, 0] = SPAN / 2 * np.cos(turns)
        if d > 1:
            centers[:, 1] = SPAN / 2 * np.sin(turns)
    Y = centers[labels]
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    for inside in members:
        width = SPAN * (len(inside) / n) ** 0.5
        if len(inside) < max(FEW_ROWS, d + 3):
            Y[inside] += 0.1 * width * run.rng.standard_normal((len(inside), d))
            continue
        own = initial_layout.spectral_layout(W[inside][:, inside], d, run)
        own -= own.mean(axis=0)
        Y[inside] += width * own / max(float(np.ptp(own, axis=0).max()), 1e-300)
    return Y

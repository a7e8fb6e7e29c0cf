"""Laplacians of long strips."""

import numpy as np
import scipy.sparse


def rng(seed=0):
    return np.random.default_rng(seed)


def strip(n, wide=6, seed=0):
    """Laplacian of points on a long strip in random order, and their places along it."""
    x = rng(seed).random((n, 2)) * [n / wide, wide / 2]
    i, j = np.nonzero(np.linalg.norm(x[:, None] - x[None], axis=2) < 2.2)
    W = scipy.sparse.csr_matrix((np.exp(-((x[i] - x[j]) ** 2).sum(axis=1)), (i, j)))
    W.setdiag(0)
    L = scipy.sparse.diags(np.asarray(W.sum(axis=1)).ravel()) - W
    L = scipy.sparse.csr_matrix(L)
    L.sort_indices()
    return L, x[:, 0]

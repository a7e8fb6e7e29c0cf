"""Neighbors by sorting, for comparison."""

import numpy as np


def others(D):
    D = D.astype(float)
    np.fill_diagonal(D, np.inf)
    return D


def in_order(D, k):
    ids = np.argsort(D, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(D, ids, axis=1)

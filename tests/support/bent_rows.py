"""Small tables of skewed, correlated rows, bent, with or without gaps."""

import numpy as np


def rows(n, p=4, seed=0):
    """n rows of p columns."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, p)) @ rng.standard_normal((p, p))
    return X + np.exp(X[:, :1] / 4)


def with_holes(X, share=0.2, seed=0):
    """X with a share of its values missing."""
    X, holes = X.copy(), np.random.default_rng(seed).random(X.shape) < share
    holes[np.arange(len(X)), np.arange(len(X)) % X.shape[1]] = False  # no row is empty
    X[holes] = np.nan
    return X

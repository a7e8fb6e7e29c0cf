"""A tree of curves that branch in many dimensions."""

from __future__ import annotations

import itertools

import numpy as np

from lowland._core.random import generator
from lowland.datasets._base import Dataset, check, with_noise


def branching_tree(
    n_samples: int = 1000,
    *,
    n_branches: int = 8,
    n_features: int = 60,
    noise: float = 1.0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    """A tree of random walks: branch b is x_s = x_fork + u_1 + ... + u_s, u random unit vectors.

    The first branch begins at 0, each later one at a random row of an earlier branch. The numbers
    of rows of the branches are equal or one apart, and the rows are in random order. Neighbors on
    a branch are one step apart before the noise, which blurs many steps. The path along the
    tree between two rows is the city-block distance of their ``truth``, because each column holds
    the length of one branch.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_branches : int, default=8
        Number of branches.
    n_features : int, default=60
        Number of columns.
    noise : float, default=1.0
        Standard deviation of the Gaussian noise added to ``X``; the steps have length 1.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, n_features), ``y`` the branch; ``truth`` (n_samples, n_branches) is the
        length along each branch of the way from 0 to the row.

    Examples
    --------
    >>> from lowland.datasets import branching_tree
    >>> branching_tree(400, n_branches=5, random_state=0)
    Dataset('branching_tree', 400 rows x 60 columns, 5 classes, 5-D truth)
    """
    check(
        "branching_tree",
        n_samples=n_samples,
        n_branches=n_branches,
        n_features=n_features,
        noise=noise,
        random_state=random_state,
    )
    rng = generator(random_state)
    steps = rng.standard_normal((n_samples, n_features))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    y = np.sort(np.arange(n_samples, dtype=np.int64) % n_branches)
    X, truth = np.empty((n_samples, n_features)), np.zeros((n_samples, n_branches))
    bounds = np.searchsorted(y, np.arange(n_branches + 1))
    for branch, (first, last) in enumerate(itertools.pairwise(bounds)):
        X[first:last] = np.cumsum(steps[first:last], axis=0)
        if first > 0:
            fork = int(rng.integers(first))
            X[first:last] += X[fork]
            truth[first:last] = truth[fork]
        truth[first:last, branch] = np.arange(1, last - first + 1)
    order = rng.permutation(n_samples)
    return Dataset(
        name="branching_tree",
        X=with_noise(X[order], noise, rng),
        y=y[order],
        truth=truth[order],
        feature_names=tuple(f"x{column}" for column in range(n_features)),
        label_names=tuple(f"branch {branch}" for branch in range(n_branches)),
        description="Random walks that branch; city-block distances of truth are paths.",
    )

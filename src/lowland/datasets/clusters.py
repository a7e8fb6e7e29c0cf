"""Rows that belong to groups: ``y`` names the group of each."""

from __future__ import annotations

import itertools

import numpy as np

from lowland.datasets._base import XYZ, Dataset, SeedLike, balanced_labels, checked, with_noise


def blobs(
    n_samples: int = 1000,
    *,
    n_clusters: int = 5,
    n_features: int = 10,
    spread: float = 1.0,
    random_state: SeedLike = None,
) -> Dataset:
    """Gaussian clusters: x = c_y + spread * N(0, I), the centers c uniform in [-10, 10]^d.

    The sizes of the clusters are equal or one apart, and the rows are in random order.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_clusters : int, default=5
        Number of clusters.
    n_features : int, default=10
        Number of columns, d.
    spread : float, default=1.0
        Standard deviation of every cluster in every direction.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, n_features), ``y`` the cluster; ``truth`` (n_samples, n_features) is the
        center of each row's cluster.

    Examples
    --------
    >>> from lowland.datasets import blobs
    >>> blobs(300, n_clusters=3, random_state=0)
    Dataset('blobs', 300 rows x 10 columns, 3 classes, 10-D truth)
    """
    rng = checked("blobs", **locals())
    centers = rng.uniform(-10.0, 10.0, size=(n_clusters, n_features))
    y = balanced_labels(n_samples, n_clusters, rng)
    truth = centers[y]
    return Dataset(
        name="blobs",
        X=truth + spread * rng.standard_normal(truth.shape),
        y=y,
        truth=truth,
        feature_names=tuple(f"x{column}" for column in range(n_features)),
        label_names=tuple(f"cluster {cluster}" for cluster in range(n_clusters)),
        description="Gaussian clusters of equal size and spread; truth is each row's center.",
    )


def two_rings(
    n_samples: int = 1000, *, ratio: float = 0.3, noise: float = 0.05, random_state: SeedLike = None
) -> Dataset:
    """Two circles around one center: r_y (cos u, sin u), r = (2 ratio, 2), u in [0, 2 pi).

    No straight line separates the rings: linear methods cannot tell them apart, a kernel or the
    neighbor graph can. Both rings hold the same number of rows, or the inner one has one more.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows in both rings together.
    ratio : float, default=0.3
        Radius of the inner ring as a share of that of the outer one, in (0, 1). Kernel PCA
        with its default width separates the rings in two axes up to a ratio of about 0.36; at 0.5
        none of the widths that were tried does.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise added to ``X``.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, 2), ``y`` the ring (0 is the inner one), ``truth`` (n_samples, 1) the
        angle u.

    Examples
    --------
    >>> from lowland.datasets import two_rings
    >>> two_rings(200, random_state=0)
    Dataset('two_rings', 200 rows x 2 columns, 2 classes, 1-D truth)
    """
    rng = checked("two_rings", **locals())
    y = balanced_labels(n_samples, 2, rng)
    u = 2.0 * np.pi * rng.random(n_samples)
    radius = np.array([2.0 * ratio, 2.0])[y]
    X = radius[:, None] * np.column_stack([np.cos(u), np.sin(u)])
    return Dataset(
        name="two_rings",
        X=with_noise(X, noise, rng),
        y=y,
        truth=u[:, None],
        feature_names=XYZ[:2],
        label_names=("inner", "outer"),
        description="Two noisy circles around one center; truth is the angle.",
    )


# A tree of curves that branch in many dimensions.


def branching_tree(
    n_samples: int = 1000,
    *,
    n_branches: int = 8,
    n_features: int = 60,
    noise: float = 1.0,
    random_state: SeedLike = None,
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
    rng = checked("branching_tree", **locals())
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

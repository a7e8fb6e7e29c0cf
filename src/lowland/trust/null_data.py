"""Data without structure that have the principal variances and the tails of a table.

The null of every comparison with chance is an elliptical cloud: the principal component scores of
the rows, each divided by its deviation, are replaced by vectors in random directions whose lengths
are those of the rows in another order. The variance along every principal axis and the share of
outlying rows are those of the data; clusters and curves are gone.

Two other nulls are worse. Permuting the columns of the table flattens its spectrum, and such a null
is too easy to beat. Permuting each component score keeps the hills of its distribution: of data
with three clusters it makes a grid of more than three.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._core.units import exponent_for, in_unit, largest_value
from lowland._core.wording import shown
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import rank_cutoff
from lowland._engines.linalg.principal_axes import leading_axes

MOST_COMPONENTS = 50  # as many as neighbor methods reduce wider tables to


def component_scores(X: Any, threads: int = 1, most: int = MOST_COMPONENTS) -> np.ndarray:
    """The principal component scores (X - 1 m^T) A of the rows, largest variance first.

    Distances between rows are those of X if there are at most ``most`` columns; of a wider table
    the leading components are kept, as in the preparation of neighbor methods. Components without
    variance are left out, but one remains. O(n p min(n, p)) at most; the result does not depend on
    ``threads``.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, p), finite, float32 or float64
    threads : int, default=1
    most : int, default=50
        The largest number of components.

    Returns
    -------
    ndarray of shape (n, q), in the float type of X

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> component_scores(X).round(3).ravel().tolist()  # the second component has no variance
    [-2.121, -0.707, 0.707, 2.121]
    """
    n, p = X.shape
    if n < 2:
        raise DataError(f"X has {n} row; principal components need at least 2.")
    if most < 1:
        raise ParameterError(
            f"most={shown(most)} is not allowed; give a number of components >= 1."
        )
    e = exponent_for(largest_value(X))  # squares of extreme values would overflow
    rows = in_unit(X, e)
    # A fixed start: the scores are a property of the rows.
    rng = np.random.default_rng(0)
    with limit_blas(1):  # before anything is computed: the bytes must not depend on its threads
        found = leading_axes(rows, min(n - 1, p, most), threads, rng, Monitor())
    cutoff = rank_cutoff(min(n, p), X.dtype) * max(float(found.variances[0]), 0.0)
    kept = max(1, int((found.variances > cutoff).sum()))
    scores = products.times(rows, found.mean, found.axes[:kept].T, threads)
    return in_unit(scores, -e)


def null_rows(X: Any, rng: np.random.Generator, threads: int = 1) -> np.ndarray:
    """Rows without structure: :func:`without_structure` of the principal component scores of X.

    They are in the coordinates of :func:`component_scores`, which gives the rows to compare with.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, p), finite, float32 or float64
    rng : Generator
        Of the directions.
    threads : int, default=1

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [5.0, 2.0, 1.0]
    >>> null_rows(X, np.random.default_rng(1)).std(axis=0).round(0)
    array([5., 2., 1.])
    """
    return without_structure(component_scores(X, threads), rng)


def without_structure(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """z_i = s * r_p(i) u_i, with random unit vectors u, lengths r of the scaled rows, permuted.

    ``scores`` are uncorrelated columns of mean 0, s their deviations. A single column has no
    directions to draw; it becomes a Gaussian one.
    """
    e = exponent_for(largest_value(scores))
    scores = in_unit(scores, e)
    deviation = scores.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 0, deviation, 1.0)
    Z = rng.standard_normal(scores.shape)
    if scores.shape[1] > 1:
        lengths = np.linalg.norm(scores / scale, axis=1)
        Z *= (rng.permutation(lengths) / np.linalg.norm(Z, axis=1))[:, None]
    return in_unit((Z * deviation).astype(scores.dtype), -e)

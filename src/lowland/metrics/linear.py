"""How much of the data an affine function of the map reconstructs."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.units import exponent_for, in_unit, largest_value, restored
from lowland._core.validation import is_sparse
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import thin_svd
from lowland._engines.linalg.magnitude import near_one
from lowland._engines.linalg.moments import column_moments
from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured
from lowland.metrics._options import ComparisonKeywords


def explained_variance(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> Measured:
    """1 - min_{A, b} sum_i |x_i - A y_i - b|^2 / sum_i |x_i - mean|^2.

    The share of the data's variance that an affine function of the map explains. For a PCA map
    it is the sum of its explained variance ratios, which no other map of as many dimensions
    exceeds. A map that unrolls a curved surface may have a low value and be right.

    Cost O(n d q) for all rows; ``sample`` and ``metric`` are ignored, and X must be features.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
    **options
        See :class:`Comparison`.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(explained_variance(X, X[:, 2:]), 4)
    0.9323
    """
    total, left, n, _ = _variances(Comparison.of(X, Y, **options))
    return Measured(1 - left / total, 0.0, n)


def reconstruction_error(X: Any, Y: Any = None, **options: Unpack[ComparisonKeywords]) -> Measured:
    """min_{A, b} (1 / n) sum_i |x_i - A y_i - b|^2: what the best affine reading of the map misses.

    The mean squared distance of a row from its reconstruction, in the squared units of the data;
    (1 - :func:`explained_variance`) times the mean squared distance from the mean.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> round(reconstruction_error(X, X[:, 2:]), 4)
    0.3077
    """
    compared = Comparison.of(X, Y, **options)
    _, left, n, e = _variances(compared)
    greatest = largest_value(compared.data.table)
    error = restored(left / n, -2 * e, "the squared error", greatest, "lowland.metrics")
    return Measured(error, 0.0, n)


def _variances(compared: Comparison) -> tuple[float, float, int, int]:
    """sum |x - mean|^2, what the regression on the map leaves of it, n, and the exponent e.

    Extreme tables are squared in a unit of about their size: the sums are those of 2^e X.

    With Q an orthonormal basis of the centered map's columns the fit is Q Q^T X: it explains
    |Q^T X|^2.
    """
    X, Y = compared.data.table, compared.map.table
    if compared.data.metric == "precomputed":
        raise ParameterError(
            "metric='precomputed': explained variance needs the data, not their distances; "
            "see scale_normalized_stress for distances."
        )
    e = exponent_for(largest_value(X))
    X, Y = in_unit(X, e), near_one(Y)
    mean, squares = column_moments(X)
    total = float(squares.sum())
    if total == 0:
        raise DataError("X: all rows are equal; there is no variance to explain.")
    Y = Y.astype(np.float64)
    with compared.options.working():
        U, s, _ = thin_svd(Y - Y.mean(axis=0))
        Q = U[:, s > s.max(initial=0.0) * 1e-12] if s.max(initial=0.0) > 0 else U[:, :0]
        wide = X if is_sparse(X) else X.astype(np.float64, copy=False)
        explained = products.transpose_times(wide, mean, Q, compared.options.threads)
    return total, max(0.0, total - float((explained**2).sum())), compared.n, e

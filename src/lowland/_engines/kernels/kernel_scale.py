"""The scale gamma of a kernel, from the data: what the parameter ``gamma`` means for given rows.

    rbf        2 / s^2    s the median distance between rows: a Gaussian of width s / 2
    laplacian  2 / s      s the median sum of absolute differences
    poly       1 / m      m the mean of |x|^2, so that gamma x.x is about 1
    sigmoid    1 / (4 m)  tanh(gamma x.y + coef0) is curved, but not yet 1 everywhere

A fixed scale such as 1 / n_features suits standardized columns only: of other data all kernel
values are 0 or 1. A median, unlike a variance, does not follow a few rows far away. Twice as wide,
two rings with radii 1 and .3 stay mixed in two components; half as wide, maps of ordinary tables
keep fewer neighbors (``benchmarks/defaults.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from lowland._core.errors import ParameterError
from lowland._core.validation import is_sparse
from lowland._engines.distances.sparse_rows import row_squares

BY_COLUMNS = "1/p"  # the value of the parameter that means 1 / n_features

SAMPLE = 1000  # rows whose pairs represent all pairs; fewer of wide rows
LEAST_SAMPLE = 100
PAIR_TERMS = 100_000_000  # differences that are computed for a median

TINY = np.finfo(np.float64).tiny


def kernel_scale(
    rows: Any,
    kernel: Any,
    gamma: float | str | None,
    owner: str,
    size: float | None = None,
) -> float:
    """The number that the parameter ``gamma`` of a kernel method means for these rows.

    Of a larger table, the rows are those of :func:`sample_numbers`, and ``size`` is the mean of
    |x|^2 over all rows.
    """
    if gamma == BY_COLUMNS or kernel in ("precomputed", "linear", "cosine") or callable(kernel):
        return 1.0 / rows.shape[1]
    if gamma is not None and gamma != "median":
        return float(gamma)
    if kernel == "rbf":
        width = median_distance(rows, "euclidean") / (1.0 if gamma == "median" else 2.0)
        return 0.5 / max(width**2, TINY)
    if kernel == "laplacian":
        return (1.0 if gamma == "median" else 2.0) / median_distance(rows, "cityblock")
    if gamma == "median":
        raise ParameterError(
            f"{owner}: gamma='median' is for kernel='rbf' and 'laplacian', not {kernel!r}; "
            "give a number or None."
        )
    size = mean_square(rows) if size is None else size
    return (0.25 if kernel == "sigmoid" else 1.0) / (size if size > TINY else 1.0)


def median_distance(X: Any, metric: str) -> float:
    """The median distance of pairs of rows ("euclidean" or "cityblock"), from a sample of rows.

    Where most pairs are equal, the median of the others; 1 where all rows are equal.
    """
    distances = sample_distances(X, metric)
    median = float(np.median(distances)) if distances.size else 0.0
    if median == 0.0:
        distances = distances[distances > 0]
        median = float(np.median(distances)) if distances.size else 1.0
    return median


def sample_distances(X: Any, metric: str) -> np.ndarray:
    """Distances of the pairs of up to ``SAMPLE`` of the rows.

    The rows are drawn: every tenth row would meet one group only where groups take turns.
    """
    numbers = sample_numbers(*X.shape)
    sample = X if len(numbers) == X.shape[0] else X[numbers]
    if is_sparse(sample):
        sample = sample[:, np.flatnonzero(np.diff(sample.tocsc().indptr))].toarray()
    return pdist(np.asarray(sample, dtype=np.float64), metric)


def sample_numbers(n: int, p: int) -> np.ndarray:
    """Row numbers, ascending, of the rows whose pairs represent all pairs."""
    most = int(min(SAMPLE, max(LEAST_SAMPLE, np.sqrt(2 * PAIR_TERMS / p))))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def mean_square(rows: Any) -> float:
    """The mean of |x|^2."""
    with np.errstate(over="ignore"):  # values whose squares overflow are refused by their size
        if is_sparse(rows):
            return float(row_squares(rows).mean())
        return float(np.einsum("ij,ij->i", rows, rows, dtype=np.float64).mean())

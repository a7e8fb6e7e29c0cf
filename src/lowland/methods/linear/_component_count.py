"""How many components to keep: four rules, each a function of the variances in descending order."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from lowland._base.errors import ParameterError
from lowland._base.threads import limit_blas
from lowland._engines.linalg.eigen import eigenvalues
from lowland._engines.linalg.principal_axes import PrincipalAxes


def component_count(n_components: Any, found: PrincipalAxes, rng: np.random.Generator) -> int:
    """How many of the axes PCA keeps for its parameter ``n_components``."""
    n, p, variances = found.n_rows, len(found.mean), found.variances
    if n_components is None or isinstance(n_components, Integral):
        return len(variances)
    if n_components == "mle":
        if n <= p:
            raise ParameterError(
                f"PCA: n_components='mle' needs more rows than columns, not {n} rows and "
                f"{p} columns; use 'parallel' or 'optimal'."
            )
        return by_likelihood(variances, n)
    if n_components == "parallel":
        return by_parallel_analysis(variances, found.column_variances, n, rng)
    if n_components == "optimal":
        return by_singular_value_threshold(variances[: n - 1], n - 1, p)
    return by_share(variances, n_components)


def by_share(variances: np.ndarray, share: float) -> int:
    """The fewest components whose variances add up to at least ``share`` of the total."""
    reached = np.cumsum(variances) / variances.sum() if variances.sum() > 0 else np.ones(1)
    return min(int(np.searchsorted(reached, share)) + 1, len(variances))


def by_likelihood(variances: np.ndarray, count: int) -> int:
    """The number of components with the largest evidence by Minka's Laplace approximation.

    The evidence of probabilistic PCA is log p(D | k) for k = 1 .. d - 1 (Minka 2000, eq. 30), where
    the noise variance is the mean of the d - k variances that are left out. It needs all d
    variances and more than d rows. Directions without variance are never components.
    """
    from scipy.special import gammaln  # imported here: it takes longer than a small PCA

    d, n = len(variances), count
    floor = d * np.finfo(float).eps * max(variances[0], np.finfo(float).tiny)
    n_positive = int((variances > floor).sum())
    positive = np.maximum(variances, floor)
    best, best_rank = -np.inf, 1
    for k in range(1, min(d - 1, n_positive) + 1):
        noise = positive[k:].mean()
        i = np.arange(1, k + 1)
        angles = (d - i + 1) / 2
        log_prior = -k * np.log(2) + np.sum(gammaln(angles) - angles * np.log(np.pi))
        filled = np.where(np.arange(d) < k, positive, noise)
        row, column = np.nonzero(np.arange(d) > np.arange(k)[:, None])
        gaps = (positive[row] - positive[column]) * (1 / filled[column] - 1 / filled[row])
        # Equal variances make the volume of the posterior infinite; a floor keeps it finite.
        log_volume = np.sum(np.log(np.maximum(gaps, np.finfo(float).tiny)) + np.log(n))
        m = d * k - k * (k + 1) / 2
        evidence = (
            log_prior
            - n / 2 * np.sum(np.log(positive[:k]))
            - n * (d - k) / 2 * np.log(noise)
            + (m + k) / 2 * np.log(2 * np.pi)
            - log_volume / 2
            - k / 2 * np.log(n)
        )
        if evidence > best:
            best, best_rank = evidence, k
    return best_rank


def by_parallel_analysis(
    variances: np.ndarray,
    column_variances: np.ndarray,
    count: int,
    rng: np.random.Generator,
    n_draws: int = 20,
) -> int:
    """Horn's rule: keep components with more variance than those of independent columns.

    A component is kept while its variance is above the 95th percentile (Glorfeld 1995) of the same
    variance in data of independent columns with the same column variances. At least one component
    is kept.
    """
    threshold = chance_variances(column_variances, count, rng, n_draws)
    if threshold.size == 0:
        return 1
    above = variances[: threshold.size] > threshold[: len(variances)]
    return max(1, len(above) if above.all() else int(np.argmin(above)))


def chance_variances(
    column_variances: np.ndarray, count: int, rng: np.random.Generator, n_draws: int = 20
) -> np.ndarray:
    """The 95th percentile of each component's variance in data of independent normal columns.

    The scatter matrix of such data is drawn directly as a Wishart matrix by Bartlett's
    decomposition: A A^T with A lower triangular, chi on the diagonal and normal below. So the cost
    does not depend on the number of rows.
    """
    deviations = np.sqrt(column_variances[column_variances > 0])
    p, freedom = len(deviations), count - 1
    rank = min(p, freedom)
    if rank == 0:
        return np.empty(0)
    chance = np.empty((n_draws, rank))
    with limit_blas(1):
        for draw in chance:
            A = np.tril(rng.standard_normal((p, rank)), -1)
            A[np.arange(rank), np.arange(rank)] = np.sqrt(rng.chisquare(freedom - np.arange(rank)))
            A *= deviations[:, None]
            gram = A.T @ A  # has the same nonzero eigenvalues as A A^T and is never larger
            draw[:] = np.maximum(eigenvalues(gram), 0.0) / freedom
    return np.quantile(chance, 0.95, axis=0)


def by_singular_value_threshold(variances: np.ndarray, n_rows: int, n_columns: int) -> int:
    """Gavish and Donoho's optimal hard threshold for unknown noise. At least 1 is kept.

    It keeps singular values above omega(b) times their median, b = min(n, p) / max(n, p),
    omega(b) = lambda(b) / sqrt(mu_b): lambda(b) is the threshold for unit noise and mu_b the
    median of the Marchenko-Pastur law (Gavish & Donoho 2014, eq. 4 and 5). For a square matrix
    omega is 2.858.
    """
    aspect = min(n_rows, n_columns) / max(n_rows, n_columns)
    singular = np.sqrt(variances)
    kept = singular > threshold_coefficient(aspect) * np.median(singular)
    return max(1, int(kept.sum()))


def threshold_coefficient(aspect: float) -> float:
    """omega(b) of Gavish & Donoho for the aspect ratio b."""
    b = aspect
    root = 2 * (b + 1) + 8 * b / ((b + 1) + np.sqrt(b**2 + 14 * b + 1))
    return float(np.sqrt(root / _marchenko_pastur_median(b)))


def _marchenko_pastur_median(b: float) -> float:
    """The median of the Marchenko-Pastur distribution with aspect ratio b."""
    from scipy.integrate import quad  # imported here: it takes longer than a small PCA
    from scipy.optimize import brentq

    low, high = (1 - np.sqrt(b)) ** 2, (1 + np.sqrt(b)) ** 2

    def mass_below(x: float) -> float:
        # With t = low + (high - low) sin^2(a) the density is finite at both ends.
        end = np.arcsin(np.sqrt((x - low) / (high - low)))

        def density(a: float) -> float:
            t = low + (high - low) * np.sin(a) ** 2
            return (high - low) ** 2 * (np.sin(2 * a) / 2) * np.sin(2 * a) / (2 * np.pi * b * t)

        return quad(density, 0, end)[0]

    return float(brentq(lambda x: mass_below(x) - 0.5, low, high))

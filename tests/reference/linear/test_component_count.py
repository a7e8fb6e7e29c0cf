"""The rules for the number of components against their papers and other implementations."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA

from lowland.methods.linear import _component_count
from support.cases import each


def spectrum(X):
    return np.maximum(np.linalg.eigvalsh(np.cov(X, rowvar=False))[::-1], 0)


def planted(n, p, factors, noise=1.0, strength=8.0, seed=0):
    """Rows with so many factors, each well above the noise and spread over all columns."""
    rng = np.random.default_rng(seed)
    loadings = rng.choice([-1.0, 1.0], (factors, p)) / np.sqrt(p)
    scores = rng.standard_normal((n, factors)) * strength * np.linspace(1, 1.5, factors)
    return scores @ loadings + noise * rng.standard_normal((n, p))


# --- a share of the variance --------------------------------------------------------------------


@each(
    ("variances", "share", "kept"),
    [
        ([4, 3, 2, 1], 0.39, 1),
        ([4, 3, 2, 1], 0.4, 1),  # exactly reached is reached
        ([4, 3, 2, 1], 0.41, 2),
        ([4, 3, 2, 1], 0.95, 4),
        ([4, 3, 2, 1], 1e-9, 1),
        ([4, 3, 2, 1], 1 - 1e-12, 4),
        ([1, 0, 0], 0.999, 1),
        ([1, 1], 0.5, 1),
        ([5], 0.5, 1),
        ([0, 0, 0], 0.9, 1),  # no variance at all: any axis explains everything
    ],
)
def test_the_fewest_components_that_reach_the_share_are_kept(variances, share, kept):
    assert _component_count.by_share(np.array(variances, dtype=float), share) == kept


def test_rounding_in_the_sum_never_asks_for_more_components_than_there_are():
    variances = np.full(1000, 0.1)
    assert _component_count.by_share(variances, np.nextafter(1.0, 0.0)) in (999, 1000)


# --- Minka's evidence ---------------------------------------------------------------------------


TABLES = {
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data,
    "breast cancer": lambda: load_breast_cancer().data,
    "digits with varying pixels": lambda: _varying(load_digits().data),
    "digits with constant pixels": lambda: load_digits().data,
    "2 of 4, no noise": lambda: planted(50, 4, 2, noise=0.0),
    "3 of 10": lambda: planted(200, 10, 3),
    "7 of 12, short": lambda: planted(30, 12, 7),
    "1 of 5, weak": lambda: planted(500, 5, 1, strength=1.5),
    "noise": lambda: planted(100, 8, 0),
    "two columns": lambda: load_iris().data[:, :2],
}


def _varying(X):
    return X[:, X.std(axis=0) > 1]


@each("name", TABLES)
def test_the_evidence_rule_agrees_with_scikit_learn(name):
    X = TABLES[name]()
    expected = PCA(n_components="mle", svd_solver="full").fit(X).n_components_
    assert _component_count.by_likelihood(spectrum(X), len(X)) == expected


def naive_log_evidence(variances, n, k):
    """Minka (2000), eqs. 30 and 77 to 80, term by term."""
    from math import lgamma, log, pi

    d = len(variances)
    noise = sum(variances[k:]) / (d - k)
    log_p = -k * log(2)
    for i in range(1, k + 1):
        log_p += lgamma((d - i + 1) / 2) - (d - i + 1) / 2 * log(pi)
    log_p += -n / 2 * sum(log(v) for v in variances[:k]) - n * (d - k) / 2 * log(noise)
    m = d * k - k * (k + 1) / 2
    log_p += (m + k) / 2 * log(2 * pi) - k / 2 * log(n)
    smooth = [*variances[:k], *[noise] * (d - k)]
    for i in range(k):
        for j in range(i + 1, d):
            gap = (1 / smooth[j] - 1 / smooth[i]) * (variances[i] - variances[j])
            log_p -= (log(gap) + log(n)) / 2
    return log_p


@each("seed", range(5))
def test_the_evidence_rule_keeps_the_rank_of_largest_evidence(seed):
    variances = spectrum(planted(60, 9, 1 + seed, strength=2.0, seed=seed))
    evidence = [naive_log_evidence(variances, 60, k) for k in range(1, 9)]
    assert _component_count.by_likelihood(variances, 60) == 1 + int(np.argmax(evidence))


def test_the_evidence_rule_survives_zero_and_equal_variances():
    assert _component_count.by_likelihood(np.array([3.0, 2.0, 0.0, 0.0]), 50) == 2
    assert 1 <= _component_count.by_likelihood(np.ones(5), 50) <= 4
    assert _component_count.by_likelihood(np.array([2.0]), 50) == 1


# --- parallel analysis --------------------------------------------------------------------------


def parallel(X, seed=0, n_draws=20):
    variances = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2 / (len(X) - 1)
    rng = np.random.default_rng(seed)
    return _component_count.by_parallel_analysis(
        variances, X.var(axis=0, ddof=1), len(X), rng, n_draws
    )


@each("shape", [(300, 20), (60, 60), (40, 100)])
@each("factors", [1, 2, 4])
@each("seed", range(3))
def test_parallel_analysis_finds_the_planted_factors(shape, factors, seed):
    assert parallel(planted(*shape, factors, seed=seed), seed) == factors


@each("shape", [(300, 20), (60, 20), (40, 100)])
@each("seed", range(3))
def test_parallel_analysis_of_pure_noise_keeps_the_one_it_must(shape, seed):
    assert parallel(planted(*shape, 0, seed=seed), seed) == 1


def test_columns_of_unlike_spread_are_no_factors():
    # Against columns of equal variance the first three would stand out; they are independent.
    X = np.random.default_rng(0).standard_normal((400, 12))
    X[:, :3] *= [9.0, 7.0, 5.0]
    assert parallel(X) == 1


@each("shape", [(80, 10), (12, 30)])
@each("k", [1, 2, 4])
def test_the_drawn_spectra_are_those_of_independent_normal_columns(shape, k):
    """The threshold for component k + 1, found by bisection, against data drawn in full."""
    n, p = shape
    spread = np.linspace(0.5, 2, p)
    draws = np.random.default_rng(1).standard_normal((2000, n, p)) * spread
    draws -= draws.mean(axis=1, keepdims=True)
    chance = np.linalg.svd(draws, compute_uv=False)[:, k] ** 2 / (n - 1)
    low, high = 0.0, 2 * chance.max()
    for _ in range(10):
        tried = (low + high) / 2
        variances = np.r_[np.full(k, 1e9), tried, np.zeros(min(n, p) - k - 1)]
        rng = np.random.default_rng(2)
        kept = _component_count.by_parallel_analysis(variances, spread**2, n, rng, n_draws=400)
        low, high = (low, tried) if kept > k else (tried, high)
    # 400 draws give a 95th percentile to about 2 per cent; n instead of n - 1 would be 9 (n = 12).
    assert high == pytest.approx(np.quantile(chance, 0.95), rel=0.05)


def test_parallel_analysis_ignores_constant_columns():
    X = planted(200, 8, 2)
    padded = np.hstack([X, np.full((200, 3), 7.0)])
    assert parallel(padded) == parallel(X) == 2


def test_parallel_analysis_of_constant_data_keeps_one():
    assert parallel(np.ones((10, 4))) == 1


# --- Gavish and Donoho's threshold --------------------------------------------------------------


def test_the_threshold_of_a_square_matrix_is_2_858_medians():
    assert _component_count.threshold_coefficient(1.0) == pytest.approx(2.858, abs=5e-4)


@each(
    ("aspect", "published"),
    [(0.05, 1.5194), (0.1, 1.6089), (0.25, 1.8371), (0.5, 2.1711), (0.75, 2.5011), (0.9, 2.7099)],
)
def test_the_threshold_has_the_published_values(aspect, published):
    # Gavish & Donoho (2014), table IV, integrated numerically there: the third digit is safe
    assert _component_count.threshold_coefficient(aspect) == pytest.approx(published, abs=1e-3)


@each("shape", [(300, 200), (200, 200), (100, 400)])
@each("factors", [1, 5, 12])
def test_the_threshold_finds_the_planted_rank(shape, factors):
    X = planted(*shape, factors, noise=0.3)
    variances = np.linalg.svd(X, compute_uv=False) ** 2
    assert _component_count.by_singular_value_threshold(variances, *shape) == factors


def test_the_threshold_does_not_depend_on_the_scale_of_the_noise():
    X = planted(120, 80, 4)
    variances = np.linalg.svd(X, compute_uv=False) ** 2
    kept = {
        _component_count.by_singular_value_threshold(c * variances, 120, 80)
        for c in (1e-8, 1.0, 1e8)
    }
    assert kept == {4}


def test_one_huge_factor_does_not_hide_the_others():
    X = planted(120, 80, 4)
    X += 1e5 * np.outer(np.cos(np.arange(120)), np.sin(np.arange(80)))
    variances = np.linalg.svd(X, compute_uv=False) ** 2
    assert _component_count.by_singular_value_threshold(variances, 120, 80) == 5


def test_the_threshold_keeps_at_least_one():
    assert _component_count.by_singular_value_threshold(np.ones(10), 10, 10) == 1
    assert _component_count.by_singular_value_threshold(np.zeros(10), 10, 10) == 1
    assert _component_count.by_singular_value_threshold(np.array([4.0]), 1, 30) == 1

"""Sampled numbers come with honest errors: their 95 % intervals hold the exact value."""

import pickle
import tracemalloc

import numpy as np
import pytest

from lowland import metrics
from lowland.metrics import Comparison, Measured
from lowland.metrics._measured import from_pairs, from_rows
from support.cases import each

N = 3000
ROWS, SAMPLE, TRIALS = 1500, 300, 100  # a trial takes some of the first half of the rows


def table():
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    groups = rng.integers(0, 4, N)
    X = rng.gamma(2.0, size=(N, 10)) * (1.0 + np.arange(10)) ** -0.7
    X[:, :3] += 1.5 * groups[:, None] * [1, -0.5, 0.3]
    return X @ turn, groups


X, GROUPS = table()
Y = (X - X.mean(axis=0)) @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2].T

MEASURES = {
    "trustworthiness": lambda c: metrics.trustworthiness(c),
    "continuity": lambda c: metrics.continuity(c),
    "neighbor_recall": lambda c: metrics.neighbor_recall(c),
    "lcmc": lambda c: metrics.lcmc(c, None, 40),
    "false rank errors": lambda c: metrics.mean_relative_rank_errors(c).false,
    "missing rank errors": lambda c: metrics.mean_relative_rank_errors(c).missing,
    "rnx_auc": lambda c: metrics.rnx_auc(c),
    "raw_stress": lambda c: metrics.raw_stress(c),
    "scale_normalized_stress": lambda c: metrics.scale_normalized_stress(c),
    "sammon_stress": lambda c: metrics.sammon_stress(c),
    "kruskal_stress1": lambda c: metrics.kruskal_stress1(c),
    "spearman": lambda c: metrics.shepard_correlation(c),
    "pearson": lambda c: metrics.shepard_correlation(c, method="pearson"),
    "residual_variance": lambda c: metrics.residual_variance(c),
    "knn_accuracy": lambda c: metrics.knn_accuracy(c, GROUPS[:ROWS]),
    "neighborhood_hit": lambda c: metrics.neighborhood_hit(c, GROUPS[:ROWS]),
}


@pytest.fixture(scope="module")
def trials():
    few = X[:ROWS], Y[:ROWS]
    exact = Comparison(*few, sample=None)
    some = [Comparison(*few, sample=SAMPLE, random_state=seed) for seed in range(TRIALS)]
    return exact, some


@pytest.mark.slow
@each("name", MEASURES)
def test_intervals_hold_the_exact_value(name, trials):
    exact, some = trials
    truth = MEASURES[name](exact)
    assert truth.standard_error == 0.0
    assert truth.sample_size == ROWS
    found = [MEASURES[name](compared) for compared in some]
    covered = sum(low <= truth <= high for low, high in (value.interval() for value in found))
    assert covered >= 90, f"{covered} of {TRIALS}"
    # nor are they so wide that they hold anything
    spread, claimed = np.std(found), np.mean([value.standard_error for value in found])
    assert claimed < 1.5 * spread
    assert {value.sample_size for value in found} == {SAMPLE}


def test_the_curve_has_errors_too(trials):
    exact, some = trials
    truth = metrics.rnx_curve(exact)
    curves = [metrics.rnx_curve(compared) for compared in some[:40]]
    at = [0, 9, 99, 999]
    covered = [np.abs(c.values - truth.values)[at] <= 1.96 * c.standard_errors[at] for c in curves]
    assert (np.mean(covered, axis=0) >= 0.85).all()


def test_standard_errors_are_those_of_a_sample_without_replacement():
    m, n = 50, 80
    a = np.random.default_rng(0).gamma(1.0, size=m)
    expected = a.std(ddof=1) / np.sqrt(m) * np.sqrt(1 - m / n)
    assert from_rows(a, n).standard_error == pytest.approx(expected, rel=1e-12)
    # The mean over pairs of (a_i + a_j) / 2 is the mean of a. Seen from row i, the pairs have the
    # mean a_i / 2 (m - 2) / (m - 1) + constant.
    pairs = (a[:, None] + a) / 2
    of_rows = (pairs.sum(axis=1) - a) / (m - 1)
    found = from_pairs(float(a.mean()), of_rows, n)
    assert found.standard_error == pytest.approx(expected * (m - 2) / (m - 1), rel=1e-12)
    assert from_rows(a, m).standard_error == from_pairs(0.0, of_rows, m).standard_error == 0


def test_the_errors_of_the_curve_are_those_of_a_sample_without_replacement():
    n, m = 120, 90  # so many of all rows that the finite population counts
    compared = Comparison(X[:n], Y[:n], sample=m, random_state=3)
    K = np.arange(1, n - 1)
    rows = []
    for i in compared.rows:
        near = [np.argsort(np.linalg.norm(Z[:n] - Z[i], axis=1), kind="stable")[1:] for Z in (X, Y)]
        common = np.array([len(np.intersect1d(near[0][:k], near[1][:k])) / k for k in K])
        rows.append(((n - 1) * common - K) / (n - 1 - K))
    curve = metrics.rnx_curve(compared)
    np.testing.assert_allclose(curve.values, np.mean(rows, axis=0), atol=1e-9)
    expected = np.std(rows, axis=0, ddof=1) / np.sqrt(m) * np.sqrt(1 - m / n)
    np.testing.assert_allclose(curve.standard_errors, expected, atol=1e-9)
    assert not metrics.rnx_curve(Comparison(X[:n], Y[:n], sample=None)).standard_errors.any()


def test_a_seed_gives_the_same_sample_and_another_another():
    one, same, other = (Comparison(X, Y, sample=50, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.rows, same.rows)
    assert not np.array_equal(one.rows, other.rows)
    assert len(np.unique(one.rows)) == 50


def test_rows_are_sampled_only_if_all_of_them_cost_too_much(monkeypatch):
    assert not Comparison(X, Y).data.sampled
    monkeypatch.setattr("lowland.metrics._views.SECONDS", 1e-4)
    assert 100 <= len(Comparison(X, Y).rows) < N
    assert len(Comparison(X, Y, sample=None).rows) == N
    assert len(Comparison(X, Y, sample=N + 1).rows) == N
    assert len(Comparison(X, Y, sample=7).rows) == 7


def test_sampled_rows_are_compared_with_all_others():
    """The sampled mean is the mean of the exact values of those rows."""
    compared = Comparison(X, Y, sample=100)
    whole = metrics.point_trust(X, Y, 10)
    assert metrics.trustworthiness(compared) == pytest.approx(whole[compared.rows].mean())


def test_sampled_rows_know_themselves_among_many_copies():
    copies = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 40, axis=0)
    compared = Comparison(copies, copies, sample=60)
    near = compared.data_neighbors(7)
    assert not (near == compared.rows[:, None]).any()
    assert metrics.trustworthiness(compared) == 1.0


@pytest.mark.parametrize(
    "measure",
    [
        metrics.trustworthiness,
        metrics.continuity,
        metrics.neighbor_recall,
        metrics.mean_relative_rank_errors,
        metrics.rnx_auc,
        metrics.scale_normalized_stress,
        metrics.residual_variance,
    ],
)
def test_exact_numbers_need_no_square_array(measure):
    """5 000 rows have 25 million pairs: 200 MB of distances, 25 MB if a pair were one byte."""
    rng = np.random.default_rng(0)
    both = rng.normal(size=(5000, 10)), rng.normal(size=(5000, 2))
    measure(both[0][:50], both[1][:50])  # what is imported and packed once does not count
    tracemalloc.start()
    measure(*both)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_progress_is_shown_on_demand(capsys):
    metrics.trustworthiness(X, Y, verbose=True)
    shown = capsys.readouterr()
    assert "metrics" in shown.err
    assert "ranks" in shown.err
    assert shown.out == ""
    metrics.trustworthiness(X, Y)
    assert capsys.readouterr().err == ""


def test_measured_is_a_float():
    value = Measured(0.25, 0.01, 40)
    assert value == 0.25
    assert repr(value) == "0.25"
    assert f"{value:.1f}" == "0.2"
    assert value + 1 == 1.25
    again = pickle.loads(pickle.dumps(value))
    assert (again, again.standard_error, again.sample_size) == (0.25, 0.01, 40)
    low, high = value.interval(0.6827)
    assert (low, high) == pytest.approx((0.24, 0.26), abs=1e-5)


@pytest.mark.parametrize("sample", [1, 0, -5, 2.5, "some", True])
def test_samples_that_are_none_are_refused(sample):
    with pytest.raises(ValueError, match="sample="):
        metrics.trustworthiness(X, Y, sample=sample)

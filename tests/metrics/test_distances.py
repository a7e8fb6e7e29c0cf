"""Stress, Shepard, residual variance: against definitions, golden values and closed forms."""

import numpy as np
import pytest

from lowland import metrics
from lowland.datasets import eurodist
from lowland.metrics import Comparison
from support.cases import each

# Four points for the values of objectives, computed by hand-written formulas elsewhere.
FOUR = np.array([[0, 0, 0], [1, 0, 0.2], [1.3, 1, 0], [0, 1.1, 2]])
FOUR_MAP = np.array([[0, 0], [1, 0.1], [1.2, 1], [0.1, 0.6]])

EXACT = {"rel": 1e-9, "abs": 1e-12}


def test_stresses_are_their_definitions(varied, oracle):
    X, Y, D, d = varied.X, varied.Y, varied.D, varied.d
    assert metrics.raw_stress(X, Y) == pytest.approx(oracle.raw_stress(D, d), **EXACT)
    assert metrics.sammon_stress(X, Y) == pytest.approx(oracle.sammon(D, d), **EXACT)
    assert metrics.scale_normalized_stress(X, Y) == pytest.approx(
        oracle.scaled_stress(D, d), rel=1e-7
    )


@each("ties", ["primary", "secondary", "index"])
def test_kruskals_stress_is_its_definition(ties, varied, oracle):
    found = metrics.kruskal_stress1(varied.X, varied.Y, disparities=ties)
    expected = oracle.kruskal(varied.D, varied.d, ties)
    if varied.name == "projection" or ties != "secondary" or varied.name == "tied":
        assert found == pytest.approx(expected, **EXACT)
    else:  # distances equal on paper may differ in the last digit of either computation
        assert found == pytest.approx(expected, rel=1e-6)


def test_correlations_are_their_definitions(varied, oracle):
    X, Y, D, d = varied.X, varied.Y, varied.D, varied.d
    r, rho = oracle.pearson(D, d), oracle.spearman(D, d)
    assert metrics.shepard_correlation(X, Y) == pytest.approx(rho, **EXACT)
    assert metrics.shepard_correlation(X, Y, method="pearson") == pytest.approx(r, **EXACT)
    assert metrics.residual_variance(X, Y) == pytest.approx(1 - r**2, **EXACT)


def test_points_have_their_own_stress(varied):
    D, d = varied.D, varied.d
    c = (D * d).sum() / (d**2).sum()
    expected = np.sqrt(((D - c * d) ** 2).sum(axis=1) / (D**2).sum(axis=1))
    assert metrics.point_stress(varied.X, varied.Y) == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_golden_values_of_four_points():
    both = Comparison(FOUR, FOUR_MAP)
    assert metrics.sammon_stress(both) == pytest.approx(0.2424194852, abs=5e-11)
    assert metrics.raw_stress(both) == pytest.approx(6.0133842766, abs=5e-11)
    assert metrics.kruskal_stress1(both, disparities="metric") == pytest.approx(
        0.9203018700, abs=5e-11
    )


def test_golden_values_of_eurodist():
    """MASS::sammon prints 0.01705 at the classical start; ties: see Kruskal (1964)."""
    D = eurodist().X
    Y = classical_map(D)
    both = Comparison(D, Y, metric="precomputed")
    assert metrics.sammon_stress(both) == pytest.approx(0.0170457, abs=5e-8)
    expected = {"primary": 7.439208, "secondary": 7.549911, "index": 7.505733}
    for ties, percent in expected.items():
        found = 100 * metrics.kruskal_stress1(both, disparities=ties)
        assert found == pytest.approx(percent, abs=5e-7)


def classical_map(D):
    """Classical scaling in two dimensions."""
    H = np.eye(len(D)) - 1 / len(D)
    values, vectors = np.linalg.eigh(-H @ D**2 @ H / 2)
    return vectors[:, :-3:-1] * np.sqrt(values[:-3:-1])


# --- what is known without computing -----------------------------------------------------------


def test_the_identity_has_no_stress(irregular):
    X = irregular(80, 4)
    both = Comparison(X, X)
    assert metrics.raw_stress(both) == 0.0
    assert metrics.sammon_stress(both) == 0.0
    assert metrics.scale_normalized_stress(both) == pytest.approx(0, abs=1e-14)
    assert metrics.kruskal_stress1(both) == 0.0
    assert metrics.shepard_correlation(both) == pytest.approx(1, abs=1e-14)
    assert metrics.residual_variance(both) == pytest.approx(0, abs=1e-12)
    assert metrics.point_stress(both) == pytest.approx(np.zeros(80), abs=1e-14)


def test_the_diagram_holds_the_pairs_in_order_with_a_monotone_fit(irregular):
    X, Y = irregular(40, 4), irregular(40, 2, seed=1)
    whole = metrics.shepard_diagram(X, Y, n_pairs=None)
    assert len(whole.data) == 40 * 39 // 2
    assert (np.diff(whole.data) >= 0).all()
    assert (np.diff(whole.fit) >= 0).all()
    stress = np.sqrt(((whole.map - whole.fit) ** 2).sum() / (whole.map**2).sum())
    assert stress == pytest.approx(metrics.kruskal_stress1(X, Y))
    some = metrics.shepard_diagram(X, Y, n_pairs=100)
    assert len(some.data) == 100
    assert np.isin(some.map, whole.map).all()


@pytest.mark.parametrize("metric", ["cosine", "manhattan", "correlation", "sqeuclidean"])
def test_the_metric_of_the_data_counts(metric, irregular, metric_distances):
    X, Y = irregular(60, 5), irregular(60, 2, seed=1)
    given = Comparison(metric_distances(X, metric), Y, metric="precomputed")
    both = Comparison(X, Y, metric=metric)
    for measure in (metrics.raw_stress, metrics.sammon_stress, metrics.shepard_correlation):
        assert measure(both) == pytest.approx(measure(given), rel=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
def test_sparse_rows_have_the_same_distances(metric):
    import scipy.sparse

    rng = np.random.default_rng(0)
    X = rng.poisson(0.8, (80, 40)) * rng.random((80, 40))  # no two rows at right angles
    X[30:40], X[50] = X[:10], 0.0
    Y = rng.normal(size=(80, 2))
    sparse = Comparison(scipy.sparse.csr_matrix(X), Y, metric=metric)
    dense = Comparison(X, Y, metric=metric)
    for measure in (metrics.raw_stress, metrics.sammon_stress, metrics.shepard_correlation):
        assert measure(sparse) == pytest.approx(measure(dense), rel=1e-9)


@each("metric", ["euclidean", "cosine", "manhattan", "precomputed"])
@each("rows_at_once", [1, 7, 24, 31])
def test_blocks_of_any_size_have_the_same_sums(
    rows_at_once, metric, irregular, metric_distances, monkeypatch
):
    X, Y = irregular(101, 5), irregular(101, 2, seed=1)
    X = metric_distances(X, "euclidean") if metric == "precomputed" else X
    whole = Comparison(X, Y, metric=metric).distance_sums(0.8)
    monkeypatch.setattr("lowland._engines.distances.distance_rows.CACHED", 1)
    monkeypatch.setattr("lowland._engines.distances.distance_rows.BUSY_ROWS", rows_at_once)
    by_blocks = Comparison(X, Y, metric=metric).distance_sums(0.8)
    for a, b in zip(by_blocks, whole, strict=True):
        assert a == pytest.approx(b, rel=1e-12)
    some = Comparison(X, Y, metric=metric, sample=40)
    for a, b in zip(some.distance_sums(0.8), whole, strict=True):
        assert a == pytest.approx(b[some.rows], rel=1e-12)


# --- limits ------------------------------------------------------------------------------------


def test_a_constant_map_has_the_documented_limits(irregular):
    X, Y = irregular(30, 3), np.full((30, 2), 4.2)
    assert metrics.scale_normalized_stress(X, Y) == 1.0
    assert metrics.shepard_correlation(X, Y) == 0.0
    assert metrics.shepard_correlation(X, Y, method="pearson") == 0.0
    assert metrics.residual_variance(X, Y) == 1.0
    assert metrics.sammon_stress(X, Y) == pytest.approx(1.0)
    assert metrics.point_stress(X, Y) == pytest.approx(np.ones(30))
    with pytest.raises(ValueError, match="Y: all points of the map are equal"):
        metrics.kruskal_stress1(X, Y)


@pytest.mark.parametrize(
    "measure", [metrics.sammon_stress, metrics.scale_normalized_stress, metrics.residual_variance]
)
def test_data_without_distances_are_refused(measure, irregular):
    with pytest.raises(ValueError, match="X: all rows are equal"):
        measure(np.ones((30, 3)), irregular(30, 2))


def test_all_pairs_at_once_are_refused_when_they_do_not_fit(irregular, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1MB")
    with pytest.raises(MemoryError, match=r"all pairs of 300 rows needs .* sample=2000"):
        metrics.kruskal_stress1(irregular(300, 3), irregular(300, 2))


def test_sums_of_distances_are_shared_and_those_of_a_scaled_map_are_not(irregular):
    X, Y = irregular(40, 5), irregular(40, 2, seed=1)
    shared = Comparison(X, Y)
    first, scaled = shared.distance_sums(), shared.distance_sums(3.0)
    assert shared.distance_sums() is first
    np.testing.assert_allclose(scaled.gap2, Comparison(X, 3.0 * Y).distance_sums().gap2)
    assert not np.allclose(scaled.gap2, first.gap2)


@each("unit", [2.0**-200, 2.0**200])
def test_the_fit_of_a_shepard_diagram_has_the_unit_of_the_map(irregular, unit):
    X, Y = irregular(30, 4), irregular(30, 2, seed=1)
    plain, other = (metrics.shepard_diagram(X, Y * u) for u in (1.0, unit))
    np.testing.assert_allclose(other.fit, unit * plain.fit, rtol=1e-12)

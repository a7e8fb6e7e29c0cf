"""A Python function as a metric: its values are distances, or they are refused where they arise."""

from __future__ import annotations

import numpy as np
import pytest

from lowland import metrics
from lowland._base import registry
from lowland._engines.distances.metrics import CALLS
from lowland.errors import LowlandError, ParameterError, StoppedError
from lowland.neighbors import knn_graph, knn_query
from support.cases import each
from support.methods import dimensions, small

METHODS = [method for method in registry.all_methods() if "metric" in method.parameters()]
ROWS = np.random.default_rng(7).gamma(2.0, size=(24, 4)) * [1, 3, 0.5, 1]

with_a_metric = each("method", METHODS, ids=[method.__name__ for method in METHODS])


def euclidean(a, b):
    return float(np.sqrt(((a - b) ** 2).sum()))


def except_for_one_pair(value):
    """Euclidean distances, but another value for rows 3 and 11, in both directions."""

    def metric(a, b):
        pair = {a.tobytes(), b.tobytes()}
        return value if pair == {ROWS[3].tobytes(), ROWS[11].tobytes()} else euclidean(a, b)

    return metric


def make(method, **params):
    quick = {"max_iter": 3} if "max_iter" in method.parameters() else {}
    usual = {"n_components": dimensions(method), "random_state": 0, **small(method, 6, 3.0)}
    return method(**{**usual, **quick, **params})


NO_DISTANCES = {
    "negative": -1.0,
    "NaN": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "text": "1.0",
    "nothing": None,
    "complex": 1 + 1j,
    "an array of one": np.ones(1),
    "an array": np.ones(3),
    "an integer beyond float64": 10**400,
}


@each("value", NO_DISTANCES.values(), ids=list(NO_DISTANCES))
@with_a_metric
def test_a_value_that_is_no_distance_is_refused_with_its_rows(method, value):
    with pytest.raises(ParameterError, match=r"metric: the function metric gave .* for the rows"):
        make(method, metric=except_for_one_pair(value)).fit(ROWS)


@each("value", [-1.0, np.nan, None])
@each("search", [knn_graph, knn_query])
def test_so_it_is_in_a_search(search, value):
    with pytest.raises(ParameterError, match="metric") as caught:
        search(*[ROWS] * (2 if search is knn_query else 1), 3, metric=except_for_one_pair(value))
    rows = {row.tobytes() for row in caught.value.rows}
    assert rows == {ROWS[3].tobytes(), ROWS[11].tobytes()}


MEASURES = [
    metrics.trustworthiness,
    metrics.rnx_auc,
    metrics.raw_stress,
    metrics.kruskal_stress1,
    metrics.residual_variance,
    metrics.quality,
]


@each("value", [-1.0, np.nan, "1.0"])
@each("measure", MEASURES)
def test_so_it_is_in_a_measure(measure, value):
    with pytest.raises(ParameterError, match="metric: the function"):
        measure(ROWS, ROWS[:, :2], metric=except_for_one_pair(value))


@each("measure", [metrics.hubness, metrics.distance_concentration, metrics.intrinsic_dimension])
def test_so_it_is_in_a_measure_of_one_table(measure):
    with pytest.raises(ParameterError, match="metric: the function"):
        measure(ROWS, metric=lambda a, b: -euclidean(a, b))


def test_so_it_is_in_a_measure_of_labels():
    with pytest.raises(ParameterError, match="metric: the function"):
        metrics.silhouette(ROWS, np.arange(24) % 3, metric=except_for_one_pair(-1.0))


@with_a_metric
def test_numbers_of_every_kind_are_distances(method):
    def of_kind(kind):
        return lambda a, b: kind(euclidean(a, b) // 0.25)

    ordinary = make(method, metric=of_kind(float)).fit_transform(ROWS)
    for kind in (int, np.float32, np.array):
        found = make(method, metric=of_kind(kind)).fit_transform(ROWS)
        np.testing.assert_array_equal(found, ordinary)


class MineError(Exception):
    pass


@with_a_metric
def test_what_the_function_raises_comes_through(method):
    def raises(a, b):
        raise MineError("of the function")

    with pytest.raises(MineError, match="of the function"):
        make(method, metric=raises).fit(ROWS)


@with_a_metric
def test_the_function_cannot_change_the_data(method):
    def writes(a, b):
        a[0] = 100.0
        return 1.0

    before = ROWS.copy()
    with pytest.raises(ValueError, match="read-only"):
        make(method, metric=writes).fit(ROWS)
    np.testing.assert_array_equal(ROWS, before)


@with_a_metric
def test_a_function_of_other_arguments_is_refused_by_name(method):
    with pytest.raises(ParameterError, match=r"metric: the function .* cannot be called with two"):
        make(method, metric=lambda a: 1.0).fit(ROWS)
    with pytest.raises(ParameterError, match=r"metric_params=\{'foo': 1\}"):
        make(method, metric=euclidean, metric_params={"foo": 1}).fit(ROWS)


@with_a_metric
def test_a_run_can_be_cancelled_between_calls(method):
    """A phase looks at the monitor every few thousand calls, not once per tile of millions."""
    X = np.random.default_rng(0).standard_normal((300, 3))
    calls = 0

    def metric(a, b):
        nonlocal calls
        calls += 1
        if calls == 10:
            assert estimator.cancel()
        return abs(a[0] - b[0]) + abs(a[1] - b[1])

    estimator = make(method, metric=metric)
    with pytest.raises(StoppedError):
        estimator.fit(X)
    assert calls <= 2 * CALLS  # all pairs are 90 000


ALL_PAIRS = [
    method for method in METHODS if method.family() == "mds" and method.__name__ != "LandmarkMDS"
]


@each("method", [*ALL_PAIRS, registry.get("DiffusionMaps")])
def test_a_function_that_is_not_symmetric_is_refused_where_all_pairs_are_used(method):
    def one_way(a, b):
        return euclidean(a, b) * (2.0 if a[0] > b[0] else 1.0)

    with pytest.raises(ParameterError, match=r"metric: the function one_way is not symmetric"):
        make(method, metric=one_way).fit(ROWS)


@each("value", [1e80, 1e-80, 5e-324])
@with_a_metric
def test_values_that_are_too_large_or_small_to_be_squared_are_refused(method, value):
    with pytest.raises(ParameterError, match=r"a distance must be one number, 0 or between 1e-75"):
        make(method, metric=lambda a, b: value * (euclidean(a, b) // 0.25)).fit(ROWS)


# --- kernels -------------------------------------------------------------------------------------


@each("value", ["1.0", None, 1j, np.ones(1), [1.0]])
def test_a_kernel_gives_numbers_or_is_refused_by_name(value):
    with pytest.raises(ParameterError, match=r"kernel: the function gave .* for rows"):
        registry.get("KernelPCA")(2, kernel=lambda a, b: value).fit(ROWS)


def test_a_kernel_gives_finite_numbers_of_two_rows_that_it_cannot_change():
    kernel_pca = registry.get("KernelPCA")
    with pytest.raises(LowlandError, match="kernel: the function gave inf"):
        kernel_pca(2, kernel=lambda a, b: 10**400).fit(ROWS)
    with pytest.raises(ParameterError, match=r"kernel: the function .* cannot be called with two"):
        kernel_pca(2, kernel=lambda a: 1.0).fit(ROWS)

    def writes(a, b):
        a[0] = 100.0
        return 1.0

    with pytest.raises(ValueError, match="read-only"):
        kernel_pca(2, kernel=writes).fit(ROWS)

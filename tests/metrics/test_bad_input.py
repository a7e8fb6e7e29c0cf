"""Bad input ends in one error that names what is wrong."""

import numpy as np
import pytest
import scipy.sparse

import lowland
from lowland import metrics
from lowland.errors import LowlandError
from lowland.metrics import Comparison
from lowland.neighbors import knn_graph, knn_query
from support.cases import each

TWO_SIDED = [
    metrics.trustworthiness,
    metrics.continuity,
    metrics.neighbor_recall,
    metrics.lcmc,
    metrics.mean_relative_rank_errors,
    metrics.coranking_matrix,
    metrics.rnx_curve,
    metrics.rnx_auc,
    metrics.raw_stress,
    metrics.scale_normalized_stress,
    metrics.sammon_stress,
    metrics.kruskal_stress1,
    metrics.shepard_correlation,
    metrics.shepard_diagram,
    metrics.residual_variance,
    metrics.explained_variance,
    metrics.reconstruction_error,
    metrics.point_trust,
    metrics.point_continuity,
    metrics.point_stress,
    metrics.missing_neighbors,
    metrics.strangers,
    metrics.point_home,
    metrics.quality,
]


every_measure = each("measure", TWO_SIDED)


@every_measure
def test_different_numbers_of_rows(measure, irregular):
    with pytest.raises(ValueError, match="Y has 29 rows, but X has 30"):
        measure(irregular(30, 3), irregular(29, 2))


@every_measure
def test_nan_and_infinity(measure, irregular):
    X, Y = irregular(30, 3), irregular(30, 2)
    bad = Y.copy()
    bad[4, 1] = np.nan
    with pytest.raises(ValueError, match="Y contains NaN: column 1, first in row 4"):
        measure(X, bad)
    with pytest.raises(ValueError, match="X contains infinity"):
        measure(np.where(X[3, 2] == X, np.inf, X), Y)


@every_measure
def test_a_missing_map_and_a_map_too_many(measure, irregular):
    X, Y = irregular(30, 3), irregular(30, 2)
    with pytest.raises(ValueError, match="give the map"):
        measure(X)
    with pytest.raises(ValueError, match="X is a Comparison"):
        measure(Comparison(X, Y), Y)
    with pytest.raises(ValueError, match="sample: X is a Comparison"):
        measure(Comparison(X, Y), sample=5)


@every_measure
def test_unknown_options_and_metrics(measure, irregular):
    X, Y = irregular(30, 3), irregular(30, 2)
    with pytest.raises(TypeError, match="metrik"):
        measure(X, Y, metrik="cosine")
    with pytest.raises(ValueError, match="unknown metric 'cosin'; did you mean 'cosine'"):
        measure(X, Y, metric="cosin")
    with pytest.raises(ValueError, match="n_jobs=0"):
        measure(X, Y, n_jobs=0)
    with pytest.raises(ValueError, match="random_state=-1"):
        measure(X, Y, random_state=-1)


@every_measure
def test_tables_of_the_wrong_kind(measure, irregular):
    X = irregular(30, 3)
    with pytest.raises(ValueError, match="2D array"):
        measure(X, X[:, 0])
    with pytest.raises(TypeError, match="Sparse data was passed as Y"):
        measure(X, scipy.sparse.csr_array(X))
    with pytest.raises(ValueError, match="n_samples=2"):
        measure(X[:2], X[:2])


@pytest.mark.parametrize("measure", TWO_SIDED[:2] + TWO_SIDED[4:5])
def test_neighborhoods_of_half_the_rows_or_more(measure, irregular):
    X, Y = irregular(30, 3), irregular(30, 2)
    measure(X, Y, 14)
    for k in (15, 40):
        with pytest.raises(ValueError, match=f"n_neighbors={k} is too many for 30 rows, because"):
            measure(X, Y, k)


@each("measure", TWO_SIDED[:5])
@each("k", [0, -1, 2.5, "5", True, None, [], [3, 0], [[1, 2]]])
def test_neighborhoods_that_are_none(measure, k, irregular):
    with pytest.raises(ValueError, match="n_neighbors="):
        measure(irregular(30, 3), irregular(30, 2), k)


def test_as_many_neighbors_as_rows(irregular):
    X = irregular(30, 3)
    with pytest.raises(ValueError, match="too many for 30 rows; expected 1 to 29"):
        metrics.neighbor_recall(X, X, 30)
    with pytest.raises(ValueError, match="at least 4 rows"):
        metrics.rnx_auc(X[:3], X[:3])


def test_matrices_that_are_no_distances(irregular):
    Y = irregular(30, 2)
    with pytest.raises(ValueError, match="square"):
        metrics.raw_stress(irregular(30, 3), Y, metric="precomputed")
    with pytest.raises(ValueError, match="distances >= 0"):
        metrics.raw_stress(-np.ones((30, 30)), Y, metric="precomputed")
    with pytest.raises(ValueError, match="symmetric"):
        metrics.rnx_auc(np.arange(900.0).reshape(30, 30), Y, metric="precomputed")


def test_graphs_of_queries_and_measures_of_distances(irregular):
    X, Y = irregular(30, 3), irregular(30, 2)
    with pytest.raises(ValueError, match="queries among 30 rows"):
        metrics.continuity(knn_query(X, X[:10], 5), Y[:10])
    for measure in (metrics.raw_stress, metrics.rnx_auc, metrics.explained_variance):
        with pytest.raises(ValueError, match="neighbor graph"):
            measure(knn_graph(X, 5), Y)


def test_unknown_choices(irregular):
    X, Y = irregular(30, 3), irregular(30, 2)
    with pytest.raises(ValueError, match="unknown disparities 'first'"):
        metrics.kruskal_stress1(X, Y, disparities="first")
    with pytest.raises(ValueError, match="did you mean 'pearson'"):
        metrics.shepard_correlation(X, Y, method="person")


def test_the_coranking_matrix_is_refused_when_it_does_not_fit(irregular, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100kB")
    with pytest.raises(MemoryError, match="ask for its corner"):
        metrics.coranking_matrix(irregular(200, 3), irregular(200, 2))


class Raising:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


NO_TABLES = {
    "masked": np.ma.masked_greater(np.random.default_rng(0).random((30, 3)), 0.5),
    "ragged": [[1.0, 2.0], [3.0]] * 15,
    "raises": Raising(),
    "beyond float64": np.full((30, 3), 10**400, dtype=object),
    "times": np.zeros((30, 3), "M8[s]"),
}


@each("bad", NO_TABLES.values(), ids=list(NO_TABLES))
@every_measure
def test_containers_that_are_no_tables(measure, bad, irregular):
    with pytest.raises(LowlandError, match="X"):
        measure(bad, irregular(30, 2))
    with pytest.raises(LowlandError, match="Y"):
        measure(irregular(30, 3), bad)


@each("bad", NO_TABLES.values(), ids=list(NO_TABLES))
@each("search", [knn_graph, lambda X, k: knn_query(X, X, k)], ids=["graph", "query"])
def test_so_it_is_in_a_search(search, bad):
    with pytest.raises(LowlandError, match="X"):
        search(bad, 3)


NO_OPTIONS = [
    ("verbose", np.ones(3)),
    ("verbose", "yes"),
    ("sample", np.ones(3)),
    ("sample", "all"),
    ("metric", np.ones(3)),
    ("metric_params", np.ones((2, 2))),
    ("metric_params", [1]),
    ("metric_params", {"foo": 1}),
    ("metric_params", {"p": 3}),
    ("n_jobs", 10**6),
    ("n_jobs", 2**31),
    ("n_jobs", "many"),
    ("random_state", np.ones(3)),
    ("map_seconds", 10**400),
]


@each(("option", "value"), NO_OPTIONS, ids=[f"{option}={value}" for option, value in NO_OPTIONS])
@every_measure
def test_options_of_the_wrong_kind_are_refused_by_name(measure, option, value, irregular):
    with pytest.raises(LowlandError, match=option):
        measure(irregular(30, 3), irregular(30, 2), **{option: value})


@each("p", [-1, 0.5, np.nan, np.inf, "2", None, 10**400, [2]])
def test_exponents_that_are_none_are_refused_by_name(p, irregular):
    X = irregular(30, 3)
    params = {"metric": "minkowski", "metric_params": {"p": p}}
    for call in (
        lambda: metrics.rnx_auc(X, X[:, :2], **params),
        lambda: knn_graph(X, 3, **params),
        lambda: lowland.Isomap(n_neighbors=5, **params).fit(X),
        lambda: lowland.MDS(**params).fit(X),
    ):
        with pytest.raises(LowlandError, match="metric_params="):
            call()


@each("value", [np.ones(3), None, 5, ["spearman"]])
def test_names_of_the_wrong_kind(value, irregular):
    X, Y = irregular(30, 3), irregular(30, 2)
    with pytest.raises(LowlandError, match="unknown method"):
        metrics.shepard_correlation(X, Y, method=value)
    with pytest.raises(LowlandError, match="unknown disparities"):
        metrics.kruskal_stress1(X, Y, disparities=value)
    with pytest.raises(LowlandError, match="unknown method"):
        metrics.intrinsic_dimension(X, method=value)
    with pytest.raises(LowlandError, match="unknown method"):
        knn_graph(X, 3, method=value)


@each("measure", [metrics.knn_accuracy, metrics.neighborhood_hit, metrics.silhouette])
def test_labels_that_are_none(measure, irregular):
    X, labels = irregular(30, 3), np.arange(30) % 3
    for bad in (
        np.ma.masked_equal(labels, 1),
        [[1], [1, 2]] * 15,
        Raising(),
        np.array(["a", 1] * 15, dtype=object),
        labels[:-1],
        None,
    ):
        with pytest.raises(LowlandError, match="labels"):
            measure(X, bad)

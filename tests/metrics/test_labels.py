"""Labels in a map, beside scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_score
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from lowland import metrics
from lowland.metrics import Comparison
from lowland.neighbors import knn_graph


@pytest.fixture
def labeled(irregular):
    Y = irregular(120, 2)
    labels = np.array(["b", "a", "c"])[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))]
    return Y, labels


@pytest.mark.parametrize("k", [1, 2, 9, 30])
def test_accuracy_is_that_of_a_classifier_that_leaves_each_row_out(k, labeled):
    Y, labels = labeled
    theirs = cross_val_score(KNeighborsClassifier(k), Y, labels, cv=LeaveOneOut()).mean()
    assert metrics.knn_accuracy(Y, labels, k) == pytest.approx(theirs, abs=1e-12)


def test_hits_are_counted(labeled):
    Y, labels = labeled
    D = np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1, kind="stable")
    found = metrics.neighborhood_hit(Y, labels, [4, 40])
    for k, value in zip([4, 40], found, strict=True):
        expected = np.mean([(labels[near[i, :k]] == labels[i]).mean() for i in range(120)])
        assert value == pytest.approx(expected, abs=1e-12)


def test_the_silhouette_is_scikit_learns(labeled):
    Y, labels = labeled
    assert metrics.silhouette(Y, labels) == pytest.approx(silhouette_score(Y, labels), abs=1e-12)
    expected = silhouette_score(Y, labels, metric="cosine")
    assert metrics.silhouette(Y, labels, metric="cosine") == pytest.approx(expected, abs=1e-12)


def test_silhouettes_of_distances_and_of_samples(labeled):
    Y, labels = labeled
    D = np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(axis=-1))
    given = metrics.silhouette(D, labels, metric="precomputed")
    assert given == pytest.approx(metrics.silhouette(Y, labels))
    some = metrics.silhouette(D, labels, metric="precomputed", sample=60)
    assert some == pytest.approx(metrics.silhouette(Y, labels, sample=60))
    assert abs(some - given) < 4 * some.standard_error
    with pytest.raises(ValueError, match="this measure needs the data"):
        metrics.silhouette(knn_graph(Y, 5), labels)
    assert metrics.knn_accuracy(knn_graph(Y, 5), labels, 5) == metrics.knn_accuracy(Y, labels, 5)


def test_sampled_rows_have_their_own_labels(labeled):
    Y, labels = labeled
    compared = Comparison(Y, Y, sample=40, random_state=1)
    D = np.sqrt(((Y[:, None] - Y[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1, kind="stable")[:, :7]
    hits = [(labels[near[i]] == labels[i]).mean() for i in compared.rows]
    assert metrics.neighborhood_hit(compared, labels, 7) == pytest.approx(np.mean(hits), abs=1e-12)
    nearest = np.mean([labels[near[i, 0]] == labels[i] for i in compared.rows])
    assert metrics.knn_accuracy(compared, labels, 1) == pytest.approx(nearest, abs=1e-12)


def test_pure_and_mixed_neighborhoods():
    Y = np.repeat([[0.0], [100.0]], 20, axis=0) + np.linspace(0, 1, 40)[:, None]
    pure = np.repeat(["x", "y"], 20)
    assert metrics.knn_accuracy(Y, pure, 5) == 1.0
    assert metrics.neighborhood_hit(Y, pure, 19) == 1.0
    assert metrics.neighborhood_hit(Y, pure, 39) == pytest.approx(19 / 39)
    mixed = np.tile(["x", "y"], 20)
    assert metrics.neighborhood_hit(Y, mixed, 1) == 0.0


def test_a_comparison_stands_for_its_map(labeled, irregular):
    Y, labels = labeled
    both = Comparison(irregular(120, 5), Y)
    for measure in (metrics.knn_accuracy, metrics.neighborhood_hit, metrics.silhouette):
        assert measure(both, labels) == measure(Y, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(7), "labels has shape"),
        (np.zeros((120, 1)), "labels has shape"),
        (np.where(np.arange(120) == 5, np.nan, 1.0), "labels contains NaN, first in row 5"),
        (np.array([1, "a"] * 60, dtype=object), "labels cannot be sorted"),
    ],
)
def test_labels_that_are_none_are_refused(labels, message, labeled):
    with pytest.raises(ValueError, match=message):
        metrics.knn_accuracy(labeled[0], labels)


def test_a_silhouette_needs_two_classes(labeled):
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        metrics.silhouette(labeled[0], np.zeros(120))

"""Which values of a parameter show the data: planted truths, the rule, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from lowland import PCA, TSNE, Isomap
from lowland.errors import DataError, LowlandError, ParameterError
from lowland.metrics import neighbor_recall
from lowland.trust import Plateau, component_scores, parameter_plateau, perplexity_plateau
from lowland.trust.plateau import MARGIN, _drawn, _Measured, _on_plateau, plateau_sentence
from support.cases import each


def clusters(n: int = 400, k: int = 8, d: int = 10) -> np.ndarray:
    """Small flat groups: neighbors lie on a sheet of two dimensions in each of them."""
    rng = np.random.default_rng(5)
    sheets = rng.normal(size=(k, 2, d))
    centers = 25 * rng.normal(size=(k, d))
    member = rng.integers(k, size=n)
    flat = 4 * rng.uniform(-1, 1, size=(n, 1, 2))
    return centers[member] + (flat @ sheets[member])[:, 0] + 0.02 * rng.normal(size=(n, d))


@pytest.fixture(scope="module")
def found():
    return perplexity_plateau(clusters(), [2, 15, 30], n_jobs=1)


def test_on_noise_no_value_keeps_more_than_chance():
    """Both are Gaussian clouds of the same spectrum, so that only sampling makes a difference."""
    X = np.random.default_rng(1).normal(size=(600, 10)) * np.linspace(3, 1, 10)
    noise = perplexity_plateau(X, [5, 30, 100])
    assert np.abs(noise.excess).max() < MARGIN
    assert noise.sentence.startswith("No tried value keeps more of the nearest rows")


def test_a_tiny_perplexity_is_off_the_plateau_and_the_default_stays(found):
    assert found.values == [2.0, 15.0, 30.0]
    assert found.on_plateau[0] is False
    assert found.on_plateau[2] is True
    assert found.default == found.recommended == 30.0
    assert max(found.excess) > MARGIN
    assert found.sentence.startswith("Perplexity ")
    assert "take" not in found.sentence


def test_maps_are_those_of_the_rows_turned_to_resemble_the_first(found):
    X = clusters()
    assert [one.title for one in found.maps] == ["perplexity 2", "perplexity 15", "perplexity 30"]
    scores = component_scores(X)
    Y = TSNE(perplexity=15.0, random_state=0).fit_transform(scores)
    turned = found.maps[1].coordinates
    assert np.array_equal(found.maps[1].rows, np.arange(len(X)))
    assert neighbor_recall(Y, turned, 15) == 1.0  # the same map up to rotation and scale
    first = found.maps[0].coordinates
    assert np.linalg.norm(first - turned) <= np.linalg.norm(first - turned * [1, -1])
    like = np.random.default_rng(0).normal(size=(len(X), 2))
    again = parameter_plateau(X, "pca", "n_components", [2], like=like)
    cross = again.maps[0].coordinates.T @ (like - like.mean(axis=0))
    np.testing.assert_allclose(cross, cross.T, atol=1e-8)  # the best rotation has been found


def test_threads_do_not_change_a_byte(found):
    other = perplexity_plateau(clusters(), [2, 15, 30], n_jobs=2)
    assert other[:-1] == found[:-1]
    for one, two in zip(found.maps, other.maps, strict=True):
        assert np.array_equal(one.coordinates, two.coordinates)


def test_more_rows_than_asked_for_are_sampled_and_the_data_stay():
    X = clusters(300)
    before = X.copy()
    some = perplexity_plateau(X, [10], rows=120, seed=3, max_iter=250)
    rows = some.maps[0].rows
    assert len(rows) == 120
    assert (np.diff(rows) > 0).all()
    assert rows.max() < 300
    assert np.array_equal(X, before)
    other = perplexity_plateau(X, [10], rows=120, seed=4, max_iter=250)
    assert not np.array_equal(other.maps[0].rows, rows)


@each(
    "n, wanted",
    [
        (100, [5.0, 15.0, 30.0]),
        (130, [5.0, 15.0, 30.0]),
        (400, [5.0, 15.0, 30.0, 50.0, 100.0]),
        (900, [5.0, 9.0, 15.0, 30.0, 50.0, 100.0]),
    ],
)
def test_the_default_values_are_those_that_the_rows_allow(n, wanted):
    X = np.random.default_rng(0).normal(size=(n, 3))
    assert perplexity_plateau(X, max_iter=0).values == wanted


def test_any_method_and_its_integers():
    t = np.sort(np.random.default_rng(0).uniform(4, 14, 240))
    roll = np.column_stack(
        [t * np.cos(t), t * np.sin(t), np.random.default_rng(1).normal(size=240)]
    )
    found = parameter_plateau(roll, Isomap, "n_neighbors", np.array([6, 100]))
    assert found.values == [6.0, 10.0, 100.0]  # the default is tried, too
    assert found.on_plateau[2] is False  # neighbors across the layers of the roll
    assert "n_neighbors " in found.sentence
    without = parameter_plateau(
        scipy.sparse.csr_matrix(roll), "tsne", "n_neighbors", [20], perplexity=5
    )
    assert math.isnan(without.default)
    assert without.recommended == 20.0
    assert without.sentence.endswith("take 20.")


def test_excess_and_overlap_are_those_of_a_naive_count():
    """One value by hand: four maps of PCA, neighbors by sorting all distances."""
    X = clusters(120)
    found = parameter_plateau(X, "pca", "n_components", [2], seed=9)
    some = _drawn(X, 5_000, 9, 1)
    one, other = some.parts
    assert len(one) == len(other) == 60
    assert np.array_equal(np.intersect1d(one, other), some.core)
    assert len(some.core) == 30

    def nearest(Z: np.ndarray, k: int) -> list[set[int]]:
        D = np.linalg.norm(Z[:, None] - Z[None], axis=2)
        np.fill_diagonal(D, np.inf)
        return [set(row[:k]) for row in np.argsort(D, axis=1).tolist()]

    def agreement(Z: np.ndarray, Y: np.ndarray, k: int) -> float:
        pairs = zip(nearest(Z, k), nearest(Y, k), strict=True)
        return float(np.mean([len(a & b) / k for a, b in pairs]))

    def mapped(Z: np.ndarray) -> np.ndarray:
        return PCA(2).fit_transform(Z)

    recalls = [agreement(Z, mapped(Z), 15) for Z in (some.data, some.null)]
    assert found.excess == [pytest.approx(recalls[0] - recalls[1], abs=1e-12)]
    shared = [mapped(some.data[part])[np.isin(part, some.core)] for part in some.parts]
    assert found.overlap == [pytest.approx(agreement(*shared, 7), abs=1e-12)]


# --- the rule ---------------------------------------------------------------------------------


def measured(excess: float, overlap: float, spread: float = 0.0) -> _Measured:
    rows = spread * np.tile([1.0, -1.0], 50)
    return _Measured(excess + rows, np.zeros(100), overlap + rows, np.zeros((100, 2)))


def test_a_value_within_the_margin_of_both_bests_is_on_the_plateau():
    far, near = 1.5 * MARGIN, 0.9 * MARGIN
    values = [(0.3, 0.5), (0.3 - near, 0.5 - near), (0.3 - far, 0.5), (0.3, 0.5 - far)]
    assert _on_plateau([measured(*each) for each in values]) == [True, True, False, False]


def test_what_may_be_sampling_does_not_put_a_value_off_the_plateau():
    """Twice the standard error of 100 differences of 0.5 is 0.1."""
    best = measured(0.3, 0.5)
    assert _on_plateau([best, measured(0.18, 0.5, 0.5)]) == [True, True]
    assert _on_plateau([best, measured(0.15, 0.5, 0.5)]) == [True, False]


def test_if_the_bests_exclude_each_other_the_compromise_is_the_plateau():
    values = [(0.4, 0.2), (0.3, 0.4), (0.28, 0.4), (0.1, 0.6)]
    assert _on_plateau([measured(*each) for each in values]) == [False, True, True, False]


def test_the_sentence_says_what_to_do():
    values, excess, overlap = [5.0, 30.0, 50.0, 100.0], [0.1, 0.2, 0.33, 0.31], [0.2, 0.3, 0.5, 0.5]

    def said(on: list[bool], default: float, best: float, noise: float = 0.05) -> str:
        found = Plateau("perplexity", values, excess, overlap, on, default, best, "", [])
        return plateau_sentence(found, noise)

    assert said([False, True, True, True], 30.0, 30.0) == (
        "Perplexity 30 to 100 show the same: neighbors kept beyond chance .20 to .33; the default "
        "30 lies on this plateau."
    )
    assert said([False, False, True, True], 30.0, 50.0) == (
        "Perplexity 50 to 100 show the same: neighbors kept beyond chance .31 to .33; the default "
        "30 keeps .20, and maps of two halves share .30 of their neighbors (at best .50): take 50."
    )
    assert said([True, False, True, False], math.nan, 5.0).startswith("Perplexity 5 and 50 show")
    assert "excess at most .33" in said([True] * 4, 30.0, 30.0, noise=0.4)


# --- refusals ---------------------------------------------------------------------------------


@each(
    "arguments, options, message",
    [
        (("isomap", "n_neighbor", [5]), {}, "did you mean 'n_neighbors'"),
        (("isomap", "n_neighbors", []), {}, "values=\\[\\] is empty"),
        (("isomap", "n_neighbors", ["5"]), {}, "values: '5' is not allowed"),
        (("isomap", "n_neighbors", [True]), {}, "values: True is not allowed"),
        (("isomap", "n_neighbors", [math.nan]), {}, "values: nan is not allowed"),
        (("isomap", "n_neighbors", "many"), {}, "values: 'many' is not allowed"),
        (("isomap", "n_neighbors", [2.5]), {}, "n_neighbors=2.5 is not allowed"),
        (("isomop", "n_neighbors", [5]), {}, "unknown method"),
        ((dict, "n_neighbors", [5]), {}, "method=<class 'dict'>"),
        (("lda", "n_components", [1]), {}, "LDA needs classes"),
        (("isomap", "n_neighbors", [5]), {"n_neighbors": 5}, "use 'values'"),
        (("isomap", "n_neighbors", [5]), {"random_state": 5}, "use 'seed'"),
        (("isomap", "n_neighbors", [5]), {"metrc": "l1"}, "did you mean 'metric'"),
        (("isomap", "n_neighbors", [5]), {"metric": "manhattan"}, "Euclidean distances only"),
        (("isomap", "n_neighbors", [5]), {"rows": 50}, "rows=50 is not allowed"),
        (("isomap", "n_neighbors", [5]), {"seed": None}, "seed=None is not allowed"),
        (("tsne", "perplexity", [80]), {}, "perplexity=80 .*compared maps have 60 rows"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, options, message):
    X = np.random.default_rng(0).normal(size=(120, 3))
    with pytest.raises(ParameterError, match=message):
        parameter_plateau(X, *arguments, **options)


@each("X", [np.ones((99, 3)), np.full((200, 3), np.nan)])
def test_rows_that_are_too_few_or_unknown_are_refused(X):
    with pytest.raises(LowlandError, match=r"99|NaN"):
        perplexity_plateau(X)


def test_a_map_of_other_rows_to_resemble_is_refused():
    X = np.random.default_rng(0).normal(size=(120, 3))
    with pytest.raises(DataError, match="like has 5 rows"):
        parameter_plateau(X, "pca", "n_components", [2], like=np.eye(5))

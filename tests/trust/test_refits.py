"""Refits know which rows they map; points of a sample are judged like a map of their own."""

from __future__ import annotations

import numpy as np
import pytest

from lowland import LDA, PCA
from lowland.errors import DataError, ParameterError
from lowland.metrics import gap_test
from lowland.metrics.home import KINDS
from lowland.trust import affordable_rows, trust, with_refits


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    X[100:200, 0] += 12
    X[200:, 1] += 12
    return X, np.repeat([0, 1, 2], 100)


def projected(X, seed):
    return PCA(2, random_state=seed).fit_transform(X)


def test_a_function_of_three_arguments_is_told_the_rows(blobs):
    X, y = blobs
    asked = []

    def learned(X, seed, part):
        asked.append((X, part))
        return LDA(2).fit_transform(X, y[part.rows])

    found = trust(X, LDA(2).fit_transform(X, y), make_map=learned)
    assert [part.is_null for _, part in asked] == [False, False, False, True]
    for given, part in asked[:3]:
        np.testing.assert_array_equal(given, X[part.rows])
    assert found.stability.agreement > 0.8
    for other, (_, part) in zip(found.stability.refits, asked, strict=False):
        np.testing.assert_array_equal(other.rows, part.rows)
    # a third argument with a default is the user's own
    two = trust(X, projected(X, 0), make_map=lambda X, seed, q=2: PCA(q).fit_transform(X))
    assert two.stability is not None


def test_refits_are_added_to_what_is_known(blobs):
    X, _ = blobs
    Y = projected(X, 0)
    before = trust(X, Y)
    assert set(before.reasons) == {"stability", "chance"}
    at_once, later = trust(X, Y, make_map=projected), with_refits(before, X, projected)
    assert before.stability is None
    assert later.reasons == {} == at_once.reasons
    assert later.sentences == at_once.sentences
    np.testing.assert_array_equal(later.stability.points, at_once.stability.points)
    assert [island.stability for island in later.islands] == at_once.stability.islands
    others = with_refits(before, X, others=[projected(X + 0.1, 0)])
    assert others.stability is not None
    assert set(others.reasons) == {"chance"}
    with pytest.raises(DataError, match="X has 299 rows, but the map has 300"):
        with_refits(before, X[1:], projected)


def test_a_map_of_data_without_structure_that_fails_leaves_the_stability(blobs):
    X, _ = blobs

    def choosy(X, seed, part):
        if part.is_null:
            raise DataError("the kernel needs numbers >= 0.")
        return projected(X, seed)

    found = trust(X, projected(X, 0), make_map=choosy)
    assert found.stability is not None
    assert found.chance is None
    assert found.reasons == {
        "chance": "data without structure could not be mapped: the kernel needs numbers >= 0"
    }


def test_of_many_points_a_sample_is_judged_and_islands_are_those_of_all():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.standard_normal((2000, 5)), rng.standard_normal((1000, 5)) + 15])
    Y = X[:, :2].copy()
    swapped = rng.choice(2000, 100, replace=False)
    Y[swapped] = Y[2000:2100]  # into the other island
    whole, found = trust(X, Y), trust(X, Y, most_points=900)
    judged = found.points.kind >= 0
    assert judged.sum() == 900
    assert np.isnan(found.points.missing[~judged]).all()
    assert np.isnan(found.points.home[~judged]).all()
    assert (found.neighbors[~judged] == -1).all()
    assert judged[found.neighbors[judged]].all()  # neighbors within the sample
    near = np.linalg.norm(X[found.neighbors[judged]] - X[judged][:, None], axis=2)
    assert (np.diff(near, axis=1) >= 0).all()
    np.testing.assert_array_equal(found.island_of, whole.island_of)
    assert [gap.verdict for gap in found.gaps] == [gap.verdict for gap in whole.gaps]
    misplaced = np.flatnonzero(found.points.kind == KINDS.index("misplaced"))
    assert len(misplaced) >= 0.8 * judged[swapped].sum() >= 10
    assert np.isin(misplaced, swapped).mean() > 0.95
    assert found.sentences[0].text.startswith("Of 900 points of a sample, ")
    assert found.to_dict()["points"]["judged"] == 900
    assert found.to_frame()["kind"].null_count() == 2100
    again = trust(X, Y, most_points=900, n_jobs=1)
    np.testing.assert_array_equal(again.points.kind, found.points.kind)
    with pytest.raises(ParameterError, match="most_points=9 is not allowed"):
        trust(X, Y, most_points=9)


def test_how_many_points_are_judged_depends_on_the_time_of_the_map():
    table, large = np.zeros((5000, 20)), np.zeros((300_000, 20))
    assert affordable_rows(table, map_seconds=0.01) is None
    few, more = (affordable_rows(large, map_seconds=seconds) for seconds in (1, 100))
    assert 5000 < few < more < 300_000
    wide = affordable_rows(np.zeros((300_000, 600), np.float32), map_seconds=1)
    assert 500 <= wide < few
    assert affordable_rows(large, lambda a, b: 0.0, map_seconds=1) < 1000
    assert affordable_rows(large) > few  # as a t-SNE map


def test_gaps_are_tested_by_distances_as_by_columns(blobs):
    X, y = blobs
    islands = np.where(y == 2, 2, np.where(X[:, 2] > 0, 1, 3))
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    by_columns, by_distances = gap_test(X, islands), gap_test(D, islands, metric="precomputed")
    assert [gap.verdict for gap in by_columns] == ["real", "not in the data", "real"]
    assert [gap.verdict for gap in by_distances] == [gap.verdict for gap in by_columns]
    np.testing.assert_allclose(
        [gap.severed for gap in by_distances], [gap.severed for gap in by_columns]
    )

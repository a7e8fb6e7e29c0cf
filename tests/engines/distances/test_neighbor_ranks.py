"""Rows of distances and ranks in any metric, from any kind of data."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist

from lowland._base.monitor import Monitor
from lowland._engines.distances.distance_rows import blocks_of, distance_rows
from lowland._engines.distances.neighbor_ranks import full_ranks, partner_ranks

METRICS = [
    *("euclidean", "sqeuclidean", "cosine", "correlation"),
    *("manhattan", "chebyshev", "minkowski", "hamming"),
]


def definition(X, metric, **params):
    return cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric), **params)


def ranks_of(D):
    D = D.copy()
    np.fill_diagonal(D, -1)
    return np.argsort(np.argsort(D, axis=1, kind="stable"), axis=1)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_of_distances_are_those_of_scipy(metric, irregular):
    X = irregular(60, 7)
    params = {"p": 3} if metric == "minkowski" else None
    expected = definition(X, metric, **(params or {}))
    source = distance_rows(X, metric, params, 2)
    rows = np.array([3, 59, 0, 3])
    assert source.of(rows) == pytest.approx(expected[rows], rel=1e-12, abs=1e-14)
    for since in (24, 25, 59):
        later = source.of(rows, since)
        assert later == pytest.approx(expected[rows, since:], rel=1e-12, abs=1e-14)
        assert later.flags.c_contiguous
    some = np.array([5, 1, 40])
    part = source.subset(some).of(np.arange(3))
    assert part == pytest.approx(expected[np.ix_(some, some)], rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
def test_sparse_rows_lose_no_digits_where_they_are_close(metric):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 20)) < 0.5, rng.random((50, 20)) + 1, 0.0)
    X[1] = X[0]
    X[2] = X[0] * (1 + 1e-9 * (np.arange(20) % 2))
    X[3] = 0.0
    D = distance_rows(scipy.sparse.csr_array(X), metric, None, 1).of(np.arange(50))
    dense = distance_rows(X, metric, None, 1).of(np.arange(50))
    assert pytest.approx(dense, rel=1e-7, abs=1e-25) == D
    assert D[0, 1] == 0.0
    assert (D[0, 2] > 0) == (dense[0, 2] > 0)


def test_given_distances_are_handed_out_as_copies(irregular):
    D = definition(irregular(30, 3), "euclidean").astype(np.float32)
    source = distance_rows(D, "precomputed", None, 1)
    row = source.of(np.array([4]))
    assert row.dtype == np.float64
    assert np.array_equal(row[0], D[4])
    row[:] = 0
    assert D[4].any()
    assert np.array_equal(source.subset(np.array([4, 2])).of(np.array([0]))[0], D[4, [4, 2]])


@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed", "manhattan", "no direction"])
def test_ranks_by_counting_and_by_sorting_agree(kind, irregular):
    X, metric = irregular(130, 6), "euclidean"
    X[100:] = X[:30]
    D = definition(X, metric)
    if kind == "sparse":
        X = scipy.sparse.csr_array(X)
    elif kind == "precomputed":
        X, metric = D, kind
    elif kind == "manhattan":
        metric, D = kind, definition(X, kind)
    elif kind == "no direction":
        metric, X[7] = "cosine", 0.0
    source = distance_rows(X, metric, None, 2)
    everyone = full_ranks(source, np.arange(130), 2)
    if kind not in ("sparse", "no direction"):
        assert np.array_equal(everyone, ranks_of(source.of(np.arange(130))))
    rng = np.random.default_rng(0)
    rows = np.array([7, 90, 3, 129])
    lists = [
        rng.permutation(np.delete(np.arange(130), row))[:m]
        for row, m in zip(rows, (4, 0, 9, 1), strict=True)
    ]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in lists])])
    found = partner_ranks(source, rows, starts, np.concatenate(lists), 2, Monitor())
    expected = [everyone[row, part] for row, part in zip(rows, lists, strict=True)]
    assert np.array_equal(found, np.concatenate(expected))


def test_many_ranks_per_row_are_sorted_out(irregular, monkeypatch):
    source = distance_rows(irregular(90, 4), "euclidean", None, 1)
    rows, starts = np.arange(90), np.arange(91) * 40
    partners = np.array([(row + np.arange(1, 41)) % 90 for row in rows]).ravel()
    counted = partner_ranks(source, rows, starts, partners, 1, Monitor())
    monkeypatch.setattr("lowland._engines.distances.neighbor_ranks.MANY", 39)
    assert np.array_equal(partner_ranks(source, rows, starts, partners, 1, Monitor()), counted)


def test_blocks_cover_all_rows_in_order():
    rows = np.array([4, 8, 15, 16, 23, 42])
    assert np.array_equal(np.concatenate(list(blocks_of(rows, 1 << 21))), rows)
    assert [len(block) for block in blocks_of(rows, 1 << 21)] == [2, 2, 2]
    assert [len(block) for block in blocks_of(rows, 1 << 30)] == [1] * 6

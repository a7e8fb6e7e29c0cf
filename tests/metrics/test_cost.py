"""The rows that measures take by default: their cost is bounded and has no jumps."""

import numpy as np
import pytest
import scipy.sparse

from lowland.errors import ParameterError
from lowland.metrics import Comparison, _views, quality
from lowland.metrics._views import Work

SIZES = np.unique(np.geomspace(100, 1_000_000, 400).astype(int))
COLUMNS = (2, 10, 50, 128, 129, 784, 5000)
MEASURES = (Work.neighborhoods, Work.baselines, Work.ranks, Work.sums)


def table(n, p):
    """A table of that shape without its memory."""
    return np.broadcast_to(np.float64(0), (n, p))


def sparse_table(n, stored):
    """A CSR matrix with so many stored numbers per row, as far as the cost can see."""
    X = scipy.sparse.csr_matrix((n, 20_000))
    X.data = np.broadcast_to(1.0, n * stored)
    X.indptr = np.arange(n + 1) * stored
    return X


def works(n):
    made = [Work.of(table(n, p), "euclidean") for p in COLUMNS]
    return [*made, Work.of(table(n, 20), "manhattan"), Work.of(table(n, 20), lambda a, b: 0.0)]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_cost_grows_with_the_rows_and_never_jumps(measure):
    for kind in range(len(works(100))):
        made = [works(int(n))[kind] for n in SIZES]
        counts = np.array([measure(work) for work in made])
        assert (counts <= SIZES).all()
        assert (counts >= np.minimum(SIZES, _views.FEWEST)).all()
        pairs = counts * SIZES
        growth = (SIZES[1:] / SIZES[:-1]) ** 2
        assert (pairs[1:] <= 1.05 * growth * pairs[:-1]).all()
        # Where a pair costs the same, larger tables are given no less time, up to a row.
        ways = [(work.whole, work.keeps(_views.FEWEST)) for work in made]
        same = np.array([a == b for a, b in zip(ways[1:], ways[:-1], strict=True)])
        assert same.sum() > 300
        assert (np.diff(pairs) >= -SIZES[1:])[same].all()


def test_wider_rows_are_fewer():
    for n in (3_000, 20_000, 200_000):
        for measure in (Work.neighborhoods, Work.sums):
            counts = [measure(Work.of(table(n, p), "euclidean")) for p in (2, 10, 50, 120)]
            assert counts == sorted(counts, reverse=True)


def test_small_tables_are_measured_on_all_rows():
    for n in (100, 1_000, 2_000):
        for p in (2, 10, 64):
            work = Work.of(table(n, p), "euclidean")
            assert {measure(work) for measure in MEASURES} == {n}
    assert Work.of(table(9_000, 10), "euclidean").neighborhoods() == 9_000
    assert Work.of(table(1_500, 784), "euclidean").neighborhoods() == 1_500


def test_what_is_kept_and_packed_stays_below_the_bound_of_memory():
    """At most 300 MB beyond the data, wherever the fewest rows allow it."""
    for n in SIZES:
        for work in works(int(n)):
            m = work.neighborhoods()
            if work.keeps(m):
                assert 12 * m * n <= _views.KEPT_BYTES
            elif work.whole:
                assert m == min(n, _views.FEWEST)
        for p in COLUMNS:
            if not Work.of(table(int(n), p), "euclidean").whole:
                assert 4 * n * p <= _views.PACKED_BYTES
    assert _views.KEPT_BYTES + 2 * _views.PACKED_BYTES <= 300e6


def test_sparse_rows_cost_by_what_they_store():
    few, many = (Work.of(sparse_table(20_000, stored), "euclidean") for stored in (20, 2_000))
    assert few.whole
    assert few.neighborhoods() > many.neighborhoods() >= _views.FEWEST


@pytest.mark.parametrize("kind", ["wide", "sparse", "manhattan", "narrow"])
def test_every_way_to_the_numbers_gives_the_same(kind, monkeypatch):
    """Kept rows, rows computed again, and kernels: the sample is the same, and so the values."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 150 if kind == "wide" else 6))
    X[11] = X[30]  # a tie
    Y = X[:, :2] + 0.1 * rng.standard_normal((400, 2))
    metric = "manhattan" if kind == "manhattan" else "euclidean"
    data = scipy.sparse.csr_matrix(np.where(X > 1, X, 0)) if kind == "sparse" else X

    def measured():
        rows = quality(Comparison(data, Y, metric=metric, sample=70)).to_dict()
        return {name: (row["value"], row["random"]) for name, row in rows.items()}

    first = measured()
    monkeypatch.setattr("lowland.metrics._options.KEPT_SHARE", 0.0)
    again = measured()
    monkeypatch.setattr("lowland.metrics._views.PACKED_BYTES", 0)
    monkeypatch.setattr("lowland.metrics._views.PACKED_BYTES", 0)
    monkeypatch.setattr("lowland._engines.distances.distance_rows.PART_BYTES", 5000)
    parts = measured()
    for name, values in first.items():
        assert again[name] == pytest.approx(values, rel=1e-12)
        assert parts[name] == pytest.approx(values, rel=1e-12)


def test_a_fast_map_is_measured_on_fewer_rows_than_a_slow_one():
    for n in (20_000, 200_000):
        fast, slow = (Work.of(table(n, 10), "euclidean", seconds) for seconds in (0.1, 0.001 * n))
        for measure in (Work.neighborhoods, Work.ranks, Work.sums, Work.baselines):
            assert measure(fast) <= measure(slow)
        assert fast.neighborhoods() < slow.neighborhoods()
    assert Work.of(table(1_000, 10), "euclidean", 0.0).neighborhoods() == 1_000


def test_the_seconds_of_a_map_are_a_number_that_is_not_negative(irregular):
    X = irregular(30, 4)
    for wrong in (-1.0, "fast", float("nan")):
        with pytest.raises(ParameterError, match="map_seconds="):
            Comparison(X, X[:, :2], map_seconds=wrong)

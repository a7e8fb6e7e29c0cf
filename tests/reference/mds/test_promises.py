"""Promises of all MDS methods: units, threads, callbacks, sparse pairs, degenerate input."""

import numpy as np
import pytest
from scipy import sparse

import lowland
from lowland import MDS, ClassicalMDS, LandmarkMDS, LinearMDS, NonmetricMDS, Sammon
from lowland.errors import DataError, ParameterError
from support.cases import each

BY_STRESS = (MDS, NonmetricMDS, Sammon, LinearMDS)
ALL = (ClassicalMDS, LandmarkMDS, *BY_STRESS)
FROM_DISTANCES = (ClassicalMDS, LandmarkMDS, MDS, NonmetricMDS, Sammon)


def up_to_sign(Y):
    return np.abs(Y / np.abs(Y).max())


@each("method", ALL)
@each(("unit", "dtype"), [(1e70, "f8"), (1e-70, "f8"), (1e30, "f4"), (1e-30, "f4")])
def test_the_unit_of_the_rows_does_not_matter(method, unit, dtype, irregular):
    X = irregular(30, 4)
    plain = method(random_state=0).fit(X.astype(dtype))
    other = method(random_state=0).fit((X * unit).astype(dtype))
    np.testing.assert_allclose(
        up_to_sign(other.embedding_), up_to_sign(plain.embedding_), atol=1e-3
    )
    np.testing.assert_allclose(other.stress_per_point_, plain.stress_per_point_, atol=1e-3)
    moved = other.transform((X * unit).astype(dtype))
    np.testing.assert_allclose(up_to_sign(moved), up_to_sign(other.embedding_), atol=1e-5)


@each("method", ALL)
@each("metric", ["euclidean", "manhattan"])
@each("unit", [1e50, 1e-50])
def test_nor_does_it_where_distances_are_kept_in_single_precision(method, metric, unit, irregular):
    X = irregular(1100, 4)
    steps = {"max_iter": 3} if method in BY_STRESS else {}
    plain = method(metric=metric, random_state=0, **steps).fit(X)
    other = method(metric=metric, random_state=0, **steps).fit(X * unit)
    np.testing.assert_allclose(
        up_to_sign(other.embedding_), up_to_sign(plain.embedding_), atol=1e-3
    )


@pytest.mark.parametrize("method", [NonmetricMDS, lambda **k: MDS(transformation="interval", **k)])
def test_threads_do_not_change_a_bit(method, irregular):
    X, new = irregular(400, 5), irregular(9, 5, seed=1)
    one, two = (method(n_jobs=threads, max_iter=5).fit(X) for threads in (1, 2))
    for name in ("embedding_", "loss_history_", "stress_per_point_"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert one.transform(new).tobytes() == two.transform(new).tobytes()


@each(
    "model",
    [
        MDS(),
        MDS(transformation="interval"),
        NonmetricMDS(),
        Sammon(),
        Sammon(power=2),
        LinearMDS(power=0),
    ],
    ids=repr,
)
def test_a_callback_hears_of_the_stress_that_the_model_reports(model, irregular):
    heard = []
    model.callback = lambda step, Y, loss: heard.append((Y.copy(), loss))
    model.fit(10 * irregular(40, 5))
    np.testing.assert_array_equal([loss for _, loss in heard], model.loss_history_[1:])
    last = heard[-1][0]
    if not isinstance(model, LinearMDS):  # which turns its map at the end
        np.testing.assert_allclose(last, model.embedding_, rtol=1e-12)
    np.testing.assert_allclose((last**2).sum(), (model.embedding_**2).sum(), rtol=1e-9)


@pytest.mark.parametrize("power", [1, 2])
def test_a_vanishing_distance_does_not_drown_the_others(power, irregular):
    X = irregular(1100, 4)
    X[0] = 0
    near = np.vstack([X, np.eye(1, 4) * 1e-25])
    twin = np.vstack([X, X[:1]])
    for pairs in ("all", "sparse"):
        shared = {"power": power, "max_iter": 40, "pairs": pairs, "random_state": 0}
        a, b = Sammon(**shared).fit(near), Sammon(**shared).fit(twin)
        assert a.stress_ == pytest.approx(b.stress_, rel=0.02)


def test_listed_pairs_have_the_stress_of_the_definition(irregular, distances):
    X = 1000 * irregular(2050, 3)
    D = distances(X)
    i, j = np.nonzero(np.triu(np.random.default_rng(0).random(D.shape) < 0.02, 1))
    D[i[0], j[0]] = 0.0
    delta = D[i, j]
    stored = sparse.csr_array((delta, (i, j)), shape=D.shape)
    w = np.random.default_rng(1).gamma(1.0, size=len(i))
    W = sparse.coo_array((w, (i, j)), shape=D.shape)
    counts = delta > 0

    def stress(model, weights):
        d = np.linalg.norm(model.embedding_[i] - model.embedding_[j], axis=1)
        return (weights * (d - delta) ** 2)[counts].sum()

    shared = {"metric": "precomputed", "max_iter": 4}
    with np.errstate(divide="ignore"):
        two = Sammon(power=2, **shared).fit(stored)
        assert two.stress_ == pytest.approx(stress(two, delta**-2), rel=1e-9)
        one = Sammon(**shared).fit(stored)
        assert one.stress_ == pytest.approx(stress(one, 1 / delta) / delta.sum(), rel=1e-9)
    weighted = MDS(weights=W + W.T, **shared).fit(stored)
    d = np.linalg.norm(weighted.embedding_[i] - weighted.embedding_[j], axis=1)
    assert weighted.stress_ == pytest.approx((w * (d - delta) ** 2).sum(), rel=1e-9)


@pytest.mark.parametrize("method", [MDS, Sammon])
def test_sparse_pairs_of_given_distances_are_those_of_the_rows(method, irregular, distances):
    X = irregular(300, 4)
    shared = {"pairs": "sparse", "random_state": 0, "max_iter": 20}
    rows = method(**shared).fit(X)
    given = method(metric="precomputed", **shared).fit(distances(X))
    assert given.stress_ == pytest.approx(rows.stress_, rel=1e-4)
    D = distances(X)
    D[3, 4] = D[4, 3] = np.nan
    known = np.triu(~np.isnan(D), 1)
    stored = sparse.csr_array((D[known], np.nonzero(known)), shape=D.shape)
    listed = method(metric="precomputed", **shared).fit(stored)
    dense = method(metric="precomputed", max_iter=20, random_state=0).fit(D)
    assert listed.stress_ == pytest.approx(dense.stress_, rel=0.02)
    with pytest.raises(ParameterError, match=r"X\[3, 4\] is not known"):
        method(metric="precomputed", **shared).fit(D)


@pytest.mark.parametrize("method", [MDS, NonmetricMDS, Sammon])
def test_a_fitted_row_finds_its_own_place_among_zeros(method):
    D = np.array([[0, 0, 1, 4], [0, 0, 2, 5], [1, 2, 0, 3], [4, 5, 3, 0.0]])
    model = method(metric="precomputed").fit(D)
    assert np.linalg.norm(model.embedding_[0] - model.embedding_[1]) > 0.1
    np.testing.assert_array_equal(model.transform(D), model.embedding_)


def test_rows_that_are_all_equal_lie_on_one_place():
    for method in ALL:
        model = method(random_state=0).fit(np.ones((6, 3)))
        np.testing.assert_array_equal(model.embedding_, np.zeros((6, 2)))
        np.testing.assert_array_equal(model.transform(np.ones((2, 3))), np.zeros((2, 2)))
        assert getattr(model, "stress_", 0.0) == 0
    pairs = NonmetricMDS(random_state=0).fit(np.repeat([[0.0], [1], [5]], 2, axis=0))
    np.testing.assert_array_equal(pairs.embedding_[::2], pairs.embedding_[1::2])


@pytest.mark.parametrize("method", [MDS, NonmetricMDS, Sammon])
def test_starts_that_are_no_maps_are_refused_and_small_ones_grow(method, irregular):
    X = irregular(12, 4)
    start = np.random.default_rng(0).standard_normal((12, 2))
    hole = start.copy()
    hole[2, 1] = np.nan
    for init, message in (
        (start[:5], r"init has shape \(5, 2\), but the map is 12 rows x 2 columns"),
        (hole, r"init\[2, 1\] = nan"),
        (start * 1e200, r"init holds .*e\+200, but the distances are about"),
    ):
        with pytest.raises(DataError, match=message):
            method(init=init).fit(X)
    rough = method(init=start, max_iter=0).fit(X).stress_
    for init in (np.zeros((12, 2)), start * 1e-200, start.tolist()):
        assert method(init=init, random_state=0).fit(X).stress_ < 0.5 * rough


def test_starts_that_are_no_projections_are_refused(irregular):
    X = irregular(12, 4)
    for init, message in (
        (np.ones((12, 2)), "W is 4 columns of X x 2 components"),
        (np.full((4, 2), np.inf), r"init\[0, 0\] = inf"),
        (np.zeros((4, 2)), "init is 0 everywhere"),
    ):
        with pytest.raises(DataError, match=message):
            LinearMDS(init=init).fit(X)


@each("method", FROM_DISTANCES)
def test_a_saved_model_places_new_distances_to_the_bit(method, irregular, distances, tmp_path):
    X, new = irregular(25, 4), irregular(5, 4, seed=1)
    D, to_new = distances(X), np.sqrt(((new[:, None] - X[None]) ** 2).sum(axis=2))
    for matrix in (D, to_new):
        matrix.flags.writeable = False
    model = method(metric="precomputed", random_state=0).fit(D)
    model.save(tmp_path / "model.lowland")
    again = lowland.load(tmp_path / "model.lowland")
    assert again.transform(to_new).tobytes() == model.transform(to_new).tobytes()

"""LLE, LTSA, ModifiedLLE and HessianLLE of distances: the same maps as of the rows, if these are
Euclidean; and what happens with others."""

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist, squareform
from sklearn.utils import get_tags

import lowland
from lowland import LLE, LTSA, HessianLLE, ModifiedLLE
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.linalg.procrustes import align
from lowland.errors import DataError, DataTypeError, LowlandError
from lowland.neighbors import knn_graph
from support.cases import each

METHODS = [LLE, LTSA, ModifiedLLE, HessianLLE]


@pytest.fixture(params=METHODS, ids=lambda cls: cls.__name__)
def method(request):
    return request.param


def sheet(n, p=5, seed=0):
    """Irregular rows near a curved sheet in p dimensions, with noise in all."""
    rng = np.random.default_rng(seed)
    T = rng.random((n, 2)) ** 1.3 * [2, 3]
    bends = np.column_stack([T, np.sin(2 * T), T**2 / 3])
    turn = np.random.default_rng(99).standard_normal((6, p))
    return bends @ turn + 0.01 * rng.standard_normal((n, p))


def of_distances(method, **params):
    return method(2, **{"metric": "precomputed", "random_state": 0, **params})


def sine(U, V):
    """The largest angle between two spaces of columns."""
    U, V = np.linalg.qr(U)[0], np.linalg.qr(V)[0]
    return np.linalg.norm(V - U @ (U.T @ V), 2)


# --- the same as of the rows ----------------------------------------------------------------------


@each(("p", "k"), [(3, 12), (5, 8), (30, 10)])
def test_the_matrix_is_that_of_the_rows(method, p, k):
    X = sheet(150, p)  # an even number: then no row's share is the median that ModifiedLLE takes
    run = FitContext(np.random.default_rng(0), 2, Monitor())
    found = []
    for metric, given in (("euclidean", X), ("precomputed", cdist(X, X))):
        estimator = method(2, n_neighbors=k, metric=metric)
        neighborhoods = estimator._neighborhoods(estimator._points(given, np.arange(150)), k, run)[
            0
        ]
        found.append(estimator._matrix(neighborhoods, run).toarray())
    np.testing.assert_allclose(found[1], found[0], atol=1e-9 * np.abs(found[0]).max())


@each("n", [200, 700])
@each("normalize", ["orthonormal", "isometric"])
def test_the_map_and_the_places_of_new_rows_are_those_of_the_rows(method, n, normalize):
    X, new = sheet(n), sheet(40, seed=1)
    rows = method(2, normalize=normalize, random_state=0).fit(X)
    found = of_distances(method, normalize=normalize).fit(cdist(X, X))
    np.testing.assert_allclose(found.eigenvalues_, rows.eigenvalues_, rtol=1e-6)
    assert sine(rows.embedding_, found.embedding_) < 1e-6
    turned = align(rows.embedding_, found.embedding_, scaling=False)
    scale = np.abs(rows.embedding_).max()
    places = found.transform(cdist(new, X)) @ turned.rotation + turned.translation
    np.testing.assert_allclose(
        found.embedding_ @ turned.rotation + turned.translation, rows.embedding_, atol=1e-6 * scale
    )
    np.testing.assert_allclose(places, rows.transform(new), atol=1e-5 * scale)


def test_fitted_rows_keep_their_places_to_the_last_bit(method):
    X = sheet(180)
    X[100] = X[3]
    for dtype in (np.float64, np.float32):
        D = cdist(X, X).astype(dtype)
        found = of_distances(method).fit(D)
        assert found.embedding_.dtype == dtype
        assert found.transform(D).tobytes() == found.embedding_.tobytes()
        assert found.transform(D).tobytes() == of_distances(method).fit_transform(D).tobytes()


def test_float32_distances_give_nearly_the_same_map(method):
    X = sheet(300, p=4)
    double = of_distances(method, normalize="orthonormal").fit_transform(cdist(X, X))
    single = of_distances(method, normalize="orthonormal").fit_transform(
        cdist(X, X).astype(np.float32)
    )
    assert sine(double, single) < 0.02


def test_neither_company_nor_threads_change_a_byte(method):
    X, new = sheet(200), sheet(30, seed=1)
    D, to_new = cdist(X, X), cdist(new, X)
    one, two = (of_distances(method, n_jobs=jobs).fit(D) for jobs in (1, 2))
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    together = one.transform(to_new)
    assert two.transform(to_new).tobytes() == together.tobytes()
    alone = np.vstack([one.transform(row[None]) for row in to_new])
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_line_has_no_isometric_map_of_two_dimensions(dtype):
    line = np.sort(np.random.default_rng(0).random(80))[:, None]
    with pytest.raises(DataError, match=r"no neighborhood .* n_components=2 dimensions"):
        of_distances(HessianLLE).fit(cdist(line, line).astype(dtype))


def test_so_few_rows_that_they_are_one_patch_are_shown_in_its_plane():
    X = sheet(5)
    Y = of_distances(HessianLLE).fit_transform(cdist(X, X))
    U, S, _ = np.linalg.svd(X - X.mean(axis=0))
    np.testing.assert_allclose(np.abs(Y), np.abs(U[:, :2] * S[:2]), atol=1e-10)


# --- equal rows, pieces, files --------------------------------------------------------------------


def test_equal_rows_get_one_place_and_change_nothing(method):
    X = sheet(100)
    repeated = np.vstack([X, np.repeat(X[7:8], 30, axis=0), X[3:5]])  # more than n_neighbors
    D = cdist(repeated, repeated)
    found, single = of_distances(method).fit(D), of_distances(method).fit(D[:100, :100])
    np.testing.assert_allclose(found.embedding_[:100], single.embedding_, atol=1e-12)
    assert (found.embedding_[100:130] == found.embedding_[7]).all()
    assert found.fitted_rows_.shape == (100, 132)
    np.testing.assert_array_equal(found.transform(D), found.embedding_)


def test_rows_all_at_distance_zero_have_one_place(method):
    found = of_distances(method).fit(np.zeros((30, 30)))
    assert (found.embedding_ == 0).all()
    assert (found.transform(np.ones((2, 30))) == 0).all()


@pytest.fixture
def pieces():
    """100, 60 and 30 rows far from each other, shuffled; and which piece each is of."""
    shift = np.array([20.0, 0, 0])
    parts = [sheet(n, 3, seed) + seed * shift for seed, n in enumerate((100, 60, 30))]
    order = np.random.default_rng(0).permutation(190)
    return np.vstack(parts)[order], np.repeat([0, 1, 2], [100, 60, 30])[order]


def test_bridges_join_the_pieces_as_they_join_those_of_rows(method, pieces):
    X, _ = pieces
    D = cdist(X, X)
    found = of_distances(method, normalize="orthonormal").fit(D)
    rows = method(2, normalize="orthonormal", random_state=0).fit(X)
    assert found.n_connected_components_ == 3
    assert found.excluded_.size == 0
    assert sine(rows.embedding_, found.embedding_) < 1e-4
    np.testing.assert_array_equal(found.transform(D), found.embedding_)


@each("policy", ["bridge", "largest"])
def test_a_saved_model_places_rows_exactly_as_before(method, pieces, policy, tmp_path):
    X = np.vstack([pieces[0], pieces[0][:3]])
    D, new = cdist(X, X), cdist(X[:20] + 0.05, X)
    found = of_distances(method, on_disconnected=policy).fit(D)
    found.save(tmp_path / "m.lowland")
    loaded = lowland.load(tmp_path / "m.lowland")
    np.testing.assert_array_equal(loaded.transform(D), found.embedding_)
    np.testing.assert_array_equal(loaded.transform(new), found.transform(new))


def test_the_model_keeps_its_own_copy_and_leaves_the_distances_alone(method):
    X = sheet(90)
    D, new = cdist(X, X), cdist(sheet(9, seed=1), X)
    before = D.copy()
    found = of_distances(method).fit(D)
    np.testing.assert_array_equal(D, before)
    places = found.transform(new)
    D[:] = 0
    np.testing.assert_array_equal(found.transform(new), places)


# --- distances that are not Euclidean -------------------------------------------------------------

STRANGE = {
    "manhattan": lambda X: cdist(X, X, "cityblock"),
    "squared": lambda X: cdist(X, X) ** 2,
    "rounded": lambda X: np.round(3 * cdist(X, X)),  # many rows at 0 that are not equal
    "few values": lambda X: np.minimum(np.round(cdist(X, X)), 2),
    "without any order": lambda X: squareform(np.random.default_rng(0).random(140 * 139 // 2)),
}


@each("kind", STRANGE)
def test_other_distances_give_a_finite_map_and_rows_their_own_places(method, kind):
    X = sheet(140)
    D = STRANGE[kind](X)
    found = of_distances(method, normalize="orthonormal").fit(D)
    assert np.isfinite(found.embedding_).all()
    assert np.isfinite(found.transform(STRANGE[kind](X + 0.01))).all()
    np.testing.assert_array_equal(found.transform(D), found.embedding_)


def test_distances_with_the_rounding_of_products_are_taken(method):
    X = sheet(120)
    norms = (X**2).sum(axis=1)
    D = np.sqrt(np.abs(norms[:, None] + norms[None, :] - 2 * X @ X.T))
    D.flat[::121] += 1e-9  # as rounding may leave it
    found = of_distances(method, normalize="orthonormal").fit(D)
    rows = method(2, normalize="orthonormal", random_state=0).fit(X)
    assert sine(rows.embedding_, found.embedding_) < 1e-4
    np.testing.assert_array_equal(found.transform(D), found.embedding_)


# --- what cannot be used --------------------------------------------------------------------------


@each(
    ("D", "message"),
    [
        (np.ones((20, 7)), r"needs a square matrix of distances, not \(20, 7\)"),
        (np.full((9, 9), np.nan), r"contains NaN: column 0, first in row 0"),
        (np.triu(np.ones((9, 9)), 1), r"needs a symmetric matrix, but X\[0, 1\] = 1"),
    ],
    ids=["not square", "NaN", "not symmetric"],
)
def test_what_holds_no_distances_is_refused_with_its_place(method, D, message):
    with pytest.raises(DataError, match=message):
        of_distances(method).fit(D)


def test_a_graph_or_sparse_distances_are_refused_with_what_is_missing(method):
    X = sheet(60)
    graph = knn_graph(X, 12)
    needed = r"distances between the neighbors of a row .* dense matrix of all distances"
    for given in (graph, graph.to_csr()):
        with pytest.raises(DataTypeError, match=needed):
            of_distances(method).fit(given)
    with pytest.raises(DataTypeError, match=needed):
        method(2).fit(graph)
    fitted = of_distances(method).fit(cdist(X, X))
    with pytest.raises(DataTypeError, match=needed):
        fitted.transform(graph.to_csr())


def test_new_distances_are_checked(method):
    X = sheet(60)
    fitted = of_distances(method).fit(cdist(X, X))
    with pytest.raises(DataError, match=r"X has 59 features, but .* is expecting 60"):
        fitted.transform(np.ones((3, 59)))
    with pytest.raises(DataError, match="needs distances >= 0, but the least is -2"):
        fitted.transform(np.full((3, 60), -2.0))
    with pytest.raises(DataError, match="contains NaN"):
        fitted.transform(np.full((3, 60), np.nan))


def test_scikit_learn_is_told_that_columns_are_rows(method):
    assert get_tags(of_distances(method)).input_tags.pairwise
    assert not get_tags(method()).input_tags.pairwise


# --- sparse tables --------------------------------------------------------------------------------


def test_a_large_sparse_table_is_refused_with_advice(method):
    wide = scipy.sparse.csr_matrix(([1.0, 2.0], ([3, 7], [5, 80_000])), shape=(100, 90_000))
    with pytest.raises(LowlandError, match=r"100 x 90000 would be large; reduce it by PCA first"):
        method(2).fit(wide)

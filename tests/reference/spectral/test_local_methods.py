"""LLE, LTSA, ModifiedLLE, HessianLLE: naive oracles, closed forms, known sheets, scikit-learn."""

import numpy as np
import pytest
from sklearn.manifold import locally_linear_embedding

from lowland import LLE, LTSA, HessianLLE, ModifiedLLE
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.linalg.procrustes import align
from lowland._engines.patches.patch_weights import PatchRows
from lowland.datasets import bent_sheet, s_curve, swiss_roll
from lowland.errors import DataError, ParameterError
from lowland.methods.spectral._locally_linear import Neighborhoods
from support.cases import each

METHODS = [LLE, LTSA, ModifiedLLE, HessianLLE]


@pytest.fixture(params=METHODS, ids=lambda cls: cls.__name__)
def method(request):
    return request.param


# --- the papers, written out ----------------------------------------------------------------------


def nearest(X, k):
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")[:, :k].astype(np.int32)


def lle_weights(x, neighbors, reg):
    C = np.array([[np.dot(a - x, b - x) for b in neighbors] for a in neighbors])
    w = np.linalg.solve(C + reg * np.trace(C) * np.eye(len(C)), np.ones(len(C)))
    return w / w.sum()


def lle_matrix(X, near, q, reg=1e-3):
    W = np.zeros((len(X), len(X)))
    for i, ids in enumerate(near):
        W[i, ids] = lle_weights(X[i], X[ids], reg)
    E = np.eye(len(X)) - W
    return E.T @ E


def ltsa_matrix(X, near, q, with_self=True):
    B = np.zeros((len(X), len(X)))
    for i, ids in enumerate(near):
        patch = np.r_[i, ids] if with_self else ids
        local = X[patch] - X[patch].mean(axis=0)
        U = np.linalg.svd(local)[0][:, :q]
        G = np.column_stack([np.full(len(patch), len(patch) ** -0.5), U])
        B[np.ix_(patch, patch)] += np.eye(len(patch)) - G @ G.T
    return B


def hessian_matrix(X, near, q):
    M = np.zeros((len(X), len(X)))
    for ids in near:
        local = X[ids] - X[ids].mean(axis=0)
        U = np.linalg.svd(local)[0][:, :q]
        products = [U[:, a] * U[:, b] for a in range(q) for b in range(a, q)]
        Q = np.linalg.qr(np.column_stack([np.ones(len(ids)), U, *products]))[0]
        H = Q[:, 1 + q :]
        M[np.ix_(ids, ids)] += H @ H.T
    return M


def modified_matrix(X, near, q, reg=1e-3, bounded=True):
    n, k = near.shape
    most = k - q if bounded else k - 1
    spectra = []
    for i in range(n):
        G = X[near[i]] - X[i]
        values, vectors = np.linalg.eigh(G @ G.T)
        spectra.append((np.maximum(values[::-1], 0), vectors[:, ::-1]))
    eta = np.median([values[q:].sum() / values[:q].sum() for values, _ in spectra])
    M = np.zeros((n, n))
    for i, (values, vectors) in enumerate(spectra):
        tails = [(s, values[k - s :].sum(), values[: k - s].sum()) for s in range(1, most + 1)]
        fine = [s for s, tail, others in tails if tail < eta * others]
        s = max(fine, default=1)
        V = vectors[:, k - s :]
        alpha = np.linalg.norm(V.T @ np.ones(k)) / np.sqrt(s)
        h = alpha * np.ones(s) - V.T @ np.ones(k)
        if np.linalg.norm(h) > 1e-12:
            h /= np.linalg.norm(h)
        w = lle_weights(X[i], X[near[i]], reg)
        W = (1 - alpha) * np.outer(w, np.ones(s)) + V @ (np.eye(s) - 2 * np.outer(h, h))
        np.testing.assert_allclose(W.sum(axis=0), 1)
        F = np.zeros((n, s))
        F[near[i]] = W
        F[i] -= 1
        M += F @ F.T
    return M


ORACLES = {
    LLE: lle_matrix,
    LTSA: ltsa_matrix,
    ModifiedLLE: modified_matrix,
    HessianLLE: hessian_matrix,
}


def curved(n, p, q, seed=0):
    """Irregular rows near a curved q-dimensional sheet in p dimensions, with noise."""
    rng = np.random.default_rng(seed)
    T = rng.random((n, q)) ** 1.3 * np.arange(2, 2 + q)
    bends = np.column_stack([T, np.sin(2 * T), T**2 / 3])
    return bends @ rng.standard_normal((bends.shape[1], p)) + 0.01 * rng.standard_normal((n, p))


def matrix_of(estimator, X, near):
    run = FitContext(np.random.default_rng(0), 2, Monitor())
    return estimator._matrix(Neighborhoods(PatchRows(X), near), run)


def everyone_has_a_patch(near):
    return len(np.unique(near)) == len(near)


@each(("p", "q", "k"), [(3, 2, 10), (30, 2, 9), (8, 3, 14), (5, 1, 6), (14, 2, 14)])
def test_the_matrix_is_that_of_the_paper(method, p, q, k):
    X = curved(120, p, q) * 7 + 100
    near = nearest(X, k)
    assert method is not HessianLLE or everyone_has_a_patch(near)
    M = matrix_of(method(q, n_neighbors=k), X, near)
    expected = ORACLES[method](X, near, q)
    np.testing.assert_allclose(M.toarray(), expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(M @ np.ones(120), 0, atol=1e-10 * np.abs(expected).max())


@each("reg", [1e-9, 1e-2, 1.0])
@each("local", [LLE, ModifiedLLE])
def test_the_ridge_of_the_weights_is_the_one_asked_for(local, reg):
    X = curved(60, 4, 2)
    near = nearest(X, 9)
    M = matrix_of(local(2, n_neighbors=9, reg=reg), X, near)
    expected = ORACLES[local](X, near, 2, reg=reg)
    np.testing.assert_allclose(M.toarray(), expected, atol=1e-6 * np.abs(expected).max())


@each(("n", "solver"), [(200, "dense"), (700, "factor")])
def test_the_map_is_the_bottom_of_that_matrix(method, n, solver):
    X = curved(n, 4, 2)
    values, vectors = np.linalg.eigh(ORACLES[method](X, nearest(X, 12), 2))
    found = method(2, normalize="orthonormal", random_state=0).fit(X)
    np.testing.assert_allclose(found.eigenvalues_, values[1:3], rtol=1e-5)
    Y = found.embedding_ / np.sqrt(n)
    assert np.linalg.norm(Y - vectors[:, 1:3] @ (vectors[:, 1:3].T @ Y), 2) < 1e-5
    np.testing.assert_allclose(found.embedding_.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.cov(found.embedding_.T, bias=True), np.eye(2), atol=1e-9)
    assert found.residual_ < 1e-5


def test_rows_that_are_nobodys_neighbor_are_held_by_a_patch_of_hessian_lle():
    X = curved(150, 4, 2)
    X = np.vstack([X, X[:1] + 1.5])  # far off: it has neighbors, but is none
    near = nearest(X, 10)
    assert 150 not in near
    M = matrix_of(HessianLLE(2, n_neighbors=10), X, near)
    assert M[150, 150] > 1e-3
    assert np.abs(HessianLLE(2, n_neighbors=10).fit_transform(X)).max() < 20


# --- flat data ------------------------------------------------------------------------------------


@each("q", [2, 3])
@each("cls", [LTSA, HessianLLE, ModifiedLLE])
def test_linear_data_have_exactly_q_plus_one_zeros_and_affine_coordinates(cls, q):
    rng = np.random.default_rng(q)
    T = rng.gamma(2.0, size=(300, q)) * np.arange(1, q + 1)
    X = T @ rng.standard_normal((q, 6)) + 5 * rng.standard_normal(6)
    exact = {"reg": 1e-12} if cls is ModifiedLLE else {}
    values = np.linalg.eigvalsh(
        matrix_of(cls(q, n_neighbors=14, **exact), X, nearest(X, 14)).toarray()
    )
    assert np.abs(values[: q + 1]).max() < 1e-13 * values[-1]
    assert values[q + 1] > 1e-6 * values[-1]
    A = np.column_stack([T, np.ones(300)])
    for normalize in ("orthonormal", "isometric"):
        Y = cls(q, n_neighbors=14, normalize=normalize, random_state=0, **exact).fit_transform(X)
        off = Y - A @ np.linalg.lstsq(A, Y)[0]
        assert np.abs(off).max() < 1e-8 * np.abs(Y).max()
    # the last map is true to scale: it is the plane itself, moved
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.testing.assert_allclose(np.linalg.norm(Y[:, None] - Y[None], axis=2), D, atol=1e-7 * D.max())


# --- sheets ---------------------------------------------------------------------------------------


def affine_error(truth, Y):
    """Share of the truth's variance that no affine image of Y explains."""
    A = np.column_stack([Y, np.ones(len(Y))])
    rest = truth - A @ np.linalg.lstsq(A, truth)[0]
    return (rest**2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum()


AFFINE_BOUNDS = {LLE: 2e-2, LTSA: 5e-4, ModifiedLLE: 1e-2, HessianLLE: 5e-4}


@each("seed", [0, 1, 2])
def test_a_roll_is_unrolled_up_to_an_affine_map(method, seed):
    roll = swiss_roll(2000, random_state=seed)
    Y = method(2, normalize="orthonormal", random_state=0).fit_transform(roll.X)
    assert affine_error(roll.truth, Y) < AFFINE_BOUNDS[method]


@each("cls", [ModifiedLLE, HessianLLE])
@each("make", [swiss_roll, bent_sheet])
def test_a_sheet_is_flattened_in_its_own_units(cls, make):
    sheet = make(2000, random_state=3)
    found = align(sheet.truth, cls(2, random_state=0).fit_transform(sheet.X), scaling=True)
    assert found.disparity < AFFINE_BOUNDS[cls] + 1e-4
    assert found.scale == pytest.approx(1.0, abs=0.03)


@each("n", [1000])
def test_a_large_fit_is_the_same_for_any_number_of_threads(method, n):
    X = s_curve(n, random_state=0).X
    one, two = (method(2, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2))
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.transform(X + 0.01).tobytes() == two.transform(X + 0.01).tobytes()
    alone = np.vstack([two.transform(row[None] + 0.01) for row in X[:40]])
    np.testing.assert_array_equal(alone, two.transform(X + 0.01)[:40])


# --- scikit-learn ---------------------------------------------------------------------------------

PEERS = {LLE: "standard", LTSA: "ltsa", ModifiedLLE: "modified", HessianLLE: "hessian"}


def peer_map(cls, X, k=12):
    return locally_linear_embedding(
        X, n_neighbors=k, n_components=2, method=PEERS[cls], eigen_solver="dense"
    )[0]


def sine(U, V):
    return np.linalg.norm(V - U @ (U.T @ V), 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_subspace_of_lle_is_scikit_learns(seed):
    X = curved(300, 3, 2, seed)
    assert sine(peer_map(LLE, X), LLE(2).fit_transform(X) / np.sqrt(300)) < 1e-5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_scikit_learns_other_methods_are_ours_with_known_differences(seed):
    """What it does, written out here, equals it: so these are the only differences.

    LTSA leaves the row itself out of its patch. "hessian" takes all directions beside the tangent
    plane and not only those of the products, which makes it LTSA. "modified" lets s_i go beyond
    k - q.
    """
    X = curved(300, 3, 2, seed)  # an even number: then no row's share is the median itself
    near = nearest(X, 12)
    without_self = np.linalg.eigh(ltsa_matrix(X, near, 2, with_self=False))[1][:, 1:3]
    unbounded = np.linalg.eigh(modified_matrix(X, near, 2, bounded=False))[1][:, 1:3]
    assert sine(peer_map(LTSA, X), without_self) < 1e-5
    assert sine(peer_map(HessianLLE, X), without_self) < 1e-5
    assert sine(peer_map(ModifiedLLE, X), unbounded) < 1e-5


# --- bad and odd input ----------------------------------------------------------------------------

LEAST = {LLE: 1, LTSA: 3, ModifiedLLE: 3, HessianLLE: 6}


def test_too_few_neighbors_are_refused_with_the_number_needed(method):
    X, least = curved(60, 4, 2), LEAST[method]
    assert np.isfinite(method(2, n_neighbors=least).fit_transform(X)).all()
    if least > 1:
        with pytest.raises(ParameterError, match=rf"n_neighbors={least - 1}.*at least {least}"):
            method(2, n_neighbors=least - 1).fit(X)


def test_the_number_needed_grows_with_the_dimension():
    with pytest.raises(ParameterError, match=r"n_neighbors=12 is too few.*at least 15"):
        HessianLLE(4).fit(curved(60, 6, 4))


def test_more_neighbors_than_rows_are_all_rows(method):
    X = curved(15, 4, 2)
    many, all_others = method(2, n_neighbors=40).fit(X), method(2, n_neighbors=14).fit(X)
    assert many.n_neighbors_ == 14
    np.testing.assert_array_equal(many.embedding_, all_others.embedding_)


def test_so_few_rows_that_they_are_one_patch_are_shown_in_its_plane():
    X = curved(5, 4, 2)
    Y = HessianLLE(2).fit_transform(X)
    U, S, _ = np.linalg.svd(X - X.mean(axis=0))
    np.testing.assert_allclose(np.abs(Y), np.abs(U[:, :2] * S[:2]), atol=1e-10)


def test_equal_rows_get_one_place_and_change_nothing(method):
    X = curved(100, 4, 2)
    repeated = np.vstack([X, np.repeat(X[7:8], 30, axis=0), X[3:5]])  # more than n_neighbors
    found, single = method(2, random_state=0).fit(repeated), method(2, random_state=0).fit(X)
    np.testing.assert_allclose(found.embedding_[:100], single.embedding_, atol=1e-12)
    assert (found.embedding_[100:130] == found.embedding_[7]).all()
    np.testing.assert_array_equal(found.transform(repeated), found.embedding_)


def test_collinear_neighbors_leave_a_finite_map(method):
    line = np.outer(np.sort(np.random.default_rng(0).random(80)), [1.0, 2.0, -1.0])
    Y = method(2, normalize="orthonormal").fit_transform(line)
    assert np.isfinite(Y).all()
    grid = np.array([[a, b, 0.0] for a in range(12) for b in range(5)])  # collinear in places
    assert np.isfinite(method(2).fit_transform(grid)).all()


def test_a_line_has_no_isometric_map_of_two_dimensions():
    line = np.outer(np.sort(np.random.default_rng(0).random(80)), [1.0, 2.0, -1.0])
    with pytest.raises(DataError, match=r"no neighborhood .* n_components=2 dimensions"):
        HessianLLE(2).fit(line)
    with pytest.raises(ParameterError, match="n_features=1"):
        HessianLLE(2).fit(line[:, :1])


# --- graphs in several pieces ---------------------------------------------------------------------


@pytest.fixture
def pieces():
    """100, 60 and 30 rows far from each other, shuffled; and which piece each is of."""
    shift = np.array([20.0, 0, 0])
    parts = [curved(n, 3, 2, seed) + seed * shift for seed, n in enumerate((100, 60, 30))]
    order = np.random.default_rng(0).permutation(190)
    return np.vstack(parts)[order], np.repeat([0, 1, 2], [100, 60, 30])[order]


def test_bridges_join_the_pieces(method, pieces):
    X, _ = pieces
    found = method(2, random_state=0).fit(X)
    assert found.n_connected_components_ == 3
    assert found.excluded_.size == 0
    assert np.isfinite(found.embedding_).all()
    assert (found.eigenvalues_ > 0).all()
    np.testing.assert_array_equal(found.transform(X), found.embedding_)


def test_the_constant_is_the_only_trivial_vector_once_the_pieces_are_joined(method, pieces):
    X, _ = pieces
    estimator = method(2, random_state=0)
    run = FitContext(np.random.default_rng(0), 1, Monitor())
    neighborhoods, kept, _ = estimator._neighborhoods(PatchRows(X), 12, run)
    assert len(kept) == 190
    values = np.linalg.eigvalsh(estimator._matrix(neighborhoods, run).toarray())
    assert values[0] < 1e-12 * values[-1]
    assert values[1] > 1e-11 * values[-1]


def test_several_pieces_can_be_refused(method, pieces):
    with pytest.raises(DataError, match=r"3 components, of 100, 60, 30 rows"):
        method(2, on_disconnected="raise").fit(pieces[0])

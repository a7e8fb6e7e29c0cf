"""KernelPCA against its definition, closed forms, and scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn import decomposition
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics.pairwise import laplacian_kernel

import lowland
from lowland import PCA, KernelPCA
from lowland._engines.kernels import kernel_operators
from lowland.errors import ConvergenceWarning, DataError, MemoryLimitError, ParameterError
from lowland.methods.kernel import _axes
from lowland.metrics import trustworthiness
from support.cases import each
from support.oracles.linear import kernel_value

Peer = decomposition.KernelPCA

NAMED = {
    "rbf": {"gamma": 0.08},
    "laplacian": {"gamma": 0.05},
    "poly": {"gamma": 0.1, "coef0": 0.5, "degree": 3},
    "sigmoid": {"gamma": 0.002, "coef0": 0.1},
    "cosine": {},
    "linear": {},
}
EXACT = ["dense", "krylov"]


@pytest.fixture(params=NAMED)
def named(request):
    return {"kernel": request.param, **NAMED[request.param]}


def values_of(A, B, kernel, gamma=1.0, **params):
    """A kernel of all pairs of rows, as the definition has it."""
    params["kernel"] = kernel
    return np.array([[kernel_value(a, b, params, gamma) for b in B] for a in A])


def from_definition(X, new, k, **kernel):
    """Eigenpairs of the centered matrix, the map, and the places of new rows, with loops.

    The centered values of new rows are written out: k(x, x_j) less the mean of its row, less that
    of the fitted column, plus that of all.
    """
    n = len(X)
    K = values_of(X, X, **kernel)
    H = np.eye(n) - np.ones((n, n)) / n
    values, V = np.linalg.eigh(H @ K @ H)
    values, V = values[::-1][:k], V[:, ::-1][:, :k]
    V = V * np.sign(V[np.abs(V).argmax(axis=0), range(k)])
    rows = values_of(new, X, **kernel)
    centered = rows - rows.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    return values, V, V * np.sqrt(values), centered @ (V / np.sqrt(values))


def aligned(Y, Z):
    """Y with its columns turned to those of Z."""
    return Y * np.sign((Y * Z).sum(axis=0))


# --- (a) the definition -------------------------------------------------------------------------


@each("solver", EXACT)
def test_the_map_is_that_of_the_definition(irregular, named, solver):
    X, new = irregular(70, 5), irregular(12, 5, 1)
    values, V, Y, placed = from_definition(X, new, 3, **named)
    found = KernelPCA(3, solver=solver, tol=1e-10, random_state=0, **named)
    scale = np.abs(Y).max()
    np.testing.assert_allclose(found.fit_transform(X), Y, atol=1e-7 * scale)
    np.testing.assert_allclose(found.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(found.transform(X), Y, atol=1e-7 * scale)
    np.testing.assert_allclose(found.transform(new), placed, atol=1e-7 * scale)
    np.testing.assert_allclose(found.dual_vectors_, V / np.sqrt(values), rtol=1e-6, atol=1e-9)


def test_dual_vectors_make_axes_of_length_one(irregular, named):
    X = irregular(60, 4)
    found = KernelPCA(4, **named).fit(X)
    H = np.eye(60) - 1 / 60
    K = H @ values_of(X, X, **named) @ H
    A = found.dual_vectors_
    np.testing.assert_allclose(A.T @ K @ A, np.eye(4), atol=1e-9)
    np.testing.assert_allclose((A**2).sum(axis=0), 1 / found.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(found.explained_variance_ratio_, found.eigenvalues_ / np.trace(K))


def test_gamma_by_default_and_by_the_median(irregular):
    X = irregular(80, 5)
    gaps = X[:, None] - X[None]
    pairs = np.triu_indices(80, 1)
    s2 = np.median(np.sqrt((gaps**2).sum(axis=2))[pairs]) ** 2
    s1 = np.median(np.abs(gaps).sum(axis=2)[pairs])
    squares = (X**2).sum(axis=1).mean()
    expected = {"rbf": 2 / s2, "laplacian": 2 / s1, "poly": 1 / squares, "sigmoid": 0.25 / squares}
    for kernel, gamma in expected.items():
        assert KernelPCA(kernel=kernel).fit(X).gamma_ == pytest.approx(gamma), kernel
        sparse = scipy.sparse.csr_array(X)
        assert KernelPCA(kernel=kernel).fit(sparse).gamma_ == pytest.approx(gamma), kernel
        assert KernelPCA(kernel=kernel, gamma="1/p").fit(X).gamma_ == 1 / 5
    assert KernelPCA(gamma="median").fit(X).gamma_ == pytest.approx(1 / (2 * s2))
    laplacian = KernelPCA(kernel="laplacian", gamma="median").fit(X)
    assert laplacian.gamma_ == pytest.approx(1 / s1)
    with pytest.raises(ParameterError, match="gamma='median' is for kernel='rbf'"):
        KernelPCA(kernel="poly", gamma="median").fit(X)


# --- (b) closed forms ---------------------------------------------------------------------------


@pytest.mark.parametrize("solver", EXACT)
def test_the_linear_kernel_is_pca(irregular, solver):
    X = irregular(90, 6)
    pca, found = (
        PCA(4).fit(X),
        KernelPCA(4, kernel="linear", solver=solver, random_state=0, tol=1e-9),
    )
    Y, Z = pca.transform(X), found.fit_transform(X)
    np.testing.assert_allclose(aligned(Z, Y), Y, atol=1e-7 * np.abs(Y).max())
    np.testing.assert_allclose(found.eigenvalues_, 89 * pca.explained_variance_, rtol=1e-9)
    ratio = pca.explained_variance_ratio_
    np.testing.assert_allclose(found.explained_variance_ratio_, ratio, rtol=1e-9)
    back = pca.inverse_transform(Y)
    np.testing.assert_allclose(found.inverse_transform(Z), back, atol=1e-7 * np.abs(X).max())


def rings(n, seed):
    """Two rings of radius 1 and .3 with noise of .05."""
    rng = np.random.default_rng(seed)
    inner = np.arange(n) % 2 == 0
    angle = 2 * np.pi * rng.random(n)
    X = np.where(inner, 0.3, 1.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.05 * rng.standard_normal((n, 2)), inner


def test_gamma_where_most_rows_are_equal():
    X = np.repeat([[0.0, 0.0], [300.0, 0.0], [0.0, 400.0]], [30, 3, 2], axis=0)
    assert KernelPCA().fit(X).gamma_ == pytest.approx(2 / 300**2)
    assert KernelPCA().fit(np.ones((20, 3))).gamma_ == 2.0  # all equal: any scale does


@each("noise", [0.0, 0.05, 0.08])
@each("radius", [0.2, 0.3])
@each("n, unit", [(100, 1.0), (300, 500.0), (1200, 1e-3)])
def test_two_rings_come_apart_by_default(n, unit, radius, noise):
    rng = np.random.default_rng(n)
    inner, angle = np.arange(n) % 2 == 1, 2 * np.pi * rng.random(n)
    X = np.where(inner, radius, 1.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    X = unit * (X + noise * rng.standard_normal(X.shape))
    Y = KernelPCA(2, random_state=0).fit_transform(X)
    design = np.column_stack([Y, np.ones(n)])
    side = design @ np.linalg.lstsq(design, 2.0 * inner - 1, rcond=None)[0]
    assert ((side > 0) == inner).mean() >= 0.98


@each("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
def test_the_default_scale_shows_unscaled_columns(kernel):
    """Columns of very different units: with 1/p all values of these kernels are 0 or 1."""
    X = load_wine().data
    Y = KernelPCA(2, kernel=kernel).fit_transform(X)
    assert trustworthiness(X, Y, n_neighbors=12) > 0.95
    scaled = KernelPCA(2, kernel=kernel).fit_transform(1000 * X)
    np.testing.assert_allclose(scaled, Y, atol=1e-6 * np.abs(Y).max())


# --- (c) scikit-learn ---------------------------------------------------------------------------


@each("solver", EXACT)
def test_the_map_is_that_of_scikit_learn(irregular, named, solver):
    X, new = irregular(300, 8), irregular(40, 8, 1)
    if named["kernel"] == "laplacian":  # it has the function, but not by name
        peer = Peer(4, kernel="precomputed", eigen_solver="dense")
        K, rows = (laplacian_kernel(A, X, named["gamma"]) for A in (X, new))
    else:
        peer, K, rows = Peer(4, **named, eigen_solver="dense"), X, new
    found = KernelPCA(4, solver=solver, random_state=0, **named)
    Y, Z = peer.fit(K).transform(K), found.fit_transform(X)
    # krylov: a residual of 1e-6 over gaps of a few percent
    atol = (1e-9 if solver == "dense" else 1e-4) * np.abs(Y).max()
    np.testing.assert_allclose(aligned(Z, Y), Y, atol=atol)
    placed = peer.transform(rows)
    np.testing.assert_allclose(aligned(found.transform(new), placed), placed, atol=atol)
    rtol = 1e-9 if solver == "dense" else 1e-6
    np.testing.assert_allclose(found.eigenvalues_, peer.eigenvalues_, rtol=rtol)


def test_all_components_are_those_with_a_positive_eigenvalue(irregular):
    X = irregular(40, 3)
    peer = Peer(None, kernel="poly", gamma=1.0, degree=2, coef0=1.0).fit(X)
    found = KernelPCA(None, kernel="poly", gamma=1.0, degree=2).fit(X)
    assert found.n_components_ == 9  # of a quadratic in three variables, without the constant
    np.testing.assert_allclose(found.eigenvalues_, peer.eigenvalues_[:9], rtol=1e-8)
    assert KernelPCA(None, kernel="poly", degree=2, solver="nystroem").fit(X).n_components_ == 9


# --- solvers ------------------------------------------------------------------------------------


@pytest.fixture
def table(irregular):
    """More rows than solver="auto" solves by "dense"."""
    return irregular(1300, 6)


@each("dtype", [np.float32, np.float64])
def test_krylov_reaches_its_residual_in_both_precisions(table, named, dtype):
    X = table.astype(dtype)
    exact = KernelPCA(3, solver="dense", **named).fit(X)
    found = KernelPCA(3, random_state=0, **named)
    Y = found.fit_transform(X)
    assert Y.dtype == dtype
    assert 0 < found.residual_ <= 1e-6
    np.testing.assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=1e-5)
    scale = np.abs(Y).max()
    np.testing.assert_allclose(Y, exact.transform(X), atol=1e-4 * scale)
    np.testing.assert_allclose(found.transform(X), Y, atol=1e-5 * scale)


def test_krylov_uses_single_precision_only_where_it_is_good_enough(table, monkeypatch):
    used = []

    def spy(points, kernel, threads, dtype=np.float64):
        used.append(np.dtype(dtype))
        return kernel_operators.kernel_matrix(points, kernel, threads, dtype)

    monkeypatch.setattr(_axes, "kernel_matrix", spy)
    apart = table + 1e4 * (np.arange(len(table)) % 2)[:, None]
    for X, tol, expected in (
        (table, 1e-6, np.float32),
        (table, 1e-9, np.float64),
        (apart, 1e-6, np.float64),  # x.y is a million times the exponent: all digits cancel
    ):
        KernelPCA(2, gamma=0.02, tol=tol, random_state=0, solver="krylov").fit(X)
        assert used[-1] == expected


def test_krylov_says_when_it_misses_its_tolerance():
    X = np.random.default_rng(0).standard_normal((1500, 40))  # forty directions, all alike
    found = KernelPCA(3, tol=1e-18, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"relative residual of .* \(tol=1e-18\)"):
        found.fit(X)
    assert 1e-18 < found.residual_ < 1e-3


def test_the_number_of_threads_and_of_kept_tiles_change_no_byte(table, monkeypatch):
    models = [KernelPCA(3, gamma=0.05, random_state=0, n_jobs=jobs) for jobs in (1, 2, 2)]
    maps = [models[0].fit_transform(table), models[1].fit_transform(table)]
    monkeypatch.setattr(kernel_operators, "KEPT_BYTES", 0)
    maps.append(models[2].fit_transform(table))
    for model, Y in zip(models, maps, strict=True):
        np.testing.assert_array_equal(Y, maps[0])
        np.testing.assert_array_equal(model.transform(table[:99]), models[0].transform(table[:99]))


@each("solver", ["krylov", "nystroem"])
def test_the_place_of_a_row_does_not_depend_on_other_rows(table, named, solver):
    found = KernelPCA(2, solver=solver, random_state=0, n_landmarks=60, **named).fit(table[:1100])
    together = found.transform(table[1000:])
    alone = np.vstack([found.transform(row[None]) for row in table[1000:]])
    assert together.tobytes() == alone.tobytes()


# --- landmarks ----------------------------------------------------------------------------------


def test_all_rows_as_landmarks_are_the_exact_solution(irregular, named):
    X = irregular(80, 5)
    exact, found = KernelPCA(3, **named), KernelPCA(3, solver="nystroem", random_state=0, **named)
    Y, Z = exact.fit_transform(X), found.fit_transform(X)
    if named["kernel"] == "sigmoid":  # indefinite: landmarks span the positive part only
        np.testing.assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=0.05)
        return
    np.testing.assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(aligned(Z, Y), Y, atol=1e-6 * np.abs(Y).max())
    ratio = exact.explained_variance_ratio_
    np.testing.assert_allclose(found.explained_variance_ratio_, ratio, rtol=1e-6)


def test_landmarks_are_the_pca_of_projections_on_them(irregular):
    """The definition: phi(x) projected on the span of the landmarks' images, then PCA."""
    X, new = irregular(200, 4), irregular(10, 4, 1)
    found = KernelPCA(3, gamma=0.05, solver="nystroem", n_landmarks=25, random_state=3).fit(X)
    L = found.fitted_rows_
    assert L.shape == (25, 4)
    assert all((row == X).all(axis=1).any() for row in L)

    def K(A, B):
        return np.exp(-0.05 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    values, U = np.linalg.eigh(K(L, L))
    root = U / np.sqrt(values)
    pca = PCA(3).fit(K(X, L) @ root)
    for rows in (X, new):
        Y = pca.transform(K(rows, L) @ root)
        np.testing.assert_allclose(aligned(found.transform(rows), Y), Y, atol=1e-6)
    np.testing.assert_allclose(found.eigenvalues_, 199 * pca.explained_variance_, rtol=1e-6)
    assert found.residual_ is None
    # the mean image, as far as the landmarks span it: its product with each of theirs is the mean
    np.testing.assert_allclose(K(L, L) @ found.mean_weights_, K(X, L).mean(axis=0), atol=1e-7)


def test_landmarks_of_given_values_and_of_functions(irregular):
    X, new = irregular(90, 4), irregular(7, 4, 1)
    shared = {"solver": "nystroem", "n_landmarks": 30, "random_state": 0}
    expected = KernelPCA(2, gamma=0.1, **shared).fit(X)
    K, rows = (values_of(A, X, "rbf", 0.1) for A in (X, new))
    given = KernelPCA(2, kernel="precomputed", **shared).fit(K)
    called = KernelPCA(2, kernel=lambda a, b: np.exp(-0.1 * (a - b) @ (a - b)), **shared).fit(X)
    np.testing.assert_allclose(given.transform(rows), expected.transform(new), atol=1e-9)
    np.testing.assert_allclose(called.transform(new), expected.transform(new), atol=1e-9)
    assert (given.dual_vectors_ != 0).any(axis=1).sum() == 30


@pytest.mark.parametrize("m", [1, 91])
def test_a_number_of_landmarks_that_cannot_be_is_refused(irregular, m):
    with pytest.raises(ParameterError, match=f"n_landmarks={m} must be between n_components=2"):
        KernelPCA(2, solver="nystroem", n_landmarks=m).fit(irregular(90, 3))


# --- indefinite kernels and missing rank --------------------------------------------------------


@pytest.mark.parametrize("solver", EXACT)
def test_only_positive_eigenvalues_make_axes(solver):
    rng = np.random.default_rng(0)
    V = rng.standard_normal((60, 4))
    V -= V.mean(axis=0)
    V = np.linalg.qr(V)[0]
    K = (V * [5.0, 2.0, -3.0, -4.0]) @ V.T
    with pytest.warns(UserWarning, match=r"only 2 of 3 components .* from -4 to 5") as caught:
        found = KernelPCA(3, kernel="precomputed", solver=solver, random_state=0).fit(K)
    assert len(caught) == 1
    np.testing.assert_allclose(found.eigenvalues_, [5, 2, 0], atol=1e-8)
    assert found.lowest_eigenvalue_ == pytest.approx(-4, rel=1e-6)
    Y = found.transform(K)
    np.testing.assert_allclose(aligned(Y[:, :2], V[:, :2]), V[:, :2] * np.sqrt([5, 2]), atol=1e-7)
    assert (Y[:, 2] == 0).all()
    quiet = KernelPCA(2, kernel="precomputed", solver=solver, random_state=0).fit(K)
    assert quiet.lowest_eigenvalue_ == pytest.approx(-4, rel=1e-6)
    assert KernelPCA(None, kernel="precomputed").fit(K).n_components_ == 2


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystroem"])
def test_axes_beyond_the_rank_are_zero(irregular, solver):
    X = irregular(120, 2) @ np.array([[1.0, 2, 0, 1], [0, 1, 1, -1]])
    found = KernelPCA(5, kernel="linear", solver=solver, random_state=0).fit(X)
    assert (found.eigenvalues_[:2] > 0).all()
    assert (found.eigenvalues_[2:] == 0).all()
    Y = found.transform(X)
    assert (Y[:, 2:] == 0).all()
    np.testing.assert_allclose((Y**2).sum(axis=0), found.eigenvalues_, rtol=1e-5)


# --- pre-images ---------------------------------------------------------------------------------


def test_noise_on_digits_is_lowered_by_going_there_and_back():
    clean = load_digits().data / 16.0
    rng = np.random.default_rng(0)
    noisy = clean + 0.25 * rng.standard_normal(clean.shape)
    train, test = slice(0, 1200), slice(1200, 1500)
    found = KernelPCA(40, gamma="median", random_state=0).fit(noisy[train])
    back = found.inverse_transform(found.transform(noisy[test]))
    before, after = (((A - clean[test]) ** 2).mean() for A in (noisy[test], back))
    assert after < 0.6 * before


# --- data ---------------------------------------------------------------------------------------


@each("solver", ["dense", "krylov", "nystroem"])
@each("written_out", [True, False])
def test_sparse_rows_are_placed_like_dense_ones(
    irregular, named, solver, written_out, monkeypatch, tmp_path
):
    X, new = irregular(200, 6), irregular(15, 6, 1)
    X[X < 1], new[new < 1] = 0, 0
    S = scipy.sparse.csr_array(X)
    if not written_out:
        monkeypatch.setattr("lowland._base.validation.DENSE_NUMBERS", 0)
    shared = {"solver": solver, "n_landmarks": 150, "tol": 1e-9, "random_state": 0, **named}
    dense, found = KernelPCA(2, **shared).fit(X), KernelPCA(2, **shared).fit(S)
    assert scipy.sparse.issparse(found.fitted_rows_) != written_out
    expected = dense.transform(new)
    # the linear kernel of shifted rows has another span of landmarks
    loose = solver == "nystroem" and named["kernel"] == "linear"
    atol = (1e-4 if loose else 1e-6) * np.abs(expected).max()
    for given in (new, scipy.sparse.csr_array(new)):
        np.testing.assert_allclose(found.transform(given), expected, atol=atol)
    found.save(tmp_path / "model.lowland")
    loaded = lowland.load(tmp_path / "model.lowland")
    np.testing.assert_array_equal(loaded.transform(new), found.transform(new))
    if not written_out and named["kernel"] in ("rbf", "linear", "laplacian"):
        Y = found.transform(new)
        back = dense.inverse_transform(Y)
        np.testing.assert_allclose(found.inverse_transform(Y), back, atol=1e-3 * np.abs(X).max())


def test_kernel_values_must_be_square_and_symmetric(irregular):
    K = np.cov(irregular(30, 20).T)
    with pytest.raises(DataError, match=r"needs the square matrix .* shape \(19, 20\)"):
        KernelPCA(kernel="precomputed").fit(K[:19])
    K[3, 4] += 1
    with pytest.raises(DataError, match="needs a symmetric matrix"):
        KernelPCA(kernel="precomputed").fit(K)


def test_values_that_overflow_are_refused():
    X = np.random.default_rng(0).standard_normal((30, 2)) * 1e6
    with pytest.raises(DataError, match="overflow"):
        KernelPCA(kernel="poly", gamma="1/p", degree=40).fit(X)


def test_memory_is_asked_for_before_it_is_taken(irregular, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1 MB")
    X = irregular(800, 3)
    with pytest.raises(MemoryLimitError, match=r"kernel matrix of 800 rows.*use solver='krylov'"):
        KernelPCA(solver="dense").fit(X)


# --- model files --------------------------------------------------------------------------------


def test_a_function_is_not_saved(irregular, tmp_path):
    found = KernelPCA(kernel=np.dot).fit(irregular(20, 3))
    with pytest.raises(ParameterError, match="is a function, which a model file cannot hold"):
        found.save(tmp_path / "m.lowland")
    assert not (tmp_path / "m.lowland").exists()


def test_scikit_learn_is_told_about_pairs():
    assert KernelPCA(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
    assert not KernelPCA().__sklearn_tags__().input_tags.pairwise


def test_the_matrix_of_all_pairs_need_not_exist():
    """6 000 rows: K would take 144 MB in single precision; fitting without it takes a third."""
    code = """
import resource
import numpy as np
from lowland import KernelPCA
from lowland._engines.kernels import kernel_operators

kernel_operators.KEPT_BYTES = 0
X = np.random.default_rng(0).gamma(1.0, size=(6000, 5))
KernelPCA(2, solver="krylov", random_state=0).fit(X[:1500])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
KernelPCA(2, solver="krylov", random_state=0).fit(X)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 48_000  # kilobytes

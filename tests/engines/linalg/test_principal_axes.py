"""Three solvers for the same axes."""

import numpy as np
import pytest
import scipy.sparse

from lowland._core.errors import ConvergenceWarning
from lowland._core.monitor import Monitor
from lowland._core.threads import limit_blas
from lowland._engines.linalg import principal_axes
from lowland._engines.linalg.moments import moments
from support.cases import each


def rng(seed=0):
    return np.random.default_rng(seed)


def solved(name, X, n_axes, scaled=False, threads=1, seed=0):
    if name == "covariance":
        return principal_axes.by_covariance(moments(X, threads, Monitor()), n_axes, scaled)
    if name == "gram":
        return principal_axes.by_gram(X, n_axes, scaled, threads)
    return principal_axes.by_krylov(X, n_axes, scaled, threads, rng(seed), Monitor())


def naive_axes(X, n_axes, scaled):
    """SVD of the centered (and scaled) copy, signs by the rule."""
    centered = X - X.mean(axis=0)
    if scaled:
        centered = centered / X.std(axis=0, ddof=1)
    _, s, axes = np.linalg.svd(centered, full_matrices=False)
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]
    return axes[:n_axes], s[:n_axes] ** 2 / (len(X) - 1)


SOLVERS = ["covariance", "gram", "krylov"]


@each("solver", SOLVERS)
@each("scaled", [False, True])
@each("shape", [(200, 15), (15, 60), (40, 40)])
def test_every_solver_finds_the_axes_of_the_singular_value_decomposition(
    irregular, solver, scaled, shape
):
    X = irregular(*shape)
    found = solved(solver, X, 5, scaled)
    axes, variances = naive_axes(X, 5, scaled)
    # The iteration stops at a residual of 1e-8 of the largest variance; the gaps are about 0.1.
    assert np.allclose(found.variances, variances, rtol=1e-8)
    assert np.allclose(found.axes, axes, atol=1e-6)
    assert np.allclose(found.mean, X.mean(axis=0), atol=1e-12)
    assert found.n_rows == len(X)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_variances_of_the_columns_are_those_after_scaling(irregular, solver):
    X = irregular(50, 8)
    plain, scaled = solved(solver, X, 3), solved(solver, X, 3, scaled=True)
    assert plain.scale is None
    assert np.allclose(plain.column_variances, X.var(axis=0, ddof=1), rtol=1e-10)
    assert plain.total_variance == pytest.approx(X.var(axis=0, ddof=1).sum(), rel=1e-10)
    assert np.allclose(scaled.scale, X.std(axis=0, ddof=1), rtol=1e-10)
    assert np.allclose(scaled.column_variances, 1.0, rtol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision_data_give_the_same_axes_to_single_precision(irregular, solver):
    X = irregular(300, 12).astype(np.float32)
    axes, variances = naive_axes(X.astype(np.float64), 4, False)
    found = solved(solver, X, 4)
    # 256 products of float32 are added before double takes over: errors of a few 1e-6.
    assert np.allclose(found.variances, variances, rtol=1e-5)
    assert np.allclose(found.axes, axes, atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(30, 9), (9, 30)])
def test_axes_are_orthonormal_even_where_the_data_do_not_vary(irregular, solver, shape):
    X = irregular(*shape)
    X[:, :3] = X[:, 3:6] + 1.0  # rank 6 of 9 columns
    X[-2:] = X[:2]
    found = solved(solver, X, 9)
    assert np.allclose(found.axes @ found.axes.T, np.eye(9), atol=1e-10)
    spread = naive_axes(X, 9, False)[1]
    assert np.allclose(found.variances, spread, atol=1e-10 * spread[0])


@each("solver", SOLVERS)
@each("constant", [0.0, 0.1, 1e6 + 0.1])
@each("n", [700, 1999])
def test_a_constant_column_is_not_blown_up_by_scaling(irregular, solver, constant, n):
    # 0.1 is not a binary fraction: its computed mean may be off by a rounding, which is no spread.
    X = irregular(n, 6)
    X[:, 2] = constant
    found = solved(solver, X, 5, scaled=True)
    rest = np.delete(np.arange(6), 2)
    axes, variances = naive_axes(X[:, rest], 5, True)
    assert found.scale[2] == 1.0
    assert np.allclose(found.variances, variances, rtol=1e-8)
    assert np.allclose(found.axes[:, 2], 0.0, atol=1e-6)
    assert np.allclose(found.axes[:, rest], axes, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_column_that_varies_little_around_a_large_mean_is_scaled_all_the_same(irregular, solver):
    X = irregular(700, 6)
    moved = X.copy()
    moved[:, 2] = 1e6 + 1e-3 * X[:, 2]
    found = solved(solver, moved, 5, scaled=True)
    # 1e6 is stored to 1e-10, a ten-millionth of the column's deviation.
    assert np.allclose(found.variances, naive_axes(X, 5, True)[1], rtol=1e-6)


@pytest.mark.parametrize("solver", ["covariance", "krylov"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("shape", [(200, 15), (30, 80)])
def test_sparse_data_give_the_axes_of_the_dense_copy(irregular, solver, scaled, shape):
    X = irregular(*shape)
    X[X < 1] = 0
    X = X[:, X.var(axis=0) > 0]
    found = solved(solver, scipy.sparse.csr_array(X), 4, scaled)
    axes, variances = naive_axes(X, 4, scaled)
    assert np.allclose(found.variances, variances, rtol=1e-8)
    assert np.allclose(found.axes, axes, atol=1e-6)


@pytest.mark.parametrize("solver", ["covariance", "krylov"])
def test_a_constant_column_of_a_sparse_table_is_not_blown_up_by_scaling(irregular, solver):
    X = np.abs(irregular(700, 5))
    X[:, 2] = 0.1
    sparse = solved(solver, scipy.sparse.csr_array(X), 4, scaled=True)
    rest = [0, 1, 3, 4]
    assert sparse.scale[2] == 1.0
    assert np.allclose(sparse.variances, naive_axes(X[:, rest], 4, True)[1], rtol=1e-8)


@each("solver", ["gram", "krylov"])
@each("scaled", [False, True])
def test_any_memory_layout_gives_the_same_axes(irregular, dense_layout, solver, scaled):
    X = irregular(40, 25)
    expected = solved(solver, X, 3, scaled)
    found = solved(solver, dense_layout(X), 3, scaled)
    assert np.allclose(found.axes, expected.axes, atol=1e-8)
    assert np.allclose(found.variances, expected.variances, rtol=1e-10)


def test_krylov_is_the_same_for_a_seed_and_close_for_another(irregular):
    X = irregular(300, 120)
    first, again, other = (solved("krylov", X, 6, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.axes, again.axes)
    assert np.array_equal(first.variances, again.variances)
    assert not np.array_equal(first.axes, other.axes)
    assert np.allclose(first.axes, other.axes, atol=1e-6)


def test_krylov_does_not_touch_the_global_random_state(irregular):
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the thing that must not move
    solved("krylov", irregular(60, 30), 3)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_krylov_warns_when_the_spectrum_is_too_flat_to_converge():
    # Evenly spaced variances are the hardest: the gaps are a thousandth of their range.
    noise = rng().standard_normal((900, 801))
    noise[:, 0] = 1
    with limit_blas(1):
        turn = np.linalg.qr(noise)[0][:, 1:]  # orthonormal columns of mean 0
    spectrum = np.linspace(2, 1, 800)
    with pytest.warns(ConvergenceWarning, match="may be inexact"):
        found = solved("krylov", turn * np.sqrt(spectrum), 3)
    # Inexact is not useless: variances are from below and near the true ones.
    assert (found.variances <= spectrum[:3] / 899 * (1 + 1e-12)).all()
    assert np.allclose(found.variances, spectrum[:3] / 899, rtol=2e-2)


def test_krylov_takes_all_axes_when_asked_for_all(irregular):
    X = irregular(50, 12)
    axes, variances = naive_axes(X, 12, False)
    found = solved("krylov", X, 12)
    assert np.allclose(found.variances, variances, rtol=1e-10)
    assert np.allclose(found.axes, axes, atol=1e-8)


@pytest.mark.parametrize("shape", [(400, 60), (60, 400)])
def test_krylov_finds_a_rank_below_the_number_of_axes(shape):
    # After three axes there is nothing left for the basis to grow by.
    n, p = shape
    X = rng().standard_normal((n, 3)) @ rng(1).standard_normal((3, p))
    found = solved("krylov", X, 8)
    variances = naive_axes(X, 8, False)[1]
    assert np.allclose(found.variances, variances, atol=1e-10 * variances[0])
    assert np.allclose(found.axes @ found.axes.T, np.eye(8), atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_rows_that_are_all_equal_have_axes_and_no_variance(solver, value):
    found = solved(solver, np.full((12, 5), value), 2)
    assert np.abs(found.variances).max() <= 1e-30
    assert np.allclose(found.axes @ found.axes.T, np.eye(2), atol=1e-10)


@each("solver", SOLVERS)
@each("shape", [(9000, 70), (60, 3000)])
@each("scaled", [False, True])
def test_axes_do_not_depend_on_the_number_of_threads(solver, shape, scaled):
    if solver == "covariance" and shape[1] > 1000:
        shape = (3000, 400)
    if solver == "gram" and shape[0] > 1000:
        shape = (300, 2000)
    factors = rng(1).standard_normal((shape[0], 3)) * [9, 6, 4]  # strong, so that all converge
    X = rng().standard_normal(shape) + factors @ rng(2).standard_normal((3, shape[1])) + 2
    found = []
    for threads in (1, 2):
        with limit_blas(threads):
            found.append(solved(solver, X, 3, scaled, threads))
    assert np.array_equal(found[0].axes, found[1].axes)
    assert np.array_equal(found[0].variances, found[1].variances)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_data_are_not_written_to(irregular, solver):
    X = irregular(40, 10)
    copy = X.copy()
    solved(solver, X, 3, scaled=True)
    assert np.array_equal(X, copy)

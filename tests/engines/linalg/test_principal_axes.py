"""Three solvers for the same axes."""

import numpy as np
import pytest

from lowland._base.context import FitContext
from lowland._base.errors import ConvergenceWarning
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
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
    return principal_axes.by_krylov(X, n_axes, scaled, FitContext(rng(seed), threads, Monitor()))


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
    # 0.1 is not a binary fraction: its computed mean may be off by a rounding error.
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


@pytest.mark.parametrize("shape", [(400, 60), (60, 400)])
def test_krylov_finds_a_rank_below_the_number_of_axes(shape):
    # After three axes there is nothing left for the basis to grow by.
    n, p = shape
    X = rng().standard_normal((n, 3)) @ rng(1).standard_normal((3, p))
    found = solved("krylov", X, 8)
    variances = naive_axes(X, 8, False)[1]
    assert np.allclose(found.variances, variances, atol=1e-10 * variances[0])
    assert np.allclose(found.axes @ found.axes.T, np.eye(8), atol=1e-10)

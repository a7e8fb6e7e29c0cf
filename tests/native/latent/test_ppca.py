"""ppca_sums and ppca_posteriors against their definitions."""

import numpy as np
import pytest

from lowland import _native
from lowland._base.threads import limit_blas
from support.cases import each
from support.kernels import each_isa, each_kind

SIZES = [(1, 1, 1), (3, 2, 2), (33, 9, 1), (70, 13, 5), (65, 17, 16), (9, 300, 3)]


def triangle(matrix):
    return matrix[np.tril_indices(len(matrix))]


@limit_blas(1)
def oracle(x, mean, W, noise):
    """One row at a time, with the covariance of its known columns written out."""
    (n, p), q = x.shape, W.shape[1]
    Z, logs, C = np.empty((n, q)), np.empty(n), np.empty((n, q * (q + 1) // 2))
    squares, products = np.zeros(p), np.zeros((p, q + 1))
    grams, total = np.zeros((p, (q + 1) * (q + 2) // 2)), 0
    for i in range(n):
        o = ~np.isnan(x[i])
        S, r = W[o] @ W[o].T + noise * np.eye(o.sum()), x[i, o].astype(float) - mean[o]
        volume = np.linalg.slogdet(2 * np.pi * S)[1]
        logs[i] = -0.5 * (volume + r @ np.linalg.solve(S, r))
        Z[i] = W[o].T @ np.linalg.solve(S, r)
        covariance = np.eye(q) - W[o].T @ np.linalg.solve(S, W[o])
        C[i] = triangle(covariance)
        u = np.append(Z[i], 1)
        moment = np.outer(u, u)
        moment[:q, :q] += covariance
        squares[o] += r**2
        products[o] += np.outer(r, u)
        grams[o] += triangle(moment)
        total = total + triangle(moment)
    return Z, logs, C, squares, products, grams, total


def found(x, mean, W, noise, rare=None, threads=1, isa="auto"):
    (n, p), q = x.shape, W.shape[1]
    Z, logs, C = np.empty((n, q)), np.empty(n), np.empty((n, q * (q + 1) // 2))
    _native.ppca_posteriors(x, mean, W, noise, Z, logs, C, threads, isa)
    again, squares, products = np.empty(n), np.empty(p), np.empty((p, q + 1))
    T = (q + 1) * (q + 2) // 2
    grams, total = np.empty((p, T)), np.empty(T)
    rare = (2 * np.isnan(x).sum(axis=0) > n) if rare is None else np.full(p, rare)
    _native.ppca_sums(
        x,
        mean,
        W,
        noise,
        rare.astype(np.uint8),
        again,
        squares,
        products,
        grams,
        total,
        threads,
        isa,
    )
    assert again.tobytes() == logs.tobytes()
    return Z, logs, C, squares, products, grams, total


def task(n, p, q, missing=0.3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = (3 + rng.gamma(2.0, size=(n, p))).astype(dtype)
    x[rng.random((n, p)) < missing] = np.nan
    x[::5] = 4.0  # complete rows
    x[:, 0] = np.linspace(1, 2, n)  # no empty row
    return x, rng.normal(5, 0.2, p), rng.standard_normal((p, q)) * np.linspace(2, 0.1, q), 0.7


def assert_close(got, expected):
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * max(1.0, np.abs(b).max()))


@each("missing", [0, 0.1, 0.6, 0.95])
@each_kind
def test_posteriors_and_sums_are_as_defined(missing, dtype, isa):
    for sizes in SIZES:
        given = task(*sizes, missing, dtype)
        assert_close(found(*given, isa=isa), oracle(*given))


@each_isa
def test_both_ways_to_sum_a_column_agree(isa):
    given = task(200, 20, 3)
    assert_close(found(*given, rare=0, isa=isa), found(*given, rare=1, isa=isa))


@each_isa
def test_a_heavy_missing_column_cancels_nothing(isa):
    x, mean, W, _ = task(30, 12, 3)
    W[4] *= 1e7  # W^T W minus this one leaves no digit of the others
    x[:, 4] = np.nan
    assert_close(found(x, mean, W, 1e-3, isa=isa)[:2], oracle(x, mean, W, 1e-3)[:2])


@each_isa
def test_the_number_of_threads_and_other_rows_change_no_byte(isa, same_for_threads, same_alone):
    x, *model = task(3000, 300, 4)  # several chunks of rows
    same_for_threads(lambda threads: found(x, *model, threads=threads, isa=isa), (2, 5))
    same_alone(lambda rows: found(x[rows], *model, isa=isa)[:3], (0, 7, 2999))


def test_extreme_models_give_no_number_but_no_error():
    x, mean, W, _ = task(40, 6, 2)
    for noise in (0.0, 5e-324, -1.0, np.inf, np.nan):
        found(x, mean, W, noise)
    found(x, mean, W * 1e300, 1.0)
    assert np.isfinite(found(x, mean, 0 * W, 1.0)[1]).all()


def test_wrong_sizes_are_refused():
    x, mean, W, noise = task(10, 4, 2)
    Z, logs, C = np.empty((10, 2)), np.empty(10), np.empty((10, 0))
    _native.ppca_posteriors(x, mean, W, noise, Z, logs, C, 1)
    for wrong in (
        (x, mean[1:], W, noise, Z, logs, C, 1),
        (x, mean, W[1:], noise, Z, logs, C, 1),
        (x, mean, W[:, :0], noise, Z, logs, C, 1),
        (x, mean, W, noise, Z[1:], logs, C, 1),
        (x, mean, W, noise, Z[:, :1].copy(), logs, C, 1),
        (x, mean, W, noise, Z, logs[1:], C, 1),
        (x, mean, W, noise, Z, logs, np.empty((10, 2)), 1),
        (x, mean, W, noise, Z, logs, np.empty((9, 3)), 1),
        (x, mean, W, noise, Z, logs, C, 0),
    ):
        with pytest.raises(ValueError, match=r"ppca|threads"):
            _native.ppca_posteriors(*wrong)
    outs = [logs, np.empty(4), np.empty((4, 3)), np.empty((4, 6)), np.empty(6)]
    rare = np.zeros(4, np.uint8)
    _native.ppca_sums(x, mean, W, noise, rare, *outs, 1)
    for place, wrong in enumerate(
        (np.empty(9), np.empty(5), np.empty((4, 2)), np.empty((4, 5)), np.empty(5))
    ):
        with pytest.raises(ValueError, match="ppca_sums"):
            _native.ppca_sums(x, mean, W, noise, rare, *outs[:place], wrong, *outs[place + 1 :], 1)
    with pytest.raises(ValueError, match="ppca_sums"):
        _native.ppca_sums(x, mean, W, noise, rare[1:], *outs, 1)

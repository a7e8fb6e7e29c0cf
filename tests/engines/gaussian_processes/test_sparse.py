"""The bound in blocks of rows against the bound of the whole table at once."""

import numpy as np

from lowland._base.threads import limit_blas
from lowland._engines.gaussian_processes.covariance import KINDS, Covariance
from lowland._engines.gaussian_processes.sparse import (
    BLOCK,
    SparseBound,
    SparseProcess,
    Statistics,
    collapsed_bound,
    in_blocks,
    inducing_slopes,
    inverse_factor,
    posterior_from,
    sparse_bound,
    sparse_posterior,
    sparse_value,
    statistics_sums,
)
from lowland._engines.linalg.products import times
from support.cases import each

RNG = np.random.default_rng(3)
N = 2 * BLOCK + 77
X = RNG.normal(size=(N, 2))
INPUTS = np.array([(a, b) for a in (-1.6, -0.3, 1.1) for b in (-1.2, 0.2, 1.7)]) + RNG.normal(
    scale=0.1, size=(9, 2)
)
Y = np.sin(X @ RNG.normal(size=(2, 5))) + RNG.normal(scale=0.3, size=(N, 5))


def statistics_of(process):
    covariance, theta, _, X, Z = process
    S1 = covariance.matrix(theta, X, Z)
    with limit_blas(1):
        return Statistics(float(covariance.diagonal(theta, X).sum()), S1, S1.T @ S1)


def whole_bound(process, Y):
    """The bound and its slopes from the statistics of all rows at once."""
    covariance, theta, log_noise, X, Z = process
    unfactor, seen = inverse_factor(covariance, theta, Z), statistics_of(process)
    F = collapsed_bound(unfactor, seen, Y, log_noise, Y.shape[1])
    by_S1 = F.S1 + times(seen.S1, np.zeros(len(Z)), 2 * F.S2, 1)
    cross = covariance.slopes(theta, X, Z, by_S1)
    own = inducing_slopes(covariance, theta, Z, F.Kz)
    prior = covariance.diagonal_slopes(theta, X, np.full(len(X), F.S0))
    by_theta = cross.theta + own.theta + prior.theta
    return SparseBound(F.value, by_theta, F.noise, cross.X + prior.X, cross.Z + own.X)


def whole_posterior(process, Y):
    covariance, theta, log_noise, _, Z = process
    unfactor = inverse_factor(covariance, theta, Z)
    sums = statistics_sums(unfactor, statistics_of(process), Y, Y.shape[1])
    return posterior_from(covariance, theta, Z, sums, log_noise)


@each("kind", KINDS)
@each("rows", [1, 7, BLOCK, BLOCK + 1, N])
def test_bound_slopes_and_posterior_equal_those_of_the_whole_table(kind, rows):
    covariance, Z = Covariance(kind, 2), INPUTS[: 3 if kind == "linear" else None]  # rank 3
    theta = covariance.vector(0.7, [0.8, 1.3], [0.4, 0.2], 0.3)
    process = SparseProcess(covariance, theta, -1.5, X[:rows], Z)
    whole = whole_bound(process, Y[:rows])
    found = sparse_bound(process, Y[:rows], threads=2)
    for wanted, given in zip(whole, found, strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
    assert sparse_value(process, Y[:rows]) == found.value
    wanted = whole_posterior(process, Y[:rows])
    given = sparse_posterior(process, Y[:rows], 2)
    np.testing.assert_allclose(given.mean(X[:50], 1), wanted.mean(X[:50], 1), atol=1e-7)
    np.testing.assert_allclose(given.variance(X[:50], 1), wanted.variance(X[:50], 1), atol=1e-7)
    assert given.noise == wanted.noise


@each("dtype", [np.float32, np.float64])
def test_bytes_do_not_depend_on_the_number_of_threads(dtype):
    covariance = Covariance("rbf", 2)
    process = SparseProcess(covariance, covariance.vector(), -1.0, X, INPUTS)
    one, two, three = (
        sparse_bound(process, Y.astype(dtype), threads=threads) for threads in (1, 2, 3)
    )
    for parts in zip(one, two, three, strict=True):
        assert len({np.asarray(part).tobytes() for part in parts}) == 1


def test_blocks_come_in_order_from_any_number_of_threads():
    for n, threads in [(1, 4), (5 * BLOCK, 2), (70 * BLOCK + 3, 2), (70 * BLOCK + 3, 3)]:
        found = list(in_blocks(lambda rows: (rows.start, rows.stop), n, 50, threads))
        assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
        assert found[-1][1] == n
    assert len(list(in_blocks(lambda rows: rows, 3000, 2**16, 1))) == 375  # 8 rows each


def test_little_noise_many_rows_and_equal_inducing_points_leave_the_bound_its_digits():
    """A second copy of each inducing point adds nothing; B would lose all digits otherwise."""
    covariance = Covariance("rbf", 2)
    theta, log_noise = covariance.vector(1.0, 3.0, 1.0, 1.0), float(np.log(1e-6))
    once = SparseProcess(covariance, theta, log_noise, X, INPUTS)
    twice = once._replace(Z=np.vstack([INPUTS, INPUTS + 1e-9]))
    values = [sparse_value(process, 100 * Y) for process in (twice, once)]
    assert np.isclose(*values, rtol=0.2)  # two copies share the jitter
    bound = sparse_bound(twice, 100 * Y)
    assert all(np.isfinite(part).all() for part in bound)

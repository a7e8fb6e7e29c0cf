"""The bound in blocks of rows against the bound of the whole table at once."""

import numpy as np

from lowland._engines.gaussian_processes.covariance import KINDS, Covariance
from lowland._engines.gaussian_processes.sparse import sparse_bound, sparse_posterior
from lowland._engines.gaussian_processes.streamed import (
    BLOCK,
    in_blocks,
    streamed_bound,
    streamed_posterior,
    streamed_value,
)
from support.cases import each

RNG = np.random.default_rng(3)
N = 2 * BLOCK + 77
X = RNG.normal(size=(N, 2))
INPUTS = np.array([(a, b) for a in (-1.6, -0.3, 1.1) for b in (-1.2, 0.2, 1.7)]) + RNG.normal(
    scale=0.1, size=(9, 2)
)
Y = np.sin(X @ RNG.normal(size=(2, 5))) + RNG.normal(scale=0.3, size=(N, 5))


@each("kind", KINDS)
@each("rows", [1, 7, BLOCK, BLOCK + 1, N])
def test_bound_slopes_and_posterior_equal_those_of_the_whole_table(kind, rows):
    covariance, Z = Covariance(kind, 2), INPUTS[: 3 if kind == "linear" else None]  # rank 3
    theta = covariance.vector(0.7, [0.8, 1.3], [0.4, 0.2], 0.3)
    whole = sparse_bound(covariance, theta, -1.5, X[:rows], Z, Y[:rows])
    found = streamed_bound(covariance, theta, -1.5, X[:rows], Z, Y[:rows], 2)
    for wanted, given in zip(whole, found, strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
    assert streamed_value(covariance, theta, -1.5, X[:rows], Z, Y[:rows], 1) == found.value
    wanted = sparse_posterior(covariance, theta, -1.5, X[:rows], Z, Y[:rows])
    given = streamed_posterior(covariance, theta, -1.5, X[:rows], Z, Y[:rows], 2)
    np.testing.assert_allclose(given.mean(X[:50], 1), wanted.mean(X[:50], 1), atol=1e-7)
    np.testing.assert_allclose(given.variance(X[:50], 1), wanted.variance(X[:50], 1), atol=1e-7)
    assert given.noise == wanted.noise


@each("dtype", [np.float32, np.float64])
def test_bytes_do_not_depend_on_the_number_of_threads(dtype):
    covariance = Covariance("rbf", 2)
    theta, rows = covariance.vector(), Y.astype(dtype)
    one, two, three = (
        streamed_bound(covariance, theta, -1.0, X, INPUTS, rows, threads) for threads in (1, 2, 3)
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
    copies = np.vstack([INPUTS, INPUTS + 1e-9])
    twice = streamed_value(covariance, theta, log_noise, X, copies, 100 * Y, 1)
    once = streamed_value(covariance, theta, log_noise, X, INPUTS, 100 * Y, 1)
    assert np.isclose(twice, once, rtol=0.2)  # two copies share the jitter
    bound = streamed_bound(covariance, theta, log_noise, X, copies, 100 * Y, 1)
    assert all(np.isfinite(part).all() for part in bound)

"""Training on growing parts: what is returned, that it is a good fit, and that it repeats."""

import itertools

import numpy as np
import pytest

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.gaussian_processes import stochastic
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_bound, sparse_posterior
from lowland._engines.gaussian_processes.stochastic import (
    part_sizes,
    part_steps,
    train,
    training_cost,
)
from lowland._engines.network.quasi_newton import minimize
from support.cases import each

COVARIANCE = Covariance("rbf", 2)
N, M = 1300, 20


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """A table of two parts, 325 and 1300 rows, and of two blocks."""
    monkeypatch.setattr(stochastic, "FIRST_ROWS", 100)


@pytest.fixture(scope="module")
def planted():
    """Rows that are smooth functions of two normal coordinates, and noise."""
    rng = np.random.default_rng(11)
    U = rng.normal(size=(N, 2))
    waves = np.cos(U @ rng.normal(scale=0.4, size=(2, 60)) + rng.uniform(0, 7, 60))
    Y = waves @ rng.normal(size=(60, 8))
    Y = (Y - Y.mean(axis=0)) / Y.std() + rng.normal(scale=0.1, size=Y.shape)
    return U, Y - Y.mean(axis=0)


def start_of(Y, m=M):
    left, values, _ = np.linalg.svd(Y, full_matrices=False)
    X = left[:, :2] * np.sqrt(len(Y))
    share = float((values[:2] ** 2).sum() / (values**2).sum())
    theta = COVARIANCE.vector(share, 1.0, 1.0, 0.1)
    Z = X[:: len(X) // m][:m].copy()
    return SparseProcess(COVARIANCE, theta, float(np.log(1 - share)), X, Z)


def fit(Y, start=None, seed=0, threads=1, max_iter=60, monitor=None, **options):
    run = FitContext(np.random.default_rng(seed), threads, monitor or Monitor())
    return train(start or start_of(Y), Y, run, max_iter=max_iter, **options)


def loss_of(process, Y):
    """As the model is written: minus the bound, minus the logarithm of the prior."""
    places, bound = process.X, sparse_bound(process, Y).value
    return (-bound + np.sum(places**2 + np.log(2 * np.pi)) / 2) / Y.size


def left_over(X, U):
    """The share of U that no affine function of X explains."""
    A = np.column_stack([X, np.ones(len(X))])
    return np.sum((U - A @ np.linalg.lstsq(A, U, rcond=None)[0]) ** 2) / np.sum(
        (U - U.mean(0)) ** 2
    )


def test_result_is_consistent_and_recovers_planted_places(planted):
    U, Y = planted
    start = start_of(Y)
    found = fit(Y, start, max_iter=200)
    state = found.process
    np.testing.assert_allclose(found.losses[-1], loss_of(state, Y), rtol=1e-6)
    np.testing.assert_allclose(found.bound, sparse_bound(state, Y).value, rtol=1e-6)
    assert len(found.losses) == found.n_iter + 1
    assert found.losses[-1] < loss_of(start, Y) - 0.5
    wanted = sparse_posterior(state, Y)
    np.testing.assert_allclose(found.posterior.mean(U[:99], 1), wanted.mean(U[:99], 1), atol=1e-3)
    assert left_over(state.X, U) < 0.3 * left_over(start.X, U)
    assert np.mean((found.posterior.mean(state.X, 1) - Y) ** 2) < 1.5 * 0.1**2


def test_parts_fit_as_well_as_as_many_steps_on_all_rows(planted):
    """The reference is L-BFGS of the bound of the whole table, from the same start."""
    _, Y = planted
    _, theta, log_noise, X, Z = start_of(Y)
    n_process, n_inputs = len(theta) + 1, Z.size

    def split(v):
        places = v[n_process:]
        parts = places[n_inputs:].reshape(X.shape), places[:n_inputs].reshape(Z.shape)
        return SparseProcess(COVARIANCE, v[: n_process - 1], float(v[n_process - 1]), *parts)

    def function(v):
        state = split(v)
        slopes = sparse_bound(state, Y)
        gradient = [
            -slopes.theta,
            [-slopes.noise],
            -slopes.Z.ravel(),
            (state.X - slopes.X).ravel(),
        ]
        return loss_of(state, Y), np.concatenate(gradient) / Y.size

    first = np.concatenate([theta, [log_noise], Z.ravel(), X.ravel()])
    steps = part_steps(part_sizes(N, len(Z)), len(Z), 60)
    reference = minimize(function, first, max_iter=steps[-1], tol=0.0, monitor=Monitor())
    assert fit(Y).losses[-1] < reference.losses[-1]


def test_bytes_depend_on_the_seed_only(planted):
    _, Y = planted
    one, again, other = (
        fit(Y, max_iter=15),
        fit(Y, max_iter=15, threads=2),
        fit(Y, max_iter=15, seed=1),
    )
    for a, b in zip((*one.process, one.losses), (*again.process, again.losses), strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.posterior.weights, again.posterior.weights)
    assert not np.array_equal(one.process.X, other.process.X)


@each("max_iter", [0, 1, 3])
def test_a_good_start_is_never_left_for_a_worse_place(planted, max_iter):
    _, Y = planted
    good = fit(Y, max_iter=40).process
    found = fit(Y, good, max_iter=max_iter)
    assert found.losses[-1] <= loss_of(good, Y) + 1e-9
    if max_iter == 0:
        np.testing.assert_array_equal(found.process.X, good.X)
        assert found.n_iter == 0
        assert len(found.losses) == 1


def test_a_stop_places_all_rows_by_the_process_that_there_is(planted):
    _, Y = planted
    seen = []

    def callback(step, X, loss):
        seen.append((step, X.shape, loss))
        return step == 4

    found = fit(Y, monitor=Monitor(callback=callback))
    assert [step for step, *_ in seen] == [1, 2, 3, 4]
    assert found.n_iter == 4
    assert {shape for _, shape, _ in seen} == {(N, 2)}
    assert np.isfinite(found.process.X).all()
    assert not found.converged
    assert loss_of(found.process, Y) <= loss_of(start_of(Y), Y)


def test_steps_of_all_parts_are_counted_on(planted):
    _, Y = planted
    steps = []
    found = fit(
        Y, max_iter=12, tol=0.0, monitor=Monitor(callback=lambda i, X, loss: steps.append(i))
    )
    assert steps == list(range(1, found.n_iter + 1))
    assert found.n_iter == sum(part_steps(part_sizes(N, M), M, 12))


def test_parameters_stay_within_bounds(planted):
    _, Y = planted
    start = start_of(Y)
    theta, log_noise = start.theta, start.log_noise
    least = np.concatenate([theta - 0.1, [log_noise - 0.2]])
    most = np.concatenate([theta + 0.1, [log_noise + 0.2]])
    found = fit(Y, start, max_iter=20, bounds=(least, most))
    process = np.append(found.process.theta, found.process.log_noise)
    assert (process >= least - 1e-12).all()
    assert (process <= most + 1e-12).all()
    assert np.isclose(found.process.log_noise, log_noise - 0.2)  # it would like to be smaller


def test_parts_grow_to_the_table_and_costs_do_not_jump(monkeypatch):
    monkeypatch.setattr(stochastic, "FIRST_ROWS", 500)
    for m in (1, 50, 500):
        costs = []
        for n in np.unique(np.geomspace(2, 3e6, 400).astype(int)):
            sizes = part_sizes(int(n), m)
            steps = part_steps(sizes, m, 400)
            assert sizes[-1] == n
            assert sizes == sorted(sizes)
            assert len(sizes) == 1 or sizes[0] >= 10 * m
            assert len(steps) == len(sizes)
            assert steps == sorted(steps, reverse=True)
            assert 10 <= steps[-1] <= steps[0] == 400
            costs.append((n, training_cost(int(n), 50, 2, m, 400).seconds))
        for (n, before), (more, after) in itertools.pairwise(costs):
            assert 0.6 < after / before < 1.4 * more / n
    assert part_steps([500, 2000], 50, 0) == [0, 0]
    assert part_steps([500, 2000], 50, 2**63)[0] == 2**63

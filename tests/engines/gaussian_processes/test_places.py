"""Places of rows against SciPy's minimizer, one row at a time, of the formula as it is written."""

import numpy as np
from scipy.optimize import minimize

from lowland._engines.gaussian_processes.covariance import KINDS, Covariance
from lowland._engines.gaussian_processes.places import likely_starts, place_rows
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_posterior
from support.cases import each

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 2))
Z = X[:12]
F = np.hstack([X, np.sin(2 * X), X[:, :1] * X[:, 1:], np.cos(X)]) @ RNG.normal(size=(7, 20))
Y = F / F.std() + RNG.normal(scale=0.2, size=F.shape)
CRITERIA = ["bound", "likelihood"]


def process(kind="rbf", D=20):
    covariance = Covariance(kind, 2)
    theta = covariance.vector(0.8, [0.9, 1.2], [0.3, 0.2], 0.2)
    return sparse_posterior(SparseProcess(covariance, theta, np.log(0.05), X, Z), Y[:, :D])


def energy(posterior, x, y, criterion):
    D, noise = len(y), posterior.noise
    error = np.sum((y - posterior.mean(x[None], 1)[0]) ** 2)
    variance = posterior.variance(x[None], 1)[0]
    if criterion == "bound":
        return (error + D * variance) / (2 * noise) + x @ x / 2
    total = noise + variance
    return D / 2 * np.log(total) + error / (2 * total) + x @ x / 2


@each("kind", KINDS)
@each("D", [3, 20])  # fewer and more columns than inputs of the process
@each("criterion", CRITERIA)
def test_each_row_is_where_its_energy_is_least(kind, D, criterion):
    posterior = process(kind, D)
    rows, starts = Y[:4, :D], X[:4] + 0.1
    placed = place_rows(
        posterior, rows, starts, n_steps=60, threads=1, criterion=criterion, tol=1e-14
    )
    for y, start, x, value in zip(rows, starts, placed.X, placed.energy, strict=True):
        np.testing.assert_allclose(value, energy(posterior, x, y, criterion), rtol=1e-7)
        assert value <= energy(posterior, start, y, criterion)
        # From where it ended, a minimizer that knows the formula only finds nothing lower.
        least = minimize(lambda p, y=y: energy(posterior, p, y, criterion), x, method="Nelder-Mead")
        assert least.fun >= value - 1e-6 * max(1, abs(value))
        np.testing.assert_allclose(least.x, x, atol=2e-3)


@each("criterion", CRITERIA)
@each("D", [3, 20])
def test_a_row_gets_the_same_bytes_alone_in_company_and_by_any_threads(criterion, D):
    posterior = process(D=D)
    rows, starts = np.vstack([Y[:, :D]] * 20), np.vstack([X] * 20)
    options = {"n_steps": 7, "criterion": criterion}
    together = place_rows(posterior, rows, starts, threads=1, **options)
    parallel = place_rows(posterior, rows, starts, threads=2, **options)
    np.testing.assert_array_equal(together.X, parallel.X)
    for i in (0, 5, 2000):
        alone = place_rows(posterior, rows[[i]], starts[[i]], threads=1, **options)
        np.testing.assert_array_equal(alone.X[0], together.X[i])
        assert alone.energy[0] == together.energy[i]


def test_energy_never_rises_and_far_rows_do_not_disturb_others():
    posterior = process()
    rows, starts = Y[:40].copy(), RNG.normal(scale=4, size=(40, 2))
    rows[3], rows[4], starts[7] = 1e6, 1e200, 1e8
    before = place_rows(posterior, rows, starts, n_steps=0, threads=1).energy
    for steps in (1, 2, 5, 30):
        placed = place_rows(posterior, rows, starts, n_steps=steps, threads=1)
        assert ((placed.energy <= before) | ~np.isfinite(before)).all()
        assert np.isfinite(placed.X).all()
        before = placed.energy
    alone = place_rows(posterior, rows[20:30], starts[20:30], n_steps=30, threads=1)
    np.testing.assert_array_equal(alone.X, placed.X[20:30])


def test_a_row_starts_where_the_mean_is_nearest_to_it():
    posterior = process()
    means = posterior.mean(X, 1)
    nearest = ((Y[:30, None] - means[None]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(likely_starts(posterior, Y[:30], X, 1), X[nearest])

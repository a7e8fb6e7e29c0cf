"""Probabilistic PCA against PCA, the Gaussians that it stands for, and EM row by row."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal

from lowland._base.errors import MemoryLimitError
from lowland._base.threads import limit_blas
from lowland.datasets import digits
from lowland.methods.latent.ppca import PPCA, Gaussian, Table, e_step, m_step
from lowland.methods.linear.pca import PCA
from support.cases import each
from support.changes import FIXED, Change
from support.oracles.basics import HeldOut
from support.witness import Witness


def expected_places(task: HeldOut) -> np.ndarray:
    """E[U diag(w) z | x_o] along the axes, from the covariance of the known columns.

    Without gaps the model itself is that of the eigenvalues of the covariance with divisor n.
    """
    model = task.model
    U, mean = model.components_.T, model.mean_
    variances, noise = model.explained_variance_, model.noise_variance_
    if not np.isnan(task.X).any():
        q = U.shape[1]
        values, axes = np.linalg.eigh(np.cov(task.X.T, bias=True))
        values, axes = values[::-1], axes[:, ::-1]
        mean, variances = task.X.mean(axis=0), values[:q]
        noise = values[q:].mean() if q < len(values) else 0.0
        U = axes[:, :q] * np.sign(np.sum(axes[:, :q] * U, axis=0))
    places = []
    for x in task.new:
        o = ~np.isnan(x)
        signal = (U * (variances - noise)) @ U[o].T  # covariance of signal and known columns
        S = signal[o] + noise * np.eye(o.sum())
        places.append(U.T @ signal @ np.linalg.solve(S, x[o] - mean[o]))
    return np.array(places)


def expected_rows(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    rows = [task.model.mean_ + task.model.components_.T @ z for z in Z]
    return np.array(rows)


WITNESS = Witness(
    places=expected_places,
    rows_back=expected_rows,
    cases=[
        ({}, "rows"),
        ({"n_components": 1}, "sheet"),
        ({"n_components": 5}, "rows"),
        ({}, "gaps"),
        ({"n_components": 4, "max_iter": 3, "tol": 0.0}, "gaps"),
    ],
    changes={
        "n_components": Change(3, data="gaps"),
        "random_state": FIXED,
        "max_iter": Change(2, data="gaps"),
        "tol": Change(0.03, {"max_iter": 200}, data="gaps", shows="n_iter_"),
    },
)


def irregular(n, p, seed=0, q=3):
    """Skewed rows near a plane, with columns of different size."""
    rng = np.random.default_rng(seed)
    plane = rng.gamma(2.0, size=(n, q)) @ rng.standard_normal((q, p))
    return 5 + plane * np.linspace(0.5, 2, p) + 0.5 * rng.standard_normal((n, p))


def with_gaps(X, share, seed=0):
    """Values missing at random; each row and column keeps one."""
    rng = np.random.default_rng(seed)
    n, p = X.shape
    gone = rng.random(X.shape) < share
    gone[np.arange(n), rng.integers(p, size=n)] = False
    gone[rng.integers(n, size=p), np.arange(p)] = False
    return np.where(gone, np.nan, X)


def covariance(model):
    U, noise = model.components_, model.noise_variance_
    return (U.T * (model.explained_variance_ - noise)) @ U + noise * np.eye(U.shape[1])


def log_densities(X, mean, C):
    """Of the known part of each row."""
    found = []
    for x in X:
        o = ~np.isnan(x)
        r, S = x[o] - mean[o], C[np.ix_(o, o)]
        found.append(-0.5 * (np.linalg.slogdet(2 * np.pi * S)[1] + r @ np.linalg.solve(S, r)))
    return np.array(found)


# --- without gaps -----------------------------------------------------------------------------


@each("n", [60, 6])
@each("kind", [np.asarray, sparse.csr_matrix])
def test_without_gaps_it_is_pca_with_a_likelihood(n, kind):
    X = irregular(n, 7) * (irregular(n, 7, 1) > 4)
    q, pca = 3, PCA().fit(X)
    model = PPCA(q).fit(kind(X))
    values = pca.explained_variance_ * (n - 1) / n
    np.testing.assert_allclose(model.components_, pca.components_[:q], atol=1e-10)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, values[:q], rtol=1e-10)
    assert model.noise_variance_ == pytest.approx(values[q:].sum() / (7 - q), rel=1e-9)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, pca.explained_variance_ratio_[:q], rtol=1e-9
    )
    logs = multivariate_normal(X.mean(axis=0), covariance(model)).logpdf(X)
    np.testing.assert_allclose(model.score_samples(kind(X)), logs, rtol=1e-9, atol=1e-9)
    assert model.log_likelihood_ == pytest.approx(logs.sum(), rel=1e-10)
    assert model.score(X) == pytest.approx(logs.mean(), rel=1e-9)
    shrinkage = 1 - model.noise_variance_ / values[:q]
    places = pca.transform(X)[:, :q] * shrinkage
    np.testing.assert_allclose(model.transform(kind(X)), places, atol=1e-9 * np.abs(places).max())
    np.testing.assert_allclose(model.embedding_, places, atol=1e-9 * np.abs(places).max())


# --- with gaps --------------------------------------------------------------------------------


def naive_em(X, model, steps):
    """Tipping and Bishop's EM with missing values, one row and one column at a time."""
    mean, W, noise = model
    (n, p), q = X.shape, W.shape[1]
    for _ in range(steps):
        m, C = np.empty((n, q)), np.empty((n, q, q))
        for i in range(n):
            o = ~np.isnan(X[i])
            M = W[o].T @ W[o] + noise * np.eye(q)
            m[i], C[i] = np.linalg.solve(M, W[o].T @ (X[i, o] - mean[o])), noise * np.linalg.inv(M)
        mean, W, squares = mean.copy(), W.copy(), 0.0
        for j in range(p):
            rows = np.flatnonzero(~np.isnan(X[:, j]))
            u = np.column_stack([m[rows], np.ones(len(rows))])
            A = u.T @ u
            A[:q, :q] += C[rows].sum(axis=0)
            v = np.linalg.solve(A, u.T @ X[rows, j])
            W[j], mean[j] = v[:q], v[q]
            squares += np.sum((X[rows, j] - u @ v) ** 2) + v[:q] @ C[rows].sum(axis=0) @ v[:q]
        noise = squares / np.sum(~np.isnan(X))
    return Gaussian(mean, W, noise)


def likelihood(X, model):
    C = model.W @ model.W.T + model.noise * np.eye(len(model.mean))
    return log_densities(X, model.mean, C).sum()


@each("share", [0.2, 0.6])
def test_the_steps_are_those_of_em_with_the_places_standardized(share):
    """A step with expanded parameters is at least as likely as that of plain EM."""
    X = with_gaps(irregular(40, 6), share)
    rng = np.random.default_rng(1)
    start = Gaussian(np.nanmean(X, axis=0), rng.standard_normal((6, 2)), 1.3)
    with limit_blas(1):
        table = Table.of(X)
        sums = e_step(table, start, 1)
        found = m_step(table, start, sums)
        plain = naive_em(X, start, 1)
        assert sums.log_likelihood == pytest.approx(likelihood(X, start), rel=1e-10)
        assert found.noise == pytest.approx(plain.noise, rel=1e-10)
        # the moments of the places move into mean and W: the same plane
        joint = np.hstack([plain.W, found.W, (found.mean - plain.mean)[:, None]])
        assert np.linalg.matrix_rank(joint, tol=1e-8) == 2
        assert likelihood(X, found) >= likelihood(X, plain) > likelihood(X, start)


@each("share", [0.1, 0.5])
def test_em_row_by_row_reaches_the_same_likelihood(share):
    X = with_gaps(irregular(40, 6), share, seed=2)
    model = PPCA(2, tol=1e-10).fit(X)
    rows = [multivariate_normal(model.mean_[o], covariance(model)[np.ix_(o, o)]).logpdf(x[o])
            for x, o in zip(X, ~np.isnan(X), strict=True)]  # fmt: skip
    np.testing.assert_allclose(model.score_samples(X), rows, rtol=1e-9, atol=1e-9)
    assert model.log_likelihood_ == pytest.approx(sum(rows), rel=1e-9)
    mean = np.nanmean(X, axis=0)
    filled = PCA(2).fit(np.where(np.isnan(X), mean, X))
    start = Gaussian(mean, filled.components_.T * np.sqrt(filled.explained_variance_), 1.0)
    with limit_blas(1):
        slow = naive_em(X, start, 300)
        reached = likelihood(X, slow)
    assert model.log_likelihood_ > reached - 1e-6 * model.n_known_
    assert model.log_likelihood_ < reached + 1e-3 * model.n_known_
    np.testing.assert_allclose(
        covariance(model), slow.W @ slow.W.T + slow.noise * np.eye(6), atol=0.1
    )


@each("share", [0.05, 0.3, 0.8])
def test_the_likelihood_never_falls_and_is_level_at_the_end(share):
    X = with_gaps(irregular(50, 8, seed=3), share, seed=3)
    model = PPCA(2, tol=0.0, max_iter=300).fit(X)
    assert np.diff(model.loss_history_).max() <= 0
    assert len(model.loss_history_) == model.n_iter_ + 1
    W = model.components_.T * np.sqrt(model.explained_variance_ - model.noise_variance_)
    flat = np.concatenate([W.ravel(), model.mean_, [np.log(model.noise_variance_)]])

    def height(values):
        U = values[:16].reshape(8, 2)
        C = U @ U.T + np.exp(values[-1]) * np.eye(8)
        return log_densities(X, values[16:24], C).sum() / model.n_known_

    step = 1e-4
    with limit_blas(1):
        slopes = [
            (height(flat + step * e) - height(flat - step * e)) / (2 * step)
            for e in np.eye(len(flat))
        ]
    # the error of a central difference is step^2 times a third derivative, which is of order 1
    assert np.abs(slopes).max() < 1e-6


def test_a_row_is_imputed_by_its_conditional_expectation():
    X = with_gaps(irregular(50, 6, seed=4), 0.3, seed=4)
    model = PPCA(2).fit(X)
    filled, deviations = model.impute(X, return_std=True)
    C, mean = covariance(model), model.mean_
    np.testing.assert_array_equal(filled, np.where(np.isnan(X), filled, X))
    np.testing.assert_array_equal(filled, model.impute(X))
    for x, row, deviation in zip(X, filled, deviations, strict=True):
        o, g = ~np.isnan(x), np.isnan(x)
        slope = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, g)]).T
        np.testing.assert_allclose(row[g], mean[g] + slope @ (x[o] - mean[o]), rtol=1e-9)
        rest = C[np.ix_(g, g)] - slope @ C[np.ix_(o, g)]
        np.testing.assert_allclose(deviation[g], np.sqrt(np.diag(rest)), rtol=1e-8)
        assert (deviation[o] == 0).all()


def test_digits_are_imputed_as_well_as_by_pyppca():
    """../PEERS: pyppca reaches .1859 where column means give .2778."""
    X = digits().X / 16
    gaps = np.random.default_rng(0).random(X.shape) < 0.1
    holed = np.where(gaps, np.nan, X)
    model = PPCA(10).fit(holed)
    assert np.sqrt(np.mean((model.impute(holed) - X)[gaps] ** 2)) < 0.186
    assert model.n_iter_ < 40  # plain EM takes 71 steps to 1e-8


# --- tables at the edge -----------------------------------------------------------------------


@each("q", [1, 3, 5])
def test_rare_columns_constant_columns_and_rows_of_one_value(q):
    X = with_gaps(irregular(30, 5), 0.3)
    X = np.hstack([X, np.full((30, 1), 7.0)])
    X[0, 2], X[1:, 2] = 3.0, np.nan  # known once
    X[3, 1:] = np.nan
    X[3, 0], X[::2, 5] = 4.0, np.nan
    model = PPCA(q).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.log_likelihood_)
    assert np.diff(model.loss_history_).max() <= 0
    filled = model.impute(X)
    np.testing.assert_allclose(filled[:, 5], 7.0, atol=1e-3 * model.size_)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(q), atol=1e-10)


@each("holes", [False, True])
@each(("n", "p", "q"), [(2, 1, 1), (2, 2, 2), (3, 8, 3), (9, 4, 4), (1, 3, 1), (40, 6, 6)])
def test_all_axes_and_few_rows(n, p, q, holes):
    X = irregular(max(n, 2), p)
    if holes:
        X = with_gaps(X, 0.3)
        X[0, -1] = np.nan if p > 1 and n > 2 else X[0, -1]
    model = PPCA(q).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert model.noise_variance_ > 0
    known = ~np.isnan(X)
    back = model.inverse_transform(model.transform(X))
    if q == p or q >= len(X):  # nothing is left out: known values come back
        np.testing.assert_allclose(back[known], X[known], atol=1e-2 * model.size_)


@each("holes", [False, True])
def test_equal_rows_and_rows_on_a_line(holes):
    same = np.tile([[1.0, 2.0, 3.0, 4.0]], (8, 1))
    line = np.outer(np.random.default_rng(0).standard_normal(30), [1.0, 2.0, -1.0, 0.5]) + 3
    for X in (same, line):
        given = with_gaps(X, 0.2) if holes else X
        model = PPCA(2).fit(given)
        np.testing.assert_allclose(model.impute(given), X, atol=1e-3 * model.size_)
        np.testing.assert_allclose(
            model.inverse_transform(model.embedding_), X, atol=1e-3 * model.size_
        )


def test_a_table_that_is_mostly_gaps():
    """Ratings: 95 of 100 values missing, and still better than the means of the columns."""
    rng = np.random.default_rng(0)
    Z, W = rng.standard_normal((800, 2)), rng.standard_normal((2, 200))
    X, noise = Z @ W, 0.5
    X += noise * rng.standard_normal(X.shape)
    means = rng.standard_normal(200)
    X += means
    holed = with_gaps(X, 0.95)
    model, gaps = PPCA(2).fit(holed), np.isnan(holed)
    # Who knows the parameters fills gaps by the posterior mean of each row.
    best = np.empty_like(X)
    for i, known in enumerate(~gaps):
        V = W[:, known]
        z = np.linalg.solve(V @ V.T + noise**2 * np.eye(2), V @ (X[i, known] - means[known]))
        best[i] = means + z @ W
    by_means = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
    error, least, most = (
        np.mean((A - X)[gaps] ** 2) for A in (model.impute(holed), best, by_means)
    )
    # Three numbers of a column are estimated from its 40 known values, which adds 3/40 to the error
    # of each value that is filled, and as much to what the known ones tell of a row.
    assert least < error < (1 + 2 * 3 / 40) * least < most
    assert np.diff(model.loss_history_).max() <= 0


def test_a_row_is_placed_as_if_alone_and_float32_stays_so():
    X = with_gaps(irregular(90, 7), 0.1)
    X[5] = irregular(1, 7)[0]
    model = PPCA(2).fit(X)
    placed = model.transform(X)
    alone = np.vstack([model.transform(row[None]) for row in X])
    assert placed.tobytes() == alone.tobytes() == model.embedding_.tobytes()
    one, two = (PPCA(2, n_jobs=jobs).fit(X).components_ for jobs in (1, 2))
    assert one.tobytes() == two.tobytes()
    single = PPCA(2).fit(X.astype(np.float32))
    filled, deviations = single.impute(X.astype(np.float32), return_std=True)
    assert {a.dtype for a in (single.embedding_, filled, deviations)} == {np.dtype(np.float32)}
    np.testing.assert_allclose(single.embedding_, placed, atol=1e-3)


def test_a_cancelled_fit_keeps_the_last_step(monkeypatch):
    X, model, calls = with_gaps(irregular(60, 6), 0.3), PPCA(2), []

    def cancelling(*args):
        calls.append(args)
        if len(calls) == 2:
            assert model.cancel()
        return m_step(*args)

    monkeypatch.setattr("lowland.methods.latent.ppca.m_step", cancelling)
    model.fit(X)
    assert model.n_iter_ == 2
    assert model.score_samples(X).sum() == pytest.approx(model.log_likelihood_, rel=1e-9)


def test_a_far_row_is_unlikely_and_disturbs_no_other():
    X = with_gaps(irregular(60, 6), 0.2)
    model, mixed = PPCA(2).fit(X), X.copy()
    mixed[::2] *= 1e70
    assert (model.score_samples(mixed)[::2] < -1e100).all()
    assert model.score_samples(mixed)[1::2].tobytes() == model.score_samples(X)[1::2].tobytes()
    assert model.transform(mixed)[1::2].tobytes() == model.embedding_[1::2].tobytes()


@each("exponent", [200, -200])
def test_the_unit_of_the_table_changes_no_byte(exponent):
    X = with_gaps(irregular(60, 6), 0.2)
    plain, other = PPCA(2).fit(X), PPCA(2).fit(np.ldexp(X, exponent))
    assert np.ldexp(other.embedding_, -exponent).tobytes() == plain.embedding_.tobytes()
    moved = exponent * np.log(2) * plain.n_known_
    assert other.log_likelihood_ + moved == pytest.approx(plain.log_likelihood_, rel=1e-9)
    known = np.sum(~np.isnan(X), axis=1)
    logs = other.score_samples(np.ldexp(X, exponent)) + exponent * np.log(2) * known
    np.testing.assert_allclose(logs, plain.score_samples(X), atol=1e-9)
    filled, deviations = other.impute(np.ldexp(X, exponent), return_std=True)
    for value, usual in zip((filled, deviations), plain.impute(X, return_std=True), strict=True):
        np.testing.assert_allclose(np.ldexp(value, -exponent), usual, rtol=1e-12)


def test_memory_for_many_axes_is_asked_for_first(monkeypatch):
    X = with_gaps(irregular(500, 300), 0.1)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100MB")
    with pytest.raises(MemoryLimitError, match=r"PPCA with 200 axes for 300 columns .* fewer axes"):
        PPCA(200).fit(X)

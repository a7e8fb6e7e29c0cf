"""Starts: small, repeatable, from the data's own axes, and without rows on one place."""

import numpy as np
import pytest
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.monitor import Monitor
from lowland._engines.embedding.affinity import joint_affinities
from lowland._engines.embedding.initial_layout import (
    SMALL,
    given_layout,
    principal_layout,
    random_layout,
    spectral_layout,
)
from lowland._engines.neighbors.search import neighbor_graph


def run(seed=0):
    return FitContext(np.random.default_rng(seed), 1, Monitor())


def affinities(X, perplexity=5, k=15):
    return joint_affinities(neighbor_graph(X, k), perplexity).to_csr()


def check_start(Y, shape):
    assert Y.shape == shape
    assert np.isfinite(Y).all()
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-3 * SMALL)
    assert Y.std(axis=0).max() == pytest.approx(1e-4, rel=1e-3)
    assert len(np.unique(Y.astype(np.float32), axis=0)) == len(Y)


def alignment(Y, expected):
    """|cosine| of each column with the expected one."""
    Y, expected = Y - Y.mean(axis=0), expected - expected.mean(axis=0)
    lengths = np.linalg.norm(Y, axis=0) * np.linalg.norm(expected, axis=0)
    return np.abs((Y * expected).sum(axis=0)) / lengths


def scores(X):
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return U * s


# --- principal components ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rows", "wide", "sparse", "float32"])
def test_a_principal_start_is_the_leading_scores(kind, irregular):
    X = irregular(120, 8)
    if kind == "wide":  # more columns than a covariance is made of
        X = X @ np.random.default_rng(0).standard_normal((8, 3001))
    given = {"sparse": scipy.sparse.csr_matrix(X), "float32": X.astype(np.float32)}.get(kind, X)
    Y = principal_layout(given, 3, run())
    check_start(Y, (120, 3))
    expected = scores(X)[:, :3]
    assert alignment(Y, expected).min() > 0.9999
    ratio = Y.std(axis=0) / expected.std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=0.01)  # one scale for all axes


@pytest.mark.parametrize(
    ("X", "d"),
    [
        (np.arange(30.0)[:, None] ** 2, 2),  # fewer columns than axes
        (np.outer(np.arange(30.0) ** 2, [1.0, 2.0, 3.0]), 3),  # all on a line
        (np.ones((30, 4)), 2),  # all the same
        (np.array([[0.0, 1.0], [1.0, 5.0]]), 3),  # fewer rows than axes
    ],
    ids=["one column", "line", "constant", "two rows"],
)
def test_axes_that_the_data_do_not_have_get_noise(X, d):
    Y = principal_layout(X, d, run())
    check_start(Y, (len(X), d))
    assert (Y.std(axis=0) > 0.01 * SMALL).all()


# --- modes of the graph -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 200])  # dense, and by iteration
def test_a_spectral_start_is_the_graph_spectrum_of_the_graph(n, irregular):
    P = affinities(irregular(n, 3))
    degree = np.asarray(P.sum(axis=1)).ravel()
    A = P.toarray() / np.sqrt(np.outer(degree, degree))
    values, vectors = np.linalg.eigh(A)
    assert values[-2] < 1 - 1e-6  # connected, so that the modes are meant
    Y = spectral_layout(P, 2, run())
    check_start(Y, (n, 2))
    modes = Y * np.sqrt(degree)[:, None]
    quotients = [(y @ A @ y) / (y @ y) for y in modes.T]
    np.testing.assert_allclose(quotients, values[[-2, -3]], rtol=0.01)
    assert abs(np.corrcoef(modes.T)[0, 1]) < 0.05
    if n == 30:  # no approximation
        expected = vectors[:, [-2, -3]] / np.sqrt(degree)[:, None]
        assert alignment(Y, expected).min() > 0.9999


@pytest.mark.parametrize("parts", [2, 5])
@pytest.mark.parametrize("size", [16, 60])
def test_a_graph_in_parts_starts_in_parts_but_not_on_points(parts, size, irregular):
    X = np.vstack([irregular(size, 3) + 1e4 * part for part in range(parts)])
    Y = spectral_layout(affinities(X), 2, run())
    check_start(Y, (parts * size, 2))
    assert len(np.unique(Y, axis=0)) == parts * size


@pytest.mark.parametrize("n", [2, 3, 4])
def test_few_rows_start_somewhere(n, irregular):
    P = affinities(irregular(n, 3), perplexity=1, k=n - 1)
    for d in (1, 2, 5):
        check_start(spectral_layout(P, d, run()), (n, d))
        check_start(principal_layout(irregular(n, 3), d, run()), (n, d))


# --- all --------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["principal", "spectral", "random"])
def test_the_same_seed_gives_the_same_start(layout, irregular):
    X = irregular(100, 4)
    P = affinities(X)
    start = {
        "principal": lambda run: principal_layout(X, 2, run),
        "spectral": lambda run: spectral_layout(P, 2, run),
        "random": lambda run: random_layout(100, 2, run),
    }[layout]
    assert start(run(1)).tobytes() == start(run(1)).tobytes()
    check_start(start(run(1)), (100, 2))
    if layout == "principal":  # nothing random in it
        assert start(run(1)).tobytes() == start(run(2)).tobytes()
    if layout == "random":
        assert not np.array_equal(start(run(1)), start(run(2)))
        assert np.abs(np.corrcoef(start(run(1)).T)[0, 1]) < 0.4


def test_a_given_map_is_taken_as_it_is_but_centered(irregular):
    Y = irregular(20, 2)
    before = Y.copy()
    found = given_layout(Y, 20, 2)
    np.testing.assert_allclose(found, Y - Y.mean(axis=0))
    found[:] = 0
    assert np.array_equal(Y, before)
    assert given_layout(Y.tolist(), 20, 2).dtype == np.float64


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((19, 2)), r"init has shape \(19, 2\), but the map is 20 rows x 2 columns"),
        (np.zeros((20, 3)), r"init has shape \(20, 3\)"),
        (np.zeros(20), r"init has shape \(20,\)"),
        (np.full((20, 2), np.nan), "init holds NaN or infinity"),
        (np.full((20, 2), np.inf), "init holds NaN or infinity"),
    ],
)
def test_a_given_map_that_does_not_fit_is_refused(bad, message):
    with pytest.raises(DataError, match=message):
        given_layout(bad, 20, 2)

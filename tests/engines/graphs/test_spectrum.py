"""The slow modes of a walk: closed forms, LAPACK, and all solvers."""

from functools import partial

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.graphs import laplacian
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg.eigen import smallest_eigenpairs
from lowland._engines.neighbors.search import neighbor_graph

SOLVERS = ["dense", "factor", "filter"]


def modes(W, q, solver, monkeypatch, seed=0):
    """The engine, with one of the solvers of the eigenproblem."""
    monkeypatch.setattr(
        laplacian, "smallest_eigenpairs", partial(smallest_eigenpairs, solver=solver)
    )
    return laplacian.graph_spectrum(W, q, FitContext(np.random.default_rng(seed), 1, Monitor()))


def cycle(n):
    i = np.arange(n)
    W = scipy.sparse.coo_matrix((np.ones(n), (i, (i + 1) % n)), (n, n)).tocsr()
    return scipy.sparse.csr_matrix(W + W.T)


@pytest.fixture
def weights(irregular):
    """Irregular weights of 600 rows, and the exact pairs of L y = lambda D y."""
    graph = symmetrize(neighbor_graph(irregular(600, 3), 8))
    graph.data = np.exp(-graph.data) * (1 + graph.data)
    W = graph.toarray()
    D = np.diag(W.sum(axis=1))
    values, vectors = scipy.linalg.eigh(D - W, D)
    assert values[1] > 1e-6  # in one piece
    return graph, values, vectors


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_generalized_eigenpairs(weights, monkeypatch, solver):
    W, values, vectors = weights
    found, degrees = modes(W, 4, solver, monkeypatch)
    np.testing.assert_allclose(degrees, W.toarray().sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(1 - found.values, values[1:5], rtol=1e-7)
    Y = found.vectors / np.sqrt(degrees)[:, None]
    expected = vectors[:, 1:5] * np.sign((Y * vectors[:, 1:5]).sum(axis=0))
    np.testing.assert_allclose(Y, expected, atol=1e-5 * np.abs(expected).max())
    assert found.residual < 1e-5
    np.testing.assert_allclose(found.vectors.T @ np.sqrt(degrees), 0, atol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_there_is_one_zero_for_each_further_piece(monkeypatch, solver):
    W = scipy.sparse.csr_matrix(scipy.sparse.block_diag([cycle(60), cycle(41), cycle(30)]))
    found, degrees = modes(W, 3, solver, monkeypatch)
    np.testing.assert_allclose(1 - found.values[:2], 0, atol=1e-9)
    assert 1 - found.values[2] == pytest.approx(1 - np.cos(2 * np.pi / 60), rel=1e-6)
    Y = found.vectors[:, :2] / np.sqrt(degrees)[:, None]
    for piece in (slice(0, 60), slice(60, 101), slice(101, 131)):
        assert np.ptp(Y[piece], axis=0).max() < 1e-6

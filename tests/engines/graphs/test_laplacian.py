"""Laplacians against dense definitions, closed forms and scipy."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph

from lowland._base.errors import DataError, ParameterError
from lowland._engines.graphs.laplacian import laplacian, laplacian_product
from lowland._engines.neighbors.radius import radius_graph
from support.graphs import graph_of


def naive_laplacian(W, kind):
    degree = W.sum(axis=1)
    live = degree > 0
    inverse = np.zeros(len(W))
    inverse[live] = 1 / degree[live]
    if kind == "unnormalized":
        return np.diag(degree) - W
    return np.diag(live.astype(float)) - np.diag(np.sqrt(inverse)) @ W @ np.diag(np.sqrt(inverse))


KINDS = ["unnormalized", "symmetric"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_laplacians_are_their_definitions(kind, dtype):
    rng = np.random.default_rng(0)
    W = rng.gamma(0.5, size=(40, 40)) * (rng.random((40, 40)) < 0.15)
    W = np.maximum(W, W.T).astype(dtype)
    W[np.diag_indices(40)] *= rng.random(40) < 0.5  # some rows with a weight of their own
    W[7] = W[:, 7] = 0  # a row without neighbors
    L, degree = laplacian(scipy.sparse.csr_matrix(W), kind)
    assert L.dtype == degree.dtype == dtype
    assert np.allclose(L.toarray(), naive_laplacian(W, kind), atol=8 * np.finfo(dtype).eps)
    assert np.allclose(degree, W.sum(axis=1), rtol=1e-6)
    assert (L != L.T).nnz == 0
    if kind == "unnormalized":
        assert np.abs(L @ np.ones(40)).max() < 60 * np.finfo(dtype).eps


@pytest.mark.parametrize("n", [3, 4, 10, 31])
def test_laplacians_of_a_cycle_have_the_eigenvalues_of_the_textbook(n):
    step = np.roll(np.eye(n), 1, axis=0)
    W = scipy.sparse.csr_matrix(step + step.T)
    known = np.sort(1 - np.cos(2 * np.pi * np.arange(n) / n))
    for kind, scale in (("unnormalized", 2), ("symmetric", 1)):
        L = laplacian(W, kind)[0].toarray()
        assert np.allclose(np.sort(np.linalg.eigvals(L).real), scale * known, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_the_eigenvalue_0_counts_the_components_and_rows_alone(kind):
    labels = np.array([0, 1, 0, 2, 1, 0, 3])
    W = graph_of(labels)
    W.data[:] = 0.3
    values = np.linalg.eigvals(laplacian(W, kind)[0].toarray())
    assert (np.abs(values) < 1e-12).sum() == 4


@pytest.mark.parametrize("kind", KINDS)
def test_no_edges_one_row_and_weights_of_0_give_zeros_and_no_nan(kind):
    for W in (scipy.sparse.csr_matrix((1, 1)), graph_of(np.zeros(4))):
        L, degree = laplacian(W, kind)
        assert np.array_equal(L.toarray(), np.zeros(W.shape))
        assert np.array_equal(degree, np.zeros(W.shape[0]))


def test_tiny_weights_do_not_overflow():
    W = scipy.sparse.csr_matrix(np.array([[0, 1e-310], [1e-310, 0]]))
    assert np.allclose(laplacian(W, "symmetric")[0].toarray(), [[1, -1], [-1, 1]])


def test_laplacians_equal_those_of_scipy():
    X = 3 * np.random.default_rng(0).standard_normal((50, 2))
    W = radius_graph(X, 2.0)
    for kind, normed in (("unnormalized", False), ("symmetric", True)):
        expected = scipy.sparse.csgraph.laplacian(W, normed=normed).toarray()
        assert np.allclose(laplacian(W, kind)[0].toarray(), expected, atol=1e-13)


def test_weights_that_are_none_and_unknown_kinds_are_named():
    with pytest.raises(DataError, match="W holds -1"):
        laplacian(scipy.sparse.csr_matrix(([-1.0], ([0], [1])), shape=(2, 2)))
    with pytest.raises(ParameterError, match="did you mean 'symmetric'"):
        laplacian(scipy.sparse.csr_matrix((2, 2)), "symetric")


def test_the_product_multiplies_by_the_symmetric_laplacian():
    rng = np.random.default_rng(3)
    W = rng.gamma(1.0, size=(30, 30))
    W += W.T
    V = rng.standard_normal((30, 4))
    product = laplacian_product(lambda U: W @ U, W.sum(axis=1))
    np.testing.assert_allclose(
        product(V), naive_laplacian(W, "symmetric") @ V, rtol=1e-12, atol=1e-13
    )

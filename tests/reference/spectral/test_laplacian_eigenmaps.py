"""Laplacian eigenmaps before their witnesses: the definition in loops, closed forms, a peer."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.manifold import spectral_embedding

from lowland import LaplacianEigenmaps
from lowland.datasets import swiss_roll
from lowland.errors import DataError, ParameterError
from lowland.neighbors import NeighborGraph, knn_graph


def weights_of(X, k, t=None):
    """W by loops; t=None gives weights 1."""
    n = len(X)
    D2 = cdist(X, X) ** 2
    W = np.zeros((n, n))
    for i in range(n):
        for j in [j for j in np.argsort(D2[i], kind="stable") if j != i][:k]:
            W[i, j] = W[j, i] = 1.0 if t is None else np.exp(-D2[i, j] / t)
    return W


def from_the_paper(X, k, q, t=None, new=None):
    """W, the pairs of L y = lambda D y by LAPACK, and Nystroem's formula for new rows."""
    W = weights_of(X, k, t)
    D = np.diag(W.sum(axis=1))
    values, Y = scipy.linalg.eigh(D - W, D)
    values, Y = values[1 : q + 1], Y[:, 1 : q + 1]
    if new is None:
        return W, values, Y, None
    Z = np.zeros((len(new), q))
    for i, x in enumerate(new):
        d2 = ((X - x) ** 2).sum(axis=1)
        nearest = np.argsort(d2, kind="stable")[:k]
        w = np.array([1.0 if t is None else np.exp(-d2[j] / t) for j in nearest])
        Z[i] = sum(w[a] * Y[j] for a, j in enumerate(nearest)) / w.sum() / (1 - values)
    return W, values, Y, Z


def ring(n):
    """Each of n vertices joined with the two next to it."""
    i = np.arange(n)
    ids = np.column_stack([(i - 1) % n, (i + 1) % n]).astype(np.int32)
    return NeighborGraph(ids, np.ones((n, 2)), n)


# --- the definition -------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [None, 0.7])
def test_the_map_and_new_rows_are_those_of_the_definition(irregular, t):
    X, new = irregular(140, 4, seed=1), irregular(15, 4, seed=1)[:15] + 0.05
    _, values, Y, Z = from_the_paper(X, 8, 3, t, new)
    kind = {"weights": "binary"} if t is None else {"bandwidth": t}
    model = LaplacianEigenmaps(3, n_neighbors=8, **kind).fit(X)
    turn = np.sign((Y * model.embedding_).sum(axis=0))
    scale = np.abs(Y).max()
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(model.embedding_, Y * turn, atol=1e-9 * scale)
    np.testing.assert_allclose(model.transform(new), Z * turn, atol=1e-8 * np.abs(Z).max())


def test_local_scales_are_those_of_the_definition(irregular):
    """w_ij = max(exp(-d^2 / (s_i s_j)), exp(-4)) with s half the distance to the k-th neighbor."""
    X, k = irregular(140, 4, seed=1), 8
    X *= np.linspace(1, 2, 140)[:, None]  # not equally dense everywhere
    D = cdist(X, X)
    s = np.sort(D, axis=1)[:, k] / 2
    W = np.where(weights_of(X, k) > 0, np.maximum(np.exp(-(D**2) / np.outer(s, s)), np.exp(-4)), 0)
    values, Y = scipy.linalg.eigh(np.diag(W.sum(axis=1)) - W, np.diag(W.sum(axis=1)))
    values, Y = values[1:4], Y[:, 1:4]
    model = LaplacianEigenmaps(3, n_neighbors=k).fit(X)
    assert model.bandwidth_ is None
    np.testing.assert_allclose(model.scales_, s, rtol=1e-9)
    turn = np.sign((Y * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    np.testing.assert_allclose(model.embedding_, Y * turn, atol=1e-8 * np.abs(Y).max())


def test_the_unit_of_the_data_does_not_change_local_scales(irregular):
    X = irregular(100, 3)
    found = LaplacianEigenmaps(2).fit(X)
    scaled = LaplacianEigenmaps(2).fit(4096.0 * X)
    np.testing.assert_array_equal(scaled.embedding_, found.embedding_)
    np.testing.assert_array_equal(scaled.scales_, 4096.0 * found.scales_)


def test_the_constraint_of_the_paper_holds(irregular):
    X = irregular(200, 4)
    model = LaplacianEigenmaps(3).fit(X)
    Y = model.embedding_
    np.testing.assert_allclose(Y.T @ (model.degrees_[:, None] * Y), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(model.degrees_ @ Y, 0, atol=1e-9)


def test_the_bandwidth_is_the_median_squared_edge(irregular):
    X = irregular(90, 3)
    graph = knn_graph(X, 6).to_csr()
    edges = graph.maximum(graph.T).data  # the same number on both sides where both have it
    model = LaplacianEigenmaps(2, n_neighbors=6, bandwidth="median").fit(X)
    assert model.scales_ is None
    assert model.bandwidth_ == pytest.approx(np.median(edges) ** 2, rel=1e-12)
    assert LaplacianEigenmaps(2, weights="binary").fit(X).bandwidth_ is None


# --- closed forms -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [61, 1501])
def test_a_ring_has_the_eigenvalues_of_the_cycle_graph_and_is_round(n):
    model = LaplacianEigenmaps(4, weights="binary", random_state=0).fit(ring(n))
    m = np.array([1, 1, 2, 2])
    np.testing.assert_allclose(model.eigenvalues_, 1 - np.cos(2 * np.pi * m / n), rtol=1e-6)
    radius = np.linalg.norm(model.embedding_[:, :2], axis=1)
    np.testing.assert_allclose(radius, np.full(n, n**-0.5), rtol=1e-4)


def test_a_path_has_cosines():
    n = 200
    i = np.arange(n - 1)
    path = scipy.sparse.coo_matrix((np.ones(n - 1), (i, i + 1)), (n, n)).tocsr()
    path = scipy.sparse.csr_matrix(path + path.T)
    model = LaplacianEigenmaps(3, weights="binary", metric="precomputed").fit(path)
    m = np.arange(1, 4)
    np.testing.assert_allclose(model.eigenvalues_, 1 - np.cos(np.pi * m / (n - 1)), rtol=1e-8)
    cosines = np.cos(np.pi * np.arange(n)[:, None] * m / (n - 1))
    for axis in range(3):
        assert abs(np.corrcoef(cosines[:, axis], model.embedding_[:, axis])[0, 1]) > 1 - 1e-9


# --- a known sheet, another implementation ------------------------------------------------------


@pytest.mark.parametrize("n", [700, 3000])
def test_the_first_axis_runs_along_a_roll(n):
    roll = swiss_roll(n, random_state=1)
    Y = LaplacianEigenmaps(2, n_neighbors=8, random_state=0).fit_transform(roll.X)
    assert abs(spearmanr(Y[:, 0], roll.truth[:, 0])[0]) > 0.995


@pytest.mark.parametrize("n", [250, 1300])
def test_for_the_same_weights_the_map_is_scikit_learns(irregular, n):
    X = irregular(n, 3, seed=4)
    model = LaplacianEigenmaps(3, n_neighbors=9, bandwidth=0.5, random_state=0).fit(X)
    W = scipy.sparse.csr_matrix(weights_of(X, 9, 0.5))
    peer = spectral_embedding(W, n_components=3, eigen_solver="arpack", random_state=0)
    angles = scipy.linalg.subspace_angles(peer, model.embedding_)
    assert angles.max() < 1e-5
    turn = np.sign((peer * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, peer * turn, atol=1e-5 * np.abs(peer).max())


# --- what may be given, and pieces --------------------------------------------------------------


def test_distances_and_graphs_do_for_rows(irregular):
    X, new = irregular(120, 4), irregular(6, 4, seed=2)
    expected = LaplacianEigenmaps(2, n_neighbors=7).fit(X)
    given = LaplacianEigenmaps(2, n_neighbors=7, metric="precomputed").fit(cdist(X, X))
    np.testing.assert_allclose(given.embedding_, expected.embedding_, atol=1e-10)
    near = given.transform(cdist(new, X))
    np.testing.assert_allclose(near, expected.transform(new), atol=1e-9)
    graph = knn_graph(X, 7)
    found = LaplacianEigenmaps(2).fit_transform(graph)
    np.testing.assert_array_equal(found, expected.embedding_)
    with pytest.raises(ParameterError, match="fitted on a NeighborGraph"):
        LaplacianEigenmaps(2).fit(graph).transform(X)


@pytest.fixture
def two_clouds(irregular):
    X = irregular(150, 3)
    X[100:] += 50
    return X


def test_pieces_are_joined_or_refused(two_clouds):
    model = LaplacianEigenmaps(2, n_neighbors=6).fit(two_clouds)
    assert model.n_connected_components_ == 2
    assert 0 < model.eigenvalues_[0] < 1e-3  # joined by one edge of weight exp(-4) among hundreds
    median = LaplacianEigenmaps(2, n_neighbors=6, bandwidth="median").fit(two_clouds)
    assert 0 < median.eigenvalues_[0] < 1e-6  # hardly joined
    split = model.embedding_[:, 0] > model.embedding_[:, 0].mean()
    assert split[:100].all() ^ split[100:].all()
    with pytest.raises(DataError, match="falls into 2 components, of 100, 50 rows"):
        LaplacianEigenmaps(2, n_neighbors=6, on_disconnected="raise").fit(two_clouds)


def test_bad_input_is_refused_or_mapped(irregular):
    X = irregular(30, 3)
    with pytest.raises(ParameterError, match=r"n_neighbors=30 is not possible with 30 fitted"):
        LaplacianEigenmaps(2, n_neighbors=30).fit(X)
    with pytest.raises(ParameterError, match=r"n_components=30 is more than .* at most 29"):
        LaplacianEigenmaps(30).fit(X)
    X[5:25] = X[5]  # more than k equal rows
    model = LaplacianEigenmaps(2, n_neighbors=4).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert np.ptp(model.embedding_[5:25], axis=0).max() == 0
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    assert np.isfinite(LaplacianEigenmaps(2).fit_transform(np.ones((25, 3)))).all()


def test_all_axes_can_be_asked_for(irregular):
    X = irregular(40, 3)
    _, values, _, _ = from_the_paper(X, 10, 39)
    model = LaplacianEigenmaps(39, weights="binary").fit(X)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-10)
    assert model.eigenvalues_.sum() == pytest.approx(40)  # the trace of I - D^(-1) W

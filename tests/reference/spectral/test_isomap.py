"""Isomap before its witnesses: the paper's steps in loops, closed forms, known sheets, a peer."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist, squareform
from sklearn import manifold

import lowland
from lowland import PCA, Isomap
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.linalg.procrustes import align
from lowland._engines.neighbors.search import neighbor_query
from lowland.datasets import swiss_roll
from lowland.errors import DataError, ParameterError
from lowland.methods.spectral import isomap
from lowland.neighbors import knn_graph
from support.oracles.basics import connected_edges, shortest_paths


def from_the_paper(D, k, q, new=None):
    """Steps 1 to 3 with loops (union of neighbors, Floyd, classical MDS), and Gower's new rows."""
    G = shortest_paths(connected_edges(D, "bridge", k)[0])
    H = np.eye(len(D)) - 1 / len(D)
    B = -0.5 * H @ G**2 @ H
    values, V = np.linalg.eigh(B)
    values, V = values[::-1][:q], V[:, ::-1][:, :q]
    V = V * np.sign(V[np.abs(V).argmax(axis=0), range(q)])
    Y = V * np.sqrt(values)
    Z = None
    if new is not None:
        Z = np.empty((len(new), q))
        for i, d in enumerate(new):
            nearest = np.argsort(d, kind="stable")[:k]
            along = np.min([d[j] + G[j] for j in nearest], axis=0)
            for axis in range(q):
                Z[i, axis] = 0.5 * Y[:, axis] @ ((G**2).mean(axis=0) - along**2) / values[axis]
    return G, B, values, Y, Z


@pytest.fixture
def two_rolls():
    """Two copies of a roll far apart: a graph of two pieces, of 120 and 80 rows."""
    X = swiss_roll(200, random_state=3).X
    X[120:] += [200.0, 0, 0]
    return X


# --- the definition -------------------------------------------------------------------------------


def test_the_map_and_the_places_of_new_rows_are_those_of_the_paper(irregular):
    X, new = irregular(130, 5, seed=1), irregular(20, 5, seed=2)
    _, B, values, Y, Z = from_the_paper(cdist(X, X), 7, 3, cdist(new, X))
    model = Isomap(3, n_neighbors=7).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(model.embedding_, Y, atol=1e-9 * np.abs(Y).max())
    np.testing.assert_allclose(model.transform(new), Z, atol=1e-9 * np.abs(Y).max())
    error = np.linalg.norm(B - Y @ Y.T) / len(X)
    assert model.reconstruction_error_ == pytest.approx(error, rel=1e-9)
    assert model.lowest_eigenvalue_ == pytest.approx(np.linalg.eigvalsh(B)[0], rel=1e-6)


def test_residual_variance_is_one_less_the_squared_correlation_of_all_pairs(irregular):
    X = irregular(110, 4)
    G, _, _, Y, _ = from_the_paper(cdist(X, X), 6, 3)
    pairs = np.triu_indices(len(X), 1)
    expected = [
        1 - np.corrcoef(G[pairs], cdist(Y[:, :q], Y[:, :q])[pairs])[0, 1] ** 2 for q in (1, 2, 3)
    ]
    found = Isomap(3, n_neighbors=6).fit(X).residual_variance_
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_iteration_and_single_precision_agree_with_the_paper(irregular, monkeypatch):
    """The three ways to solve: LAPACK, block Lanczos in double, and in single precision."""
    X = irregular(450, 4, seed=5)
    _, _, values, Y, _ = from_the_paper(cdist(X, X), 8, 2)
    model = Isomap(2, n_neighbors=8, random_state=0).fit(X)
    np.testing.assert_allclose(model.embedding_, Y, atol=1e-8 * np.abs(Y).max())
    monkeypatch.setattr("lowland.methods._bases.graphs.DOUBLE_ROWS", 100)
    single = Isomap(2, n_neighbors=8, random_state=0).fit(X)
    assert single.edge_lengths_.dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, values, rtol=1e-5)
    np.testing.assert_allclose(single.embedding_, Y, atol=1e-4 * np.abs(Y).max())
    assert single.reconstruction_error_ == pytest.approx(model.reconstruction_error_, rel=1e-3)


def test_without_memory_for_the_matrix_its_rows_are_made_for_each_product(irregular, monkeypatch):
    X = irregular(1500, 3, seed=4)
    kept = Isomap(2, random_state=0).fit(X)
    needed = 8 * 1500 * 1500 // 2
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", str(needed + needed // 2))  # of which it takes half
    made = []
    whole = isomap.GeodesicSquares.__init__

    def noted(self, *arguments):
        whole(self, *arguments)
        made.append(self.kept)

    monkeypatch.setattr(isomap.GeodesicSquares, "__init__", noted)
    streamed = Isomap(2, random_state=0).fit(X)
    assert made == [False]
    scale = np.abs(kept.embedding_).max()
    np.testing.assert_allclose(streamed.embedding_, kept.embedding_, atol=1e-7 * scale)
    assert streamed.reconstruction_error_ == pytest.approx(kept.reconstruction_error_, rel=1e-9)
    np.testing.assert_allclose(streamed.residual_variance_, kept.residual_variance_, rtol=1e-6)


# --- closed forms -------------------------------------------------------------------------------


def test_on_the_complete_graph_it_is_pca(irregular):
    X, new = irregular(70, 5, seed=8), irregular(9, 5, seed=9)
    pca = PCA(3).fit(X)
    model = Isomap(3, radius=100.0).fit(X)
    turn = np.sign((pca.transform(X) * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, pca.transform(X) * turn, atol=1e-9)
    np.testing.assert_allclose(model.transform(new), pca.transform(new) * turn, atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, 69 * pca.explained_variance_, rtol=1e-9)
    by_number = Isomap(3, n_neighbors=69).fit(X)
    np.testing.assert_allclose(by_number.embedding_, model.embedding_, atol=1e-9)


def test_a_bent_wire_is_its_arc_length():
    t = np.sort(np.random.default_rng(0).uniform(0, 3, 60))
    X = np.column_stack([np.cos(t), np.sin(t)])
    chords = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(X, axis=0), axis=1))])
    model = Isomap(1, n_neighbors=1).fit(X)  # only chords to next ones, and bridges of them
    np.testing.assert_allclose(
        squareform(cdist(model.embedding_, model.embedding_), checks=False),
        squareform(np.abs(chords[:, None] - chords), checks=False),
        atol=1e-10,
    )
    assert model.residual_variance_[0] < 1e-10


def test_a_wire_in_two_dimensions_has_an_empty_second_axis():
    X = np.arange(30.0)[:, None] * [1.0, 2.0]
    model = Isomap(2, n_neighbors=3).fit(X)
    assert model.eigenvalues_[1] == 0
    assert (model.embedding_[:, 1] == 0).all()
    assert (model.transform(X + 0.1)[:, 1] == 0).all()


def test_axes_without_a_positive_eigenvalue_are_zero_and_said():
    ring = np.exp(2j * np.pi * np.arange(9) / 9)
    X = np.column_stack([ring.real, ring.imag])
    with pytest.warns(UserWarning, match=r"only \d of 9 components have a positive eigenvalue"):
        model = Isomap(9, n_neighbors=2).fit(X)
    assert model.lowest_eigenvalue_ < 0
    assert (model.eigenvalues_ >= 0).all()


# --- known sheets -------------------------------------------------------------------------------


@pytest.mark.parametrize(("landmarks", "bound"), [(None, 1.0e-3), (150, 1.5e-3)])
def test_a_roll_is_unrolled_to_its_true_size(landmarks, bound):
    roll = swiss_roll(1500, random_state=7)
    model = Isomap(2, landmarks=landmarks, random_state=0).fit(roll.X)
    fit = align(roll.truth, model.embedding_, scaling=False)
    assert fit.disparity < bound
    # paths along edges are longer than the straight line, by some 3 % at this density
    assert 0.95 < align(roll.truth, model.embedding_).scale < 1
    assert model.residual_variance_[1] < 2e-3 < model.residual_variance_[0]


# --- another implementation ---------------------------------------------------------------------


def test_it_agrees_with_scikit_learn(irregular):
    """Also for new rows; scikit-learn's ``reconstruction_error()`` is the same number."""
    X, new = irregular(300, 4, seed=6), irregular(25, 4, seed=7)
    peer = manifold.Isomap(n_components=2, n_neighbors=9).fit(X)
    model = Isomap(2, n_neighbors=9).fit(X)
    turn = np.sign((peer.embedding_ * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, peer.embedding_ * turn, atol=1e-8)
    np.testing.assert_allclose(model.transform(new), peer.transform(new) * turn, atol=1e-8)
    assert model.reconstruction_error_ == pytest.approx(peer.reconstruction_error(), rel=1e-8)


def test_a_radius_joins_all_rows_within_it(irregular):
    X, new = irregular(200, 3, seed=6), irregular(25, 3, seed=7)
    D = cdist(X, X)
    radius = float(np.quantile(D, 0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pieces, which both of us join
        peer = manifold.Isomap(n_components=2, n_neighbors=None, radius=radius).fit(X)
    model = Isomap(2, radius=radius).fit(X)
    turn = np.sign((peer.embedding_ * model.embedding_).sum(axis=0))
    if model.n_connected_components_ == 1:  # scikit-learn adds more edges between pieces
        np.testing.assert_allclose(model.embedding_, peer.embedding_ * turn, atol=1e-8)
    links = model._links(new, FitContext(np.random.default_rng(0), 1, Monitor()))
    near = cdist(new, X)
    expected = (near <= radius) | (near == near.min(axis=1, keepdims=True))
    np.testing.assert_array_equal(links.toarray() > 0, expected)
    home = model.transform(X)
    np.testing.assert_array_equal(home, model.embedding_)


def test_landmarks_are_nearly_as_good_and_all_of_them_are_all(irregular):
    X = irregular(260, 3)
    exact = Isomap(2).fit_transform(X)
    every = Isomap(2, landmarks=260, random_state=0).fit_transform(X)
    np.testing.assert_allclose(every, exact, atol=1e-9 * np.abs(exact).max())
    some = Isomap(2, landmarks=60, random_state=0).fit(X)
    assert some.landmarks_.shape == (60,)
    assert align(exact, some.embedding_, scaling=False).disparity < 1e-2
    np.testing.assert_allclose(some.transform(X), some.embedding_, atol=1e-9)


def test_the_error_of_landmarks_is_that_of_their_own_matrix(irregular):
    X = irregular(70, 5)
    model = Isomap(2, radius=100.0, landmarks=25, random_state=0).fit(X)
    some = X[model.landmarks_]
    B = (some - some.mean(axis=0)) @ (some - some.mean(axis=0)).T
    left_out = np.sort(np.linalg.eigvalsh(B))[:-2]
    expected = np.sqrt((left_out**2).sum()) / 25
    assert model.reconstruction_error_ == pytest.approx(expected, rel=1e-9)


# --- what may be given --------------------------------------------------------------------------


def test_a_graph_and_a_sparse_matrix_of_distances_do_for_the_rows(irregular):
    X = irregular(120, 4)
    expected = Isomap(2, n_neighbors=8).fit_transform(X)
    graph = knn_graph(X, 8)
    np.testing.assert_array_equal(Isomap(2).fit_transform(graph), expected)
    sparse = graph.to_csr()
    found = Isomap(2, n_neighbors=8, metric="precomputed").fit_transform(sparse)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ParameterError, match="fitted on a NeighborGraph"):
        Isomap(2).fit(graph).transform(X)


def test_a_sparse_matrix_may_store_fewer_neighbors_for_some_rows(irregular):
    X = irregular(60, 3)
    graph = knn_graph(X, 8).to_csr().tolil()
    graph[5] = 0
    graph[5, 9] = cdist(X[5:6], X[9:10])[0, 0]
    graph = scipy.sparse.csr_matrix(graph)
    D = np.where(graph.toarray() > 0, graph.toarray(), np.inf)
    G = shortest_paths(np.minimum(D, D.T))
    model = Isomap(2, n_neighbors=8, metric="precomputed").fit(graph)
    H = np.eye(60) - 1 / 60
    expected = np.linalg.eigvalsh(-0.5 * H @ G**2 @ H)[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-10)


# --- pieces -------------------------------------------------------------------------------------


def test_pieces_are_joined_by_the_shortest_edge(two_rolls):
    model = Isomap(2, n_neighbors=8).fit(two_rolls)
    assert model.n_connected_components_ == 2
    assert model.excluded_.size == 0
    gap = cdist(two_rolls[:120], two_rolls[120:]).min()
    apart = cdist(model.embedding_[:120], model.embedding_[120:]).min()
    assert apart == pytest.approx(gap, rel=0.05)


def test_a_graph_in_pieces_has_no_place_for_those_left_out(two_rolls, tmp_path):
    graph = knn_graph(two_rolls, 8)
    model = Isomap(2, on_disconnected="largest").fit(graph)
    assert np.isnan(model.embedding_[120:]).all()
    assert np.isfinite(model.embedding_[:120]).all()
    model.save(tmp_path / "model.lowland")
    loaded = lowland.load(tmp_path / "model.lowland")
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    with pytest.raises(DataError, match="2 connected components, and X holds no distances between"):
        Isomap(2).fit(graph)
    sparse = graph.to_csr()
    with pytest.raises(DataError, match="has 2 connected components"):
        Isomap(2, metric="precomputed").fit(sparse)


def test_pieces_can_be_refused(two_rolls):
    with pytest.raises(DataError, match="falls into 2 components, of 120, 80 rows"):
        Isomap(2, n_neighbors=8, on_disconnected="raise").fit(two_rolls)


# --- bad input ----------------------------------------------------------------------------------


def test_more_neighbors_than_rows_are_refused_with_the_number(irregular):
    with pytest.raises(ParameterError, match=r"n_neighbors=20 is not possible with 20 fitted rows"):
        Isomap(2, n_neighbors=20).fit(irregular(20, 3))


def test_more_equal_rows_than_neighbors_are_one_place(irregular):
    X = irregular(60, 3)
    X[10:30] = X[10]
    Y = Isomap(2, n_neighbors=5).fit_transform(X)
    np.testing.assert_allclose(Y[10:30], np.tile(Y[10], (20, 1)), atol=1e-8)
    assert np.linalg.norm(Y[40] - Y[10]) > 0.1


def test_numbers_that_do_not_fit_together_are_refused(irregular):
    X = irregular(40, 3)
    with pytest.raises(ParameterError, match=r"n_components=41 is more than .* n_samples=40 rows"):
        Isomap(41).fit(X)
    for m in (2, 41):
        with pytest.raises(
            ParameterError, match=rf"landmarks={m} must be more than n_components=2"
        ):
            Isomap(2, landmarks=m).fit(X)
    with pytest.raises(DataError, match="needs distances >= 0"):
        Isomap(2, metric="precomputed").fit(-cdist(X, X))
    with pytest.raises(DataError, match="needs a square matrix"):
        Isomap(2, metric="precomputed").fit(X)
    of_new_rows = neighbor_query(X, X[:5] + 1, 3)
    with pytest.raises(DataError, match="neighbors of 5 new rows"):
        Isomap(2).fit(of_new_rows)


def test_the_number_of_threads_does_not_change_a_byte_of_large_fits(irregular, monkeypatch):
    monkeypatch.setattr("lowland.methods._bases.graphs.DOUBLE_ROWS", 100)
    X = irregular(700, 3)
    for landmarks in (None, 80):
        maps = [
            Isomap(2, landmarks=landmarks, n_jobs=jobs, random_state=0).fit(X) for jobs in (1, 2)
        ]
        assert maps[0].embedding_.tobytes() == maps[1].embedding_.tobytes()
        assert maps[0].transform(X + 0.1).tobytes() == maps[1].transform(X + 0.1).tobytes()

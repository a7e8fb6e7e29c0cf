"""TCIE before its witnesses: the paper's steps in loops, metric MDS, sheets with known truth."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist

from lowland import MDS, Isomap
from lowland.datasets import swiss_roll
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.methods.unfolding import tcie
from lowland.methods.unfolding.tcie import TCIE, half_sphere
from lowland.neighbors import knn_graph
from support.cases import each
from support.oracles.mds import guttman

# --- the paper ----------------------------------------------------------------------------------


def edges_of(X, k):
    """Lengths of the edges between either's k nearest rows; inf is not an edge."""
    D = cdist(X, X)
    E = np.full(D.shape, np.inf)
    for i in range(len(X)):
        near = [j for j in np.argsort(D[i], kind="stable") if j != i][:k]
        E[i, near] = E[near, i] = D[i, near]
    return E


def geodesics(E):
    """Distances, and for each pair the rows strictly inside of the shortest path."""
    graph = scipy.sparse.csr_matrix(np.where(np.isfinite(E), E, 0))
    G, before = dijkstra(graph, return_predecessors=True)

    def inside(i, j):
        rows = []
        while before[i, j] != i:
            j = before[i, j]
            rows.append(int(j))
        return rows

    return G, inside


def one_sided(E, K, threshold, q):
    """Rows for which the mean unit vector to the K nearest rows is long, from all their angles."""
    G, found = geodesics(E)[0], []
    for i in range(len(E)):
        near = np.argsort(G[i], kind="stable")[1 : K + 1]
        among = [i, *near]
        D = geodesics(E[np.ix_(among, among)])[0]
        cosines = [
            (D[0, j] ** 2 + D[0, m] ** 2 - D[j, m] ** 2) / (2 * D[0, j] * D[0, m])
            for j, m in itertools.product(range(1, K + 1), repeat=2)
        ]
        found.append(
            np.sqrt(max(np.mean(cosines), 0)) > threshold * {1: 1, 2: 2 / np.pi, 3: 0.5}[q]
        )
    return np.flatnonzero(found)


def kept_pairs(E, boundary, criterion):
    """w_ij of all pairs, one at a time."""
    G, inside = geodesics(E)
    W = np.isfinite(E).astype(float)
    reach = G[boundary].min(axis=0)
    for i, j in itertools.combinations(range(len(E)), 2):
        if criterion == "path":
            keep = not set(inside(i, j)) & set(boundary.tolist())
        else:
            keep = G[i, j] < (reach[i] + reach[j]) * (1 - 1e-9)
        W[i, j] = W[j, i] = max(W[i, j], float(keep))
    return G, W


def stress(Y, G, W):
    return float((W * (G - cdist(Y, Y)) ** 2).sum() / 2)


def holed(n, seed=0, noise=0.0):
    """A sheet of 3 x 1 with a hole of 1.4 x 0.6, around a cylinder of radius 0.6."""
    rng = np.random.default_rng(seed)
    T = rng.random((4 * n, 2)) * [3, 1]
    T = T[(np.abs(T - [1.5, 0.5]) > [0.7, 0.3]).any(axis=1)][:n]
    a = T[:, 0] / 0.6
    X = np.column_stack([0.6 * np.sin(a), T[:, 1], 0.6 * np.cos(a)])
    return X + noise * rng.standard_normal(X.shape), T


def error(T, Y):
    """Relative to the size of T, after the best rotation and shift, without scaling."""
    A, B = T - T.mean(axis=0), Y - Y.mean(axis=0)
    U, _, V = np.linalg.svd(A.T @ B)
    return float(np.linalg.norm(A - B @ (U @ V).T) / np.linalg.norm(A))


# --- the definition -----------------------------------------------------------------------------


@each("q", [1, 2, 3])
def test_the_boundary_is_where_neighbors_lie_on_one_side(irregular, q):
    X = irregular(90, 4, seed=q)
    for K, threshold in ((6, 0.75), (15, 0.6)):
        settings = {"boundary_neighbors": K, "boundary_threshold": threshold}
        model = TCIE(q, n_neighbors=5, criterion="path", **settings).fit(X)
        np.testing.assert_array_equal(model.boundary_, one_sided(edges_of(X, 5), K, threshold, q))


def test_the_default_neighborhood_is_eight_rows_per_axis_and_one_more_or_a_quarter_of_all():
    X, _ = holed(120)
    for n, K in ((120, 24), (60, 15)):
        for threshold in (0.5, 0.75):
            of = {"criterion": "path", "boundary_threshold": threshold}
            given = TCIE(boundary_neighbors=K, **of).fit(X[:n])
            np.testing.assert_array_equal(TCIE(**of).fit(X[:n]).boundary_, given.boundary_)


def test_a_half_sphere_has_a_known_mean():
    np.testing.assert_allclose([half_sphere(q) for q in (1, 2, 3)], [1, 2 / np.pi, 0.5], rtol=1e-14)
    u = np.random.default_rng(0).standard_normal((200_000, 5))
    mean = np.abs(u[:, 0] / np.linalg.norm(u, axis=1)).mean()
    assert half_sphere(5) == pytest.approx(mean, abs=4 / np.sqrt(200_000))


@each("criterion", ["distance", "path"])
def test_kept_pairs_and_their_stress_are_those_of_the_paper(criterion):
    X, _ = holed(150, seed=2, noise=0.02)
    model = TCIE(n_neighbors=6, criterion=criterion, boundary_threshold=0.6).fit(X)
    G, W = kept_pairs(edges_of(X, 6), model.boundary_, criterion)
    n = len(X)
    assert 0 < model.boundary_.size < n
    assert model.share_kept_ == pytest.approx(W.sum() / (n * (n - 1)), abs=1e-12)
    assert model.stress_ == pytest.approx(stress(model.embedding_, G, W), rel=1e-9)
    # from the map, the paper's own steps lower the stress no further
    later = guttman(G, model.embedding_, W, 50)
    assert stress(later, G, W) > model.stress_ * (1 - 1e-3)
    naive = guttman(G, Isomap(n_neighbors=6).fit_transform(X), W, 300)
    assert model.stress_ < stress(naive, G, W) * (1 + 1e-2)


def test_the_first_step_is_the_guttman_transform_of_isomap():
    X, _ = holed(150, seed=4)
    model = TCIE(n_neighbors=6, max_iter=1, random_state=0).fit(X)
    G, W = kept_pairs(edges_of(X, 6), model.boundary_, "distance")
    start = TCIE(n_neighbors=6, max_iter=0, random_state=0).fit(X).embedding_
    isomap = Isomap(n_neighbors=6).fit(X).embedding_
    assert error(isomap, start) < 1e-3  # the start is computed to so many digits
    first = guttman(G, start, W)
    np.testing.assert_allclose(model.embedding_, first - first.mean(axis=0), atol=1e-9)


# --- other methods ------------------------------------------------------------------------------


def test_with_all_pairs_it_is_metric_scaling_of_geodesic_distances():
    X, _ = holed(200, seed=3)
    G = geodesics(edges_of(X, 7))[0]
    start = TCIE(n_neighbors=7, criterion="all", max_iter=0, random_state=0).fit(X).embedding_
    model = TCIE(n_neighbors=7, criterion="all", tol=1e-9, random_state=0).fit(X)
    scaling = MDS(metric="precomputed", init=start, tol=1e-9).fit(G)
    assert model.share_kept_ == 1
    assert model.boundary_.size == 0
    assert model.stress_ == pytest.approx(scaling.stress_, rel=1e-6)
    assert error(scaling.embedding_, model.embedding_) < 1e-3


def test_a_closed_surface_has_hardly_a_boundary():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    # r of 24 random directions in a plane exceeds 0.75 * 2/pi with probability exp(-24 r^2); those
    # of neighbors are spread more evenly, but distances along the graph add to their error
    most = 10 * 800 * np.exp(-24 * (1.5 / np.pi) ** 2)
    assert TCIE(boundary_threshold=0.75, random_state=0).fit(X).boundary_.size < most


@each("seed", [0, 1, 2])
def test_a_sheet_with_a_hole_is_unrolled_better_than_by_isomap(seed):
    X, T = holed(500, seed)
    k = {"n_neighbors": 8}
    found = {
        "tcie": error(T, TCIE(**k, random_state=0).fit_transform(X)),
        "all": error(T, TCIE(**k, criterion="all", random_state=0).fit_transform(X)),
        "isomap": error(T, Isomap(**k).fit_transform(X)),
        "paper": error(T, by_empty_sectors(X, T, 8)),
    }
    assert found["tcie"] < found["all"] < found["isomap"]
    # the truth tells that rule the tangent planes; without them the error may be twice as large
    assert found["tcie"] < 2 * found["paper"]


def by_empty_sectors(X, T, k):
    """Boundary: an empty sector of 120 degrees among 16 neighbors; weights of criterion 2."""
    near = np.argsort(cdist(T, T), axis=1)[:, 1:17]
    boundary = []
    for i, rows in enumerate(near):
        angles = np.sort(np.arctan2(*(T[rows] - T[i]).T))
        if np.diff(angles, append=angles[0] + 2 * np.pi).max() > 2 * np.pi / 3:
            boundary.append(i)
    E = edges_of(X, k)
    G = geodesics(E)[0]
    reach = G[boundary].min(axis=0)
    W = np.triu(np.isfinite(E) | (reach[:, None] + reach > G), 1)
    W = (W | W.T).astype(float)
    start = Isomap(n_neighbors=k).fit_transform(X)
    return MDS(metric="precomputed", weights=W, init=start, max_iter=1000).fit_transform(G)


@each("criterion", ["distance", "path"])
def test_landmarks_give_nearly_the_same_map(criterion):
    X, T = holed(900, seed=6)
    whole = TCIE(n_neighbors=8, criterion=criterion, random_state=0).fit(X)
    some = TCIE(n_neighbors=8, criterion=criterion, landmarks=300, random_state=0).fit(X)
    isomap = error(T, Isomap(n_neighbors=8).fit_transform(X))
    assert len(some.landmarks_) == 300
    np.testing.assert_array_equal(some.boundary_, whole.boundary_)
    assert error(T, some.embedding_) < isomap
    assert error(whole.embedding_, some.embedding_) < isomap / 2


# --- the descent --------------------------------------------------------------------------------


@each("criterion", ["distance", "path", "all"])
@each("n", [60, 700, 1700])  # factors of V; the degrees; a multigrid cycle
def test_the_stress_never_rises(n, criterion):
    data = swiss_roll(n, hole=True, noise=0.2, random_state=1)
    losses = TCIE(criterion=criterion, random_state=0).fit(data.X).loss_history_
    assert len(losses) > 3
    assert (np.diff(losses) <= 0).all()


def test_single_precision_gives_the_same_map(monkeypatch):
    X, _ = holed(600, seed=1)
    double = TCIE(random_state=0).fit(X)
    monkeypatch.setattr("lowland.methods._bases.graphs.DOUBLE_ROWS", 100)
    single = TCIE(random_state=0).fit(X)
    assert single.edge_lengths_.dtype == np.float32
    assert abs(single.share_kept_ - double.share_kept_) < 1e-3
    assert error(double.embedding_, single.embedding_) < 1e-2


def test_rows_distances_and_a_graph_give_the_same_map():
    X, _ = holed(160, seed=7)
    rows = TCIE(n_neighbors=6, random_state=0).fit(X)
    given = TCIE(n_neighbors=6, metric="precomputed", random_state=0).fit(cdist(X, X))
    graph = TCIE(n_neighbors=6, random_state=0).fit(knn_graph(X, 6))
    for other in (given, graph):
        np.testing.assert_array_equal(other.boundary_, rows.boundary_)
        np.testing.assert_allclose(other.embedding_, rows.embedding_, atol=1e-6)


# --- bad input ----------------------------------------------------------------------------------


def test_a_warning_tells_when_only_neighbors_are_left():
    X, _ = holed(400)
    with pytest.warns(UserWarning, match=r"400 of 400 rows are on the boundary, and \d\.\d% of"):
        model = TCIE(boundary=list(range(400)), random_state=0).fit(X)
    assert model.share_kept_ == pytest.approx(np.isfinite(edges_of(X, 10)).mean(), rel=0.01)
    assert np.isfinite(model.embedding_).all()


@each("copies", [2, 30])
def test_equal_rows_count_once_and_share_a_place(copies):
    X, _ = holed(120, seed=8)
    path = {"criterion": "path", "random_state": 0}
    once = TCIE(n_neighbors=6, **path)
    many = TCIE(n_neighbors=7 * copies - 1, **path).fit(np.repeat(X, copies, axis=0))
    assert len(many.landmarks_) == 120
    places = many.embedding_.reshape(120, copies, 2)
    assert (places == places[:, :1]).all()
    assert once.fit(X).share_kept_ <= many.share_kept_  # with the edges of all copies


@each("n", [2, 3, 4, 12])
@each("q", [1, 2, 3])
def test_few_rows_and_constant_rows_give_a_finite_map(n, q):
    if q > n:
        return
    X = np.random.default_rng(n).random((n, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in (X, np.ones((n, 3)), np.round(X)):
            model = TCIE(q, n_neighbors=min(2, n - 1), random_state=0).fit(data)
            assert model.embedding_.shape == (n, q)
            assert np.isfinite(model.embedding_).all()


def test_parts_far_apart_are_joined_left_out_or_refused():
    X, _ = holed(200, seed=9)
    X[150:] += [50, 0, 0]
    joined = TCIE(n_neighbors=6, random_state=0).fit(X)
    assert joined.n_connected_components_ >= 2
    gap = cdist(joined.embedding_[:150], joined.embedding_[150:]).min()
    assert gap == pytest.approx(cdist(X[:150], X[150:]).min(), rel=0.02)  # the bridge is kept
    part = TCIE(n_neighbors=6, on_disconnected="largest", boundary=[0, 199], random_state=0).fit(X)
    assert np.isfinite(part.embedding_).all()
    assert part.boundary_.tolist() == [0]
    with pytest.raises(DataError, match="components"):
        TCIE(n_neighbors=6, on_disconnected="raise").fit(X)


def test_parameters_that_do_not_fit_the_rows_are_refused():
    X, _ = holed(50)
    with pytest.raises(
        ParameterError, match=r"boundary has row 50, but the rows are numbered 0 to 49"
    ):
        TCIE(boundary=[3, 50]).fit(X)
    with pytest.raises(ParameterError, match=r"landmarks=51 is more than n_samples=50"):
        TCIE(landmarks=51).fit(X)


def test_too_little_memory_is_refused_with_advice(monkeypatch):
    X, _ = holed(3000)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "70 MB")
    with pytest.raises(MemoryLimitError, match="set landmarks to fewer rows"):
        TCIE(landmarks=None).fit(X)
    assert np.isfinite(TCIE(landmarks=200).fit(X).embedding_).all()


def test_many_rows_are_placed_by_landmarks(monkeypatch):
    monkeypatch.setattr(tcie, "ALL_ROWS", 500)
    monkeypatch.setattr(tcie, "LANDMARKS", 250)
    X, T = holed(900, seed=6)
    model = TCIE(n_neighbors=8, random_state=0).fit(X)
    assert len(model.landmarks_) == 250
    assert error(T, model.embedding_) < error(T, Isomap(n_neighbors=8).fit_transform(X))

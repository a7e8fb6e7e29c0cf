"""Diffusion maps before their witnesses: the definition in loops, closed forms, known shapes."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from lowland import DiffusionMaps
from lowland.datasets import swiss_roll
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.neighbors import knn_graph
from support.cases import each


def walk_of(X, eps, alpha, k=None):
    """The matrix P of the paper by loops, its stationary distribution, the densities; K by pairs.

    With k only pairs of neighbors, and each row with itself, have a kernel value.
    """
    n = len(X)
    D = cdist(X, X)
    joined = np.full((n, n), k is None)
    if k is not None:
        for i in range(n):
            joined[i, i] = True
            for j in [j for j in np.argsort(D[i], kind="stable") if j != i][:k]:
                joined[i, j] = joined[j, i] = True
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if joined[i, j]:
                K[i, j] = np.exp(-(D[i, j] ** 2) / eps)
    density = K.sum(axis=1)
    divided = K / (density[:, None] * density[None, :]) ** alpha
    sums = divided.sum(axis=1)
    return divided / sums[:, None], sums / sums.sum(), density


def from_the_paper(X, q, eps, alpha, t, k=None):
    """lambda^t psi by an eigenproblem that is not symmetric, psi of mean square 1 under pi."""
    P, pi, _ = walk_of(X, eps, alpha, k)
    values, psi = np.linalg.eig(P)
    order = np.argsort(-values.real)[1 : q + 1]
    values, psi = values.real[order], psi.real[:, order]
    psi = psi / np.sqrt((pi[:, None] * psi**2).sum(axis=0))
    return values, psi * values**t


SETTINGS = [(0.0, 1, None), (1.0, 1, None), (0.5, 3, None), (1.0, 2, 9), (0.0, 1, 9)]


# --- the definition -------------------------------------------------------------------------------


@each(("alpha", "t", "k"), SETTINGS)
def test_the_map_is_that_of_the_paper(irregular, alpha, t, k):
    X = irregular(130, 4, seed=1)
    values, Y = from_the_paper(X, 3, 1.5, alpha, t, k)
    model = DiffusionMaps(3, bandwidth=1.5, alpha=alpha, time=t, n_neighbors=k).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    turn = np.sign((Y * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, Y * turn, atol=1e-7 * np.abs(Y).max())


@each(("alpha", "t", "k"), SETTINGS)
def test_distances_in_all_coordinates_are_diffusion_distances(irregular, alpha, t, k):
    X = irregular(40, 3, seed=2)
    P, pi, density = walk_of(X, 2.0, alpha, k)
    model = DiffusionMaps(39, bandwidth=2.0, alpha=alpha, time=t, n_neighbors=k).fit(X)
    after = np.linalg.matrix_power(P, t)
    expected = np.zeros((40, 40))
    for i in range(40):
        for j in range(40):
            expected[i, j] = ((after[i] - after[j]) ** 2 / pi).sum()
    found = cdist(model.embedding_, model.embedding_) ** 2
    np.testing.assert_allclose(found, expected, atol=1e-9 * expected.max())
    np.testing.assert_allclose(model.stationary_, pi, rtol=1e-9)
    np.testing.assert_allclose(model.densities_, density, rtol=1e-9)


def test_iteration_agrees_with_the_matrix(irregular, monkeypatch):
    X = irregular(500, 3, seed=3)
    by_matrix = DiffusionMaps(3, bandwidth=3.0, random_state=0).fit(X)
    monkeypatch.setattr("lowland._engines.linalg.eigen.DENSE_ORDER", 100)
    by_products = DiffusionMaps(3, bandwidth=3.0, random_state=0).fit(X)
    np.testing.assert_allclose(by_products.eigenvalues_, by_matrix.eigenvalues_, rtol=1e-8)
    scale = np.abs(by_matrix.embedding_).max()
    np.testing.assert_allclose(by_products.embedding_, by_matrix.embedding_, atol=1e-5 * scale)


def test_the_bandwidth_is_read_off_near_neighbors(irregular):
    X = irregular(80, 3)
    tenth = np.sort(cdist(X, X), axis=1)[:, 10]
    expected = np.median(tenth) ** 2
    assert DiffusionMaps(2).fit(X).bandwidth_ == pytest.approx(expected, rel=1e-9)


# --- known shapes ------------------------------------------------------------------------------


def test_on_a_closed_curve_the_density_drops_out_with_alpha_one():
    """Rows crowded on one side of a circle: the map is round all the same, with alpha = 0 not."""
    u = np.linspace(0, 1, 400, endpoint=False)
    angle = 2 * np.pi * u + 0.7 * np.sin(2 * np.pi * u)
    X = np.column_stack([np.cos(angle), np.sin(angle)])

    def unevenness(alpha):
        Y = DiffusionMaps(2, alpha=alpha, bandwidth=0.02).fit_transform(X)
        radius = np.linalg.norm(Y, axis=1)
        return radius.std() / radius.mean()

    assert unevenness(1.0) < 0.01
    assert unevenness(0.0) > 0.2


@pytest.mark.parametrize("k", [None, 10])
def test_the_first_axis_runs_along_a_roll(k):
    roll = swiss_roll(1000, random_state=0)
    Y = DiffusionMaps(1, n_neighbors=k, random_state=0).fit_transform(roll.X)
    assert abs(spearmanr(Y[:, 0], roll.truth[:, 0])[0]) > 0.995


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_ring_has_the_eigenvalues_of_a_circulant_matrix(alpha):
    """sum_j k_j cos(2 pi m j / n) / sum_j k_j; its density is constant, whatever alpha."""
    n = 150
    angle = 2 * np.pi * np.arange(n) / n
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    m = np.array([1, 1, 2, 2])
    for k in (None, 6):
        values = np.exp(-((X - X[0]) ** 2).sum(axis=1) / 0.01)
        if k is not None:
            values[4:-3] = 0  # only three neighbors on either side
        expected = (values * np.cos(np.outer(m, angle))).sum(axis=1) / values.sum()
        model = DiffusionMaps(4, alpha=alpha, bandwidth=0.01, n_neighbors=k).fit(X)
        np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-9)
        radius = np.linalg.norm(model.right_vectors_[:, :2], axis=1)
        np.testing.assert_allclose(radius, np.sqrt(2), rtol=1e-6)


# --- what may be given --------------------------------------------------------------------------


def test_a_graph_needs_a_number_of_neighbors(irregular):
    X = irregular(90, 3)
    graph = knn_graph(X, 8)
    expected = DiffusionMaps(2, n_neighbors=8).fit_transform(X)
    np.testing.assert_array_equal(DiffusionMaps(2, n_neighbors=8).fit_transform(graph), expected)
    with pytest.raises(DataError, match="n_neighbors=None needs all"):
        DiffusionMaps(2).fit(graph)
    with pytest.raises(DataError, match="n_neighbors=None needs all"):
        DiffusionMaps(2, metric="precomputed").fit(graph.to_csr())


def test_pieces_are_joined_or_refused(irregular):
    X = irregular(120, 3)
    X[80:] += 40
    model = DiffusionMaps(2, n_neighbors=6).fit(X)
    assert model.n_connected_components_ == 2
    assert 1 - 1e-6 < model.eigenvalues_[0] < 1
    with pytest.raises(DataError, match="falls into 2 components, of 80, 40 rows"):
        DiffusionMaps(2, n_neighbors=6, on_disconnected="raise").fit(X)


# --- bad input ----------------------------------------------------------------------------------


def test_bad_input_is_refused_or_mapped(irregular, monkeypatch):
    X = irregular(30, 3)
    with pytest.raises(ParameterError, match=r"n_neighbors=30 is not possible with 30 fitted"):
        DiffusionMaps(2, n_neighbors=30).fit(X)
    with pytest.raises(ParameterError, match=r"n_components=30 is more than .* at most 29"):
        DiffusionMaps(30).fit(X)
    with pytest.raises(DataError, match="needs distances >= 0"):
        DiffusionMaps(2, metric="precomputed").fit(-cdist(X, X))
    for k in (None, 4):
        same = X.copy()
        same[5:25] = X[5]  # more than k equal rows
        model = DiffusionMaps(2, n_neighbors=k).fit(same)
        assert np.ptp(model.embedding_[5:25], axis=0).max() < 1e-9
        np.testing.assert_allclose(model.transform(same), model.embedding_, atol=1e-9)
        assert np.isfinite(DiffusionMaps(2, n_neighbors=k).fit_transform(np.ones((25, 3)))).all()
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1 MB")
    with pytest.raises(MemoryLimitError, match=r"the kernel matrix of 600 rows needs"):
        DiffusionMaps(2, metric="manhattan").fit(irregular(600, 3))


def test_the_number_of_threads_does_not_change_a_byte_of_large_fits(irregular, monkeypatch):
    monkeypatch.setattr("lowland._engines.linalg.eigen.DENSE_ORDER", 100)
    X = irregular(700, 3)
    for k in (None, 8):
        maps = [DiffusionMaps(2, n_neighbors=k, n_jobs=jobs, random_state=0) for jobs in (1, 2)]
        assert maps[0].fit_transform(X).tobytes() == maps[1].fit_transform(X).tobytes()

"""Spectral methods at the ends of what numbers can hold, and of what memory can."""

import numpy as np
import pytest
import scipy.sparse

from lowland import LLE, LTSA, DiffusionMaps, HessianLLE, Isomap, LaplacianEigenmaps, ModifiedLLE
from lowland._base.errors import DataError, MemoryLimitError
from lowland.datasets import s_curve
from lowland.methods.spectral import diffusion_maps
from support.cases import each

X = s_curve(150, random_state=0).X
LOCAL = [LLE, ModifiedLLE, HessianLLE, LTSA]
METHODS = {
    "isomap": Isomap(2),
    "radius": Isomap(2, radius=1.0),
    "lle": LLE(2),
    "modified": ModifiedLLE(2),
    "hessian": HessianLLE(2),
    "ltsa": LTSA(2),
    "heat": LaplacianEigenmaps(2),
    "median": LaplacianEigenmaps(2, bandwidth="median"),
    "binary": LaplacianEigenmaps(2, weights="binary"),
    "diffusion": DiffusionMaps(2),
    "neighbors": DiffusionMaps(2, n_neighbors=10),
}


@pytest.mark.parametrize("method", [Isomap(2), ModifiedLLE(2), HessianLLE(2)], ids=str)
def test_a_map_too_large_for_float32_is_refused(method):
    huge = (X / np.abs(X).max() * 3e38).astype(np.float32)
    with pytest.raises(DataError, match="beyond what float32 can hold"):
        method.fit(huge)


@each("scale", [1e30, 1e60])
@each("name", METHODS)
def test_a_new_row_beyond_all_measure_does_not_move_its_company(name, scale):
    method = METHODS[name].fit(X)
    new = X[:5] + 0.01
    alone = method.transform(new)
    company = np.vstack([new, np.full((1, 3), scale)])
    together = method.transform(company)
    np.testing.assert_array_equal(together[:5], alone)
    assert np.isfinite(together).all()


@each("factor", [1e-300, 1e-12, 1e-6, 1e6, 1e100])
@each("n", [150, 500])
@each("k", [None, 10])
def test_any_bandwidth_gives_numbers_and_fitted_rows_their_place(n, k, factor):
    rows = s_curve(n, random_state=0).X
    usual = DiffusionMaps(2, n_neighbors=k, random_state=0).fit(rows).bandwidth_
    method = DiffusionMaps(2, n_neighbors=k, bandwidth=usual * factor, random_state=0).fit(rows)
    assert method.residual_ < 1e-4
    np.testing.assert_allclose(method.transform(rows), method.embedding_, atol=1e-8)


def test_rows_far_from_all_others_leave_no_doubt_about_diffusion_modes():
    rng = np.random.default_rng(1)
    cloud = rng.standard_normal((450, 3))
    isolated = 30 * rng.standard_normal((5, 3)) + 40
    method = DiffusionMaps(3, random_state=0).fit(np.vstack([isolated, cloud]))
    np.testing.assert_allclose(method.eigenvalues_, 1.0, atol=1e-12)
    assert method.residual_ < 1e-4


def test_near_pairs_and_all_pairs_give_one_diffusion_map(monkeypatch):
    rows = s_curve(700, random_state=0).X
    monkeypatch.setattr(diffusion_maps, "SPARSE_SHARE", 2.0)
    sparse = DiffusionMaps(3, random_state=0).fit_transform(rows)
    monkeypatch.setattr(diffusion_maps, "SPARSE_SHARE", -1.0)
    dense = DiffusionMaps(3, random_state=0).fit_transform(rows)
    np.testing.assert_allclose(sparse, dense, atol=1e-8)


def test_the_kernel_of_near_pairs_is_not_stored_where_memory_is_short(monkeypatch):
    rows = s_curve(1500, random_state=0).X
    usual = DiffusionMaps(2, random_state=0).fit_transform(rows)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "20MB")
    found = DiffusionMaps(2, random_state=0).fit_transform(rows)
    np.testing.assert_allclose(found, usual, atol=1e-6)


@each("method", LOCAL)
def test_clusters_very_far_apart_are_solved_to_the_tolerance(method):
    rng = np.random.default_rng(1)
    rows = np.concatenate(
        [rng.standard_normal((100, 3)) + 1e4 * rng.standard_normal(3) for _ in range(6)]
    )
    assert method(2, random_state=0).fit(rows).residual_ < 1e-5


def test_bridges_between_tiny_clusters_have_a_length():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.standard_normal((40, 3)), rng.standard_normal((40, 3)) + 60])
    usual = LaplacianEigenmaps(1, weights="binary").fit_transform(rows)
    for scale in (1e-60, 1e60):
        found = LaplacianEigenmaps(1, weights="binary").fit_transform(rows * scale)
        np.testing.assert_allclose(found, usual, atol=1e-9)


@each("method", LOCAL)
def test_copies_of_given_distances_are_announced(method, monkeypatch):
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "300kB")
    with pytest.raises(MemoryLimitError, match="copies of the distances of 150 rows"):
        method(2, metric="precomputed").fit(D)


@each("name", ["isomap", "lle", "ltsa", "heat", "neighbors"])
def test_dense_copies_of_sparse_new_rows_are_announced(name, monkeypatch):
    rows = scipy.sparse.random(150, 200, 0.3, format="csr", random_state=0)
    new = scipy.sparse.random(9000, 200, 0.01, format="csr", random_state=1)
    method = METHODS[name].fit(rows)
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "5MB")
    with pytest.raises(MemoryLimitError, match="dense table of 9000 rows"):
        method.transform(new)

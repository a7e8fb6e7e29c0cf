"""Nearest units and their sums for tables of any kind against plain loops."""

import numpy as np
import scipy.sparse

from lowland._engines.grids import nearest_units as engine
from lowland._engines.grids.lattice import Lattice
from support.cases import each

RNG = np.random.default_rng(0)
DENSE = np.round(4 * RNG.gamma(0.3, size=(90, 7)) * (RNG.random((90, 7)) < 0.4)) / 4  # exact ties
UNITS = np.vstack([DENSE[::7], DENSE[:9], np.zeros((2, 7)), RNG.random((30, 7))])


def squares_of(X, units):
    return np.nansum((X[:, None].astype(float) - units) ** 2, axis=2)


KINDS = {
    "rows": lambda X: X,
    "Fortran order": np.asfortranarray,
    "every second row of a larger table": lambda X: np.repeat(X, 2, axis=0)[::2],
    "CSR": scipy.sparse.csr_array,
}


@each("kind", KINDS.values(), ids=list(KINDS))
@each("dtype", [np.float32, np.float64])
@each("k", [1, 2, 5])
@each("threads", [1, 2])
def test_the_nearest_units_of_every_kind_of_table(kind, dtype, k, threads):
    if kind is scipy.sparse.csr_array and k > 2:
        return
    X = DENSE.astype(dtype)
    order = np.argsort(squares_of(X, UNITS), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(engine.nearest_units(kind(X), UNITS, threads, k), order)
    if k <= 2:
        found = engine.nearest_with_squares(kind(X), UNITS, threads, k).squares
        wanted = np.sort(squares_of(X, UNITS), axis=1)[:, :k]
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_sparse_rows_far_from_the_origin_are_decided_by_exact_distances():
    """x.w - |w|^2 / 2 loses the digits that tell these units apart."""
    X = np.zeros((50, 4))
    X[:, 1] = 1e9 + np.arange(50) / 8
    units = np.zeros((49, 4))
    units[:, 1] = 1e9 + np.arange(49) / 8 + 1 / 64
    wanted = squares_of(X, units).argsort(axis=1, kind="stable")[:, :2]
    found = engine.nearest_units(scipy.sparse.csr_array(X), units, 1, 2)
    np.testing.assert_array_equal(found, wanted)


@each("k", [1, 2, 5])
def test_rows_of_float32_far_from_the_origin_are_decided_by_exact_distances(k):
    """Neither their squares nor the units have a place in float32."""
    X = (DENSE + 2.0**14).astype(np.float32)
    units = UNITS + RNG.random(UNITS.shape) / 64 + 2.0**14
    wanted = squares_of(X, units).argsort(axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(engine.nearest_units(X, units, 1, k), wanted)


@each("kind", KINDS.values(), ids=list(KINDS))
@each("dtype", [np.float32, np.float64])
def test_sums_and_counts_of_every_kind_of_table(kind, dtype):
    X, nearest = DENSE.astype(dtype), np.arange(90) ** 3 % 11
    counts, sums = engine.unit_sums(kind(X), nearest, 13)
    for j in range(13):
        assert counts[j] == np.sum(nearest == j)
        np.testing.assert_allclose(sums[j], X[nearest == j].sum(axis=0, dtype=float), atol=1e-12)


def test_distances_to_listed_units():
    lists = np.array([[j, -1, (j + 3) % len(UNITS)] for j in range(len(UNITS))])
    nearest = np.arange(90) % len(UNITS)
    for X in (DENSE, scipy.sparse.csr_array(DENSE)):
        found = engine.squares_to_units(X, UNITS, nearest, lists, 2)
        D = squares_of(DENSE, UNITS)
        for i in range(90):
            np.testing.assert_allclose(found[i, 0], D[i, lists[nearest[i], 0]], atol=1e-12)
            assert found[i, 1] == np.inf
            np.testing.assert_allclose(found[i, 2], D[i, lists[nearest[i], 2]], atol=1e-12)


@each("kind", ["rectangle", "hexagon"])
@each("closed", [False, True])
@each("reach", [1.0, 1.5, 2.0])
def test_surroundings_are_the_units_within_reach(kind, closed, reach):
    grid = Lattice(kind, (7, 6), (closed, closed))
    near, D2, P = grid.within(reach), grid.squared_distances(), grid.places()
    for j in range(grid.n_units):
        there = near.units[j] >= 0
        assert sorted(near.units[j][there]) == sorted(np.flatnonzero(D2[j] <= reach**2 + 1e-9))
        for unit, way in zip(near.units[j][there], near.ways[j][there], strict=True):
            np.testing.assert_allclose(way @ way, D2[j, unit], atol=1e-12)
            gap = P[j] + way - P[unit]
            turns = gap / np.where(closed, [7, 6 * (0.75**0.5 if kind == "hexagon" else 1)], np.inf)
            np.testing.assert_allclose(turns, np.round(turns), atol=1e-9)
            assert closed or np.allclose(gap, 0)


def test_places_far_off_the_grid_are_moved_to_its_border():
    for kind in ("rectangle", "hexagon"):
        grid = Lattice(kind, (4, 5), (False, False))
        P = np.array([[-1e300, -1e300], [1e300, 1e300], [1e300, -1e300]])
        units = grid.around(P).units[np.arange(3), grid.around(P).weights.argmax(axis=1)]
        np.testing.assert_array_equal(units, [0, 19, 15])

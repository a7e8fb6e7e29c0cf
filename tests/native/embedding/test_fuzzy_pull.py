"""UMAP in settle_rows, and the radii of densMAP, against their definitions."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_dtype, each_isa, each_kind

LAWS = [(1.577, 0.895), (0.3, 2.6), (12.0, 0.2), (0.9, 1.0)]  # a, b


def two_way(n, dtype, seed=0, absent=()):
    """A symmetric graph; the absent points have no edges."""
    rng = np.random.default_rng(seed)
    there = rng.random((n, n)) < 0.25
    there = np.triu(there, 1)
    there[list(absent)] = there[:, list(absent)] = False
    there |= there.T
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(there)[1].astype(np.int32)
    return starts, columns, rng.gamma(1.0, size=columns.size).astype(dtype)


# --- settle_rows ------------------------------------------------------------------------------

PITCH, MEAN = 0.3, 9.0
SHAPES = {1: (70,), 2: (44, 40), 3: (34, 36, 32)}


def task(d, m=25, k=7, seed=0):
    """A map, a smooth field above it, and neighbors and weights of new rows."""
    rng = np.random.default_rng(seed)
    shape, low = np.array(SHAPES[d]), np.full(d, -1.3)
    Y = (low + PITCH * (9 + rng.random((150, d)) * (shape - 22))).astype(np.float32)
    grid = np.meshgrid(*[low[a] + PITCH * np.arange(shape[a]) for a in range(d)], indexing="ij")
    squares = [sum((g - c[a]) ** 2 for a, g in enumerate(grid)) for c in Y[:6].astype(float)]
    field = (0.5 + sum(8 * np.exp(-s / 5) for s in squares)).astype(np.float32)
    near = np.argsort(((Y[rng.integers(0, 150, m)][:, None] - Y) ** 2).sum(axis=2), axis=1)[:, :k]
    return Y, field, low, near.astype(np.int32), rng.dirichlet(np.full(k, 2.0), m)


def settle(Y, field, low, ids, weights, law, threads=1, isa="auto"):
    Z = np.full((len(ids), Y.shape[1]), np.nan, np.float32)
    _native.settle_rows(
        ids, weights, Y, 0.0, MEAN, low, PITCH, field, 400, 1e-5, Z, threads, *law, isa
    )
    return Z


def heights(Z, near, p, field, low, law):
    """J at the places Z, in the definition's words."""
    a, b = law
    phi, push = np.empty(len(Z)), np.empty((len(Z), Z.shape[1]), np.float32)
    _native.gather(Z.astype(np.float32), low, PITCH, 0.0, 0.0, field, phi, push, 1)
    u = ((Z[:, None].astype(float) - near) ** 2).sum(axis=2)
    return (2 * np.log1p(a * u**b)) @ p + phi / MEAN


@each(
    ("a", "b"),
    [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 3.1), (np.nan, 1.0), (1e39, 1)],
)
def test_a_law_that_does_not_fit_is_refused(a, b):
    y, z = np.zeros((2, 3, 2))
    with pytest.raises(ValueError, match="a and b must be positive, b at most 3, or both 0"):
        _native.attract(*two_way(3, np.float64), y, y, 0.0, z, None, 1, a, b)
    ids, p = np.zeros((2, 1), np.int32), np.ones((2, 1))
    Y, low, field = np.zeros((3, 2), np.float32), np.zeros(2), np.zeros((20, 20), np.float32)
    with pytest.raises(ValueError, match="a and b must be positive, b at most 3, or both 0"):
        _native.settle_rows(ids, p, Y, 0.0, 1.0, low, 1.0, field, 5, 1e-4, Y[:2].copy(), 1, a, b)


@each("law", [LAWS[0], LAWS[3], (0.5, 1.4)])
@each("d", [1, 2, 3])
@each_kind
def test_no_place_around_a_settled_row_is_lower(d, law, dtype, isa):
    Y, field, low, ids, weights = task(d)
    Z = settle(Y, field, low, ids, weights.astype(dtype), law, isa=isa)
    offsets = np.meshgrid(*[np.linspace(-0.06, 0.06, 13)] * d, indexing="ij")
    around = np.stack([o.ravel() for o in offsets], axis=1)
    edge = low + 4 * PITCH, low + (np.array(SHAPES[d]) - 8) * PITCH
    assert (
        (edge[0] < Z) & (edge[1] > Z)
    ).all()  # beyond the grid the field has no slope of its own
    started = 0
    for z, row, p in zip(Z, ids, weights, strict=True):
        near = Y[row].astype(float)
        here = heights(z[None], near, p, field, low, law)[0]
        beside = heights((z + around).astype(np.float32), near, p, field, low, law)
        # the field is read in float32
        assert here <= beside.min() + 2e-5 * max(1.0, abs(here))
        started += heights((p @ near)[None], near, p, field, low, law)[0] > here + 1e-3
    assert started > 5  # rows did move


@each("d", [1, 2, 3])
def test_neither_threads_nor_company_change_a_settled_bit(d, same_for_threads, same_alone):
    *given, ids, weights = task(d, m=101)
    same_for_threads(lambda threads: settle(*given, ids, weights, LAWS[0], threads))
    same_alone(lambda rows: [settle(*given, ids[rows], weights[rows], LAWS[0])], (0, 31, 32, 100))


# --- map_radii and radius_forces --------------------------------------------------------------


def radii(lists, y, law, threads=1, isa="auto"):
    sums = np.full((len(y), 2), np.nan)
    _native.map_radii(*lists, y, *law, sums, threads, isa)
    return sums


def radius_forces(lists, y, law, slopes, threads=1, isa="auto"):
    forces = np.full_like(y, np.nan)
    sums = radii(lists, y, law, isa=isa)
    _native.radius_forces(*lists, y, *law, sums, slopes, forces, threads, isa)
    return forces


@each("law", LAWS)
@each("n", [1, 2, 9, 60])
@each("d", [1, 2, 3, 5])
@each_kind
def test_radii_are_weighted_means_of_squared_distances(d, n, law, dtype, isa, irregular):
    y = irregular(n, d).astype(dtype)
    lists = two_way(n, dtype, absent=[0])
    found = radii(lists, y, law, isa=isa)
    a, b = law
    for i in range(n):
        near = lists[1][lists[0][i] : lists[0][i + 1]]
        u = ((y[i].astype(float) - y[near].astype(float)) ** 2).sum(axis=1)
        phi = 1 / (1 + a * u**b)
        np.testing.assert_allclose(found[i], [phi.sum(), (phi * u).sum()], rtol=1e-10)
    assert (found[0] == 0).all()


@each("law", LAWS)
@each("d", [1, 2, 3, 5])
@each_isa
def test_radius_forces_are_minus_the_gradient(d, law, isa, irregular):
    y, lists = irregular(25, d), two_way(25, np.float64, absent=[3])
    slopes = np.random.default_rng(0).standard_normal(25)

    def height(y):
        sums = radii(lists, y, law)
        return slopes @ np.divide(sums[:, 1], sums[:, 0], out=np.zeros(25), where=sums[:, 0] > 0)

    forces = radius_forces(lists, y, law, slopes, isa=isa)
    step, slope = 1e-6, np.empty_like(y)
    for place in np.ndindex(y.shape):
        ahead, behind = y.copy(), y.copy()
        ahead[place] += step
        behind[place] -= step
        slope[place] = (height(ahead) - height(behind)) / (2 * step)
    np.testing.assert_allclose(forces, -slope, atol=1e-5 * np.abs(slope).max())
    single = radius_forces(
        (*lists[:2], lists[2].astype(np.float32)), y.astype(np.float32), law, slopes, isa=isa
    )
    np.testing.assert_allclose(single, forces, atol=1e-4 * np.abs(slope).max())


@each("d", [1, 2, 3, 5])
@each_kind
def test_threads_do_not_change_a_bit_of_the_radii(d, dtype, isa, irregular, same_for_threads):
    y, lists = irregular(300, d).astype(dtype), two_way(300, dtype)
    slopes = np.linspace(-1, 1, 300)
    same_for_threads(lambda threads: radii(lists, y, LAWS[0], threads, isa))
    same_for_threads(lambda threads: radius_forces(lists, y, LAWS[0], slopes, threads, isa))


@each("law", LAWS)
@each_dtype
def test_extreme_distances_have_finite_radii(law, dtype):
    y = np.array([[0, 0], [0, 0], [1e-12, 0], [1, 0], [1e6, 0], [1e12, 0]], dtype)
    there = ~np.eye(6, dtype=bool)
    lists = np.arange(7) * 5, np.nonzero(there)[1].astype(np.int32), np.ones(30, dtype)
    assert np.isfinite(radii(lists, y, law)).all()
    assert np.isfinite(radius_forces(lists, y, law, np.ones(6))).all()


CHANGES = [
    ("starts", np.array([0, 1, 3]), "do not fit together"),
    ("starts", np.array([1, 1, 2, 3]), "do not fit together"),
    ("starts", np.array([0, 4, 2, 3]), "starts must not fall"),
    ("columns", np.array([1, 0, 3], np.int32), "columns must be below n"),
    ("columns", np.array([1, 0, -1], np.int32), "columns must be below n"),
    ("weights", np.ones(2), "do not fit together"),
    ("sums", np.ones((3, 3)), r"sums must be \(n, 2\)"),
    ("sums", np.ones((2, 2)), r"sums must be \(n, 2\)"),
    ("slopes", np.ones(2), "slopes"),
    ("forces", np.ones((3, 1)), "forces as y"),
    ("threads", 0, "threads must be at least 1"),
]


def test_densities_that_do_not_fit_are_refused(refuses):
    good = {
        "starts": np.array([0, 1, 2, 3]),
        "columns": np.array([1, 0, 1], np.int32),
        "weights": np.ones(3),
        "y": np.random.default_rng(0).random((3, 2)),
        "a": 1.0,
        "b": 1.0,
        "sums": np.ones((3, 2)),
        "slopes": np.ones(3),
        "forces": np.ones((3, 2)),
        "threads": 1,
    }
    refuses(_native.radius_forces, good, CHANGES)
    del good["slopes"], good["forces"]
    refuses(_native.map_radii, good, [case for case in CHANGES if case[0] in good])

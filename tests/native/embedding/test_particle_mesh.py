"""spread and gather against products of scipy's B-splines of order 6."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

from lowland import _native
from support.cases import each
from support.kernels import each_kind

PITCH = 0.37
SHAPES = {1: (41,), 2: (23, 17), 3: (19, 9, 12)}
BUMP = BSpline.basis_element(np.arange(-3.0, 4.0))  # as a function of nodes
NOTHING = 0.0, 0.0  # a point's own share of the field: its mean, and its wave within a cell


def spread(Y, low, shape, threads=1, isa="auto"):
    charges = np.full(shape, np.nan, np.float32)
    _native.spread(Y, low, PITCH, charges, threads, isa)
    return charges


def gather(Y, low, field, own=NOTHING, threads=1, isa="auto"):
    potential, forces = np.full(len(Y), np.nan), np.full_like(Y, np.nan)
    _native.gather(Y, low, PITCH, *own, field, potential, forces, threads, isa)
    return potential, forces


def points(n, shape, dtype, seed=0):
    """Points all over the part of a grid that they may use, and where it begins."""
    rng = np.random.default_rng(seed)
    low = rng.standard_normal(len(shape))
    nodes = 2 + rng.random((n, len(shape))) * (np.array(shape) - 8)
    nodes[:20] = np.floor(nodes[:20])  # exactly at nodes, as far as the type can say
    return (low + PITCH * nodes).astype(dtype), low


def weights(Y, low, shape, slope_along=None):
    """(n, *shape): the product over the axes of the splines, or of their slopes along one."""
    product = np.ones((len(Y), *[1] * len(shape)))
    for k, size in enumerate(shape):
        x = (Y[:, k, None].astype(float) - low[k]) / PITCH - np.arange(size)
        factor = (BUMP.derivative() if k == slope_along else BUMP)(np.clip(x, -3, 3))
        product = product * factor.reshape(
            len(Y), *[size if j == k else 1 for j in range(len(shape))]
        )
    return product


@each("d", [1, 2, 3])
@each_kind
def test_charges_are_spread_by_splines(d, dtype, isa):
    Y, low = points(300, SHAPES[d], dtype)
    found = spread(Y, low, SHAPES[d], isa=isa)
    expected = weights(Y, low, SHAPES[d]).sum(axis=0)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert found.sum(dtype=np.float64) == pytest.approx(300, rel=1e-6)
    assert (found >= 0).all()


@each("d", [1, 2, 3])
@each_kind
def test_fields_are_read_off_by_splines_and_their_slopes(d, dtype, isa):
    Y, low = points(300, SHAPES[d], dtype)
    field = np.random.default_rng(1).standard_normal(SHAPES[d]).astype(np.float32)
    potential, forces = gather(Y, low, field, isa=isa)
    axes = tuple(range(1, d + 1))
    np.testing.assert_allclose(
        potential, (weights(Y, low, SHAPES[d]) * field).sum(axis=axes), atol=1e-5
    )
    for k in range(d):
        slope = (weights(Y, low, SHAPES[d], slope_along=k) * field).sum(axis=axes) / PITCH
        np.testing.assert_allclose(forces[:, k], -slope / 2, atol=2e-5)


@each("d", [1, 2, 3])
@each_kind
def test_a_points_own_share_is_taken_away(d, dtype, isa):
    """own(t) = mean + wave sum_k cos(2 pi t_k) of the potential, half its slope of the field's."""
    Y, low = points(300, SHAPES[d], dtype)
    field, mean, wave = np.zeros(SHAPES[d], np.float32), 0.9, 0.05
    potential, forces = gather(Y, low, field, (mean, wave), isa=isa)
    turn = 2 * np.pi * ((Y - low) / PITCH)
    np.testing.assert_allclose(potential, -mean - wave * np.cos(turn).sum(axis=1), atol=1e-5)
    slope = -wave * np.sin(turn) * 2 * np.pi / PITCH
    np.testing.assert_allclose(forces, slope / 4, atol=2e-5)


@each("d", [1, 2, 3])
@each_kind
def test_threads_do_not_change_a_bit(d, dtype, isa, same_for_threads):
    shape = {1: (700,), 2: (150, 20), 3: (60, 9, 12)}[d]  # many bands of nodes, unevenly full
    Y, low = points(9001, shape, dtype)
    Y[:3000] = Y[0]
    same_for_threads(lambda threads: spread(Y, low, shape, threads, isa))
    field = spread(Y, low, shape, isa=isa)
    same_for_threads(lambda threads: gather(Y, low, field, (1.0, 0.1), threads, isa))


@each_kind
def test_no_points_leave_an_empty_grid(dtype, isa):
    Y = np.empty((0, 2), dtype)
    assert (spread(Y, np.zeros(2), (9, 10), isa=isa) == 0).all()
    assert gather(Y, np.zeros(2), np.ones((9, 10), np.float32), isa=isa)[1].shape == (0, 2)


@each_kind
def test_the_smallest_grid_has_nine_nodes(dtype, isa):
    Y = np.array([[PITCH * 2.25]], dtype)
    found = spread(Y, np.zeros(1), (9,), isa=isa)
    np.testing.assert_allclose(found, BUMP(np.clip(2.25 - np.arange(9), -3, 3)), atol=1e-6)


@each("bad", ["np.nan", "np.inf", "-np.inf", "1e30", "-1e30"])
@each("d", [1, 2, 3])
def test_points_outside_the_grid_do_no_harm(d, bad, run_apart):
    code = f"""
y = np.random.default_rng(0).random((500, {d})); y[5] = {bad}; y[7] = -y[5]; low = np.zeros({d})
grid = np.zeros([17, 9, 11][:{d}], np.float32)
for kind in (np.float32, np.float64):
    with np.errstate(all="ignore"): z = y.astype(kind)
    _native.spread(z, low, 0.25, grid, 2)
    _native.gather(z, low, 0.25, 1.0, 0.1, grid, np.empty(500), np.empty_like(z), 2)
print("back")"""
    assert run_apart(code) == "back"


GOOD = {
    "y": np.zeros((3, 2)),
    "low": np.zeros(2),
    "pitch": 0.5,
    "own_mean": 1.0,
    "own_wave": 0.0,
    "field": np.zeros((9, 10), np.float32),
    "potential": np.zeros(3),
    "forces": np.zeros((3, 2)),
    "threads": 1,
}


CHANGES = [
    ("y", np.zeros((3, 1)), "as many axes as the map has columns"),
    ("y", np.zeros((3, 4)), "as many axes as the map has columns"),
    ("low", np.zeros(3), "as many axes as the map has columns"),
    ("pitch", 0.0, "pitch must be positive"),
    ("pitch", np.nan, "pitch must be positive"),
    ("field", np.zeros((9, 8), np.float32), "at least 9 nodes"),
    ("field", np.zeros((9, 9, 9), np.float32), "as many axes as the map has columns"),
    ("potential", np.zeros(4), r"potential must be \(n,\)"),
    ("forces", np.zeros((3, 3)), r"forces \(n, d\)"),
    ("threads", 0, "threads must be at least 1"),
]


def test_arrays_that_do_not_fit_are_refused(refuses):
    refuses(_native.gather, GOOD, CHANGES)

    def spread(y, low, pitch, field, threads, **_):
        _native.spread(y, low, pitch, field, threads)

    refuses(spread, GOOD, [case for case in CHANGES if case[0] not in ("potential", "forces")])

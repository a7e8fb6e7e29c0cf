"""repel_pairs and repel_from against sums over the whole matrix of pairs."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind

GAUSSIAN = "gaussian"
DECAYS = [0.5, 1.0, 3.0, 10.0, GAUSSIAN]


def repel(Y, decay, weights=None, threads=1, isa="auto"):
    potential, forces = np.full(len(Y), np.nan), np.full_like(Y, np.nan)
    weights = np.empty(0, Y.dtype) if weights is None else weights
    dof = 1.0 if decay == GAUSSIAN else decay
    _native.repel_pairs(Y, decay == GAUSSIAN, dof, weights, potential, forces, threads, isa)
    return potential, forces


def repel_from(Y_new, Y, decay, threads=1, isa="auto"):
    potential, forces = np.full(len(Y_new), np.nan), np.full_like(Y_new, np.nan)
    dof = 1.0 if decay == GAUSSIAN else decay
    _native.repel_from(Y_new, Y, decay == GAUSSIAN, dof, potential, forces, threads, isa)
    return potential, forces


def assert_within(found, expected, slack):
    for got, true, most in zip(found, expected, slack, strict=True):
        assert (np.abs(got - true) <= most).all()


@pytest.fixture
def assert_exact(exact_repulsion):
    """Whether sums over all pairs differ from the exact ones by their rounding only."""

    def check(Y, decay, weights=None, isa="auto"):
        expected = exact_repulsion(Y, Y, decay, weights, exclude_self=True)
        assert_within(repel(Y, decay, weights, isa=isa), *expected)

    return check


@each("d", [1, 2, 3, 4, 5, 50])
@each("sizes", [(1, 2, 7, 33), (160,)], ids=["small", "large"])
@each("decay", DECAYS)
@each_kind
def test_sums_equal_their_definition(decay, sizes, d, dtype, isa, irregular, assert_exact):
    for n in sizes:
        Y = irregular(n, d).astype(dtype)
        if n < 160:  # the weights are enough for the costly ones
            assert_exact(Y, decay, isa=isa)
        weights = np.random.default_rng(1).gamma(1.0, size=n).astype(dtype)
        assert_exact(Y, decay, weights, isa)


@each("d", [1, 2, 3, 6])
@each("decay", DECAYS)
@each_kind
def test_new_points_are_repelled_by_all(decay, d, dtype, isa, irregular, exact_repulsion):
    for m, n in [(1, 1), (3, 1), (1, 8), (6, 0), (0, 5), (45, 300)]:
        Y, Y_new = irregular(n, d).astype(dtype), irregular(m, d, seed=7).astype(dtype)
        Y_new[: min(m, n, 2)] = Y[: min(m, n, 2)]  # on top of others: they count
        assert_within(repel_from(Y_new, Y, decay, isa=isa), *exact_repulsion(Y_new, Y, decay))


def with_duplicates(Y):
    Y[::3] = Y[0]
    return Y


def with_outliers(Y):
    Y[::50] *= 1e6
    return Y


@each(
    "change",
    [with_duplicates, with_outliers, lambda Y: Y * 1e-8, lambda Y: Y * 1e4, lambda Y: 0 * Y],
    ids=["duplicates", "outliers", "tiny", "wide", "all equal"],
)
@each("d", [1, 2, 3, 5])
@each("decay", DECAYS)
@each_kind
def test_awkward_maps_are_as_precise(decay, d, change, dtype, isa, irregular, assert_exact):
    assert_exact(change(irregular(203, d)).astype(dtype), decay, isa=isa)


@each("n", [1100, 2500])
@each_kind
def test_long_sums_go_on_in_double(n, dtype, isa, irregular, exact_repulsion):
    # more than 128 panels of 8 or 4 points
    Y = irregular(n, 2).astype(dtype)
    some = slice(0, n, 61)
    expected, slack = exact_repulsion(Y[some], Y, 1.0)
    potential, forces = repel(Y, 1.0, isa=isa)
    assert_within((potential[some] + 1, forces[some]), expected, slack)


@each("decay", [0.01, 0.5, 1.0, 2.0, 7.5, 100.0, 1e6, GAUSSIAN])
@each_kind
def test_one_pair_at_any_distance_is_precise_to_a_few_units(decay, dtype, isa, similarity):
    """A pair alone shows K and G themselves, over all magnitudes of the distance."""
    distance = np.concatenate([[0], np.logspace(-12, 12, 4001)])[:, None].astype(dtype)
    K, F = repel_from(distance, np.zeros((1, 1), dtype), decay, isa=isa)
    r = distance.astype(np.longdouble)
    true_K, true_G, growth = similarity(r * r, decay)
    tiny, unit = np.finfo(dtype).tiny, np.finfo(dtype).eps / 2
    most = unit * 5 * growth
    assert (np.abs(K - true_K[:, 0]) <= (true_K * most)[:, 0] + tiny).all()
    assert (np.abs(F - true_G * r) <= true_G * r * most + tiny * (1 + r)).all()
    assert K[0] == 1
    assert F[0] == 0


@each("decay", [1.0, 3.0, GAUSSIAN])
@each_isa
def test_distances_whose_square_overflows_repel_not_at_all(decay, isa):
    Y = np.array([[0, 0], [1, 0], [3e20, 0], [-3e20, 2e20]], np.float32)
    potential, forces = repel(Y, decay, isa=isa)
    near_potential, near_forces = repel(Y[:2], decay, isa=isa)
    np.testing.assert_allclose(potential, [*near_potential, 0, 0], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(forces[:2], near_forces, rtol=1e-6)
    np.testing.assert_allclose(forces[2:], 0, atol=1e-15)


@each("d", [2, 5])
@each("decay", [1.0, 3.0, GAUSSIAN])
@each_kind
def test_threads_do_not_change_a_bit(decay, d, dtype, isa, irregular, same_for_threads):
    Y = irregular(501, d).astype(dtype)
    weights = np.random.default_rng(1).random(501).astype(dtype)
    for u in (None, weights):
        same_for_threads(lambda threads, u=u: repel(Y, decay, u, threads, isa))
    Y_new = irregular(130, d, seed=5).astype(dtype)
    same_for_threads(lambda threads: repel_from(Y_new, Y, decay, threads, isa))


@each("d", [1, 2, 3, 7])
@each_kind
def test_a_new_point_gets_the_same_bytes_alone_and_in_company(d, dtype, isa, irregular, same_alone):
    Y, Y_new = irregular(300, d).astype(dtype), irregular(10, d, seed=3).astype(dtype)
    same_alone(lambda rows: repel_from(Y_new[rows], Y, 1.0, isa=isa), range(10))


GOOD = {
    "y": np.zeros((4, 2)),
    "gaussian": False,
    "dof": 1.0,
    "weights": np.empty(0),
    "potential": np.zeros(4),
    "forces": np.zeros((4, 2)),
    "threads": 1,
}


CHANGES = [
    ("y", np.zeros((4, 0)), "must have a column"),
    ("dof", 0.0, "dof must be positive"),
    ("dof", np.inf, "dof must be positive"),
    ("dof", np.nan, "dof must be positive"),
    ("weights", np.zeros(3), "weights must be"),
    ("potential", np.zeros(3), "potential must be"),
    ("forces", np.zeros((4, 3)), "forces must be"),
    ("forces", np.zeros((3, 2)), "forces must be"),
    ("threads", 0, "threads must be at least 1"),
]


def test_arrays_that_do_not_fit_are_refused(refuses):
    refuses(_native.repel_pairs, GOOD, CHANGES)


def test_new_points_of_other_width_are_refused():
    with pytest.raises(ValueError, match="as many columns"):
        _native.repel_from(
            np.zeros((4, 2)), np.zeros((5, 3)), False, 1.0, np.zeros(4), np.zeros((4, 2)), 1
        )

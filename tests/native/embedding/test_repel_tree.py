"""repel_tree against exact sums: equal for angle 0, near for others."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind


def repel(Y, dof=1.0, angle=0.5, threads=1, isa="auto"):
    potential, forces = np.full(len(Y), np.nan), np.full_like(Y, np.nan)
    _native.repel_tree(Y, dof, angle, potential, forces, threads, isa)
    return potential, forces


def errors(Y, dof, angle, isa="auto"):
    """Relative errors of the forces (2-norm) and of the sum of the potentials."""
    potential, forces = np.empty(len(Y)), np.empty(Y.shape)
    _native.repel_pairs(Y.astype(float), False, dof, np.empty(0), potential, forces, 1)
    found = repel(Y, dof, angle, isa=isa)
    of_forces = np.linalg.norm(found[1] - forces) / np.linalg.norm(forces)
    return of_forces, abs(found[0].sum() / potential.sum() - 1)


@pytest.fixture
def assert_exact(exact_repulsion):
    """Whether sums differ from the exact ones by their rounding only."""

    def check(Y, dof, angle, isa="auto"):
        expected, slack = exact_repulsion(Y, Y, dof, exclude_self=True)
        for got, true, most in zip(repel(Y, dof, angle, isa=isa), expected, slack, strict=True):
            assert (np.abs(got - true) <= most).all()

    return check


def clusters(n, d, seed=0):
    """Clusters of unlike size, spread and number of points, and a few far outliers."""
    rng = np.random.default_rng(seed)
    centers, spread = 25 * rng.standard_normal((12, d)), rng.gamma(1.0, size=12)
    label = np.minimum(rng.geometric(0.2, size=n) - 1, 11)
    Y = centers[label] + spread[label, None] * rng.standard_normal((n, d))
    Y[:: n // 4] *= 5
    return Y


@each("dof", [0.5, 1.0, 3.0, 10.0])
@each("d", [1, 2, 3])
@each_kind
def test_angle_zero_gives_the_exact_sums(d, dof, dtype, isa, irregular, assert_exact):
    for n in (1, 2, 7, 8, 9, 33, 200):
        assert_exact(irregular(n, d).astype(dtype), dof, 0.0, isa)
    assert_exact(clusters(500, d).astype(dtype), dof, 0.0, isa)


@each("dof", [0.5, 1.0, 3.0])
@each("d", [1, 2, 3])
@each_kind
def test_a_small_angle_gives_precise_sums(d, dof, dtype, isa):
    for seed in range(2):
        of_forces, of_potential = errors(clusters(1500, d, seed).astype(dtype), dof, 0.2, isa)
        assert of_forces < 1e-3
        assert of_potential < 1e-4


@each("dof", [0.5, 1.0, 3.0])
@each("d", [1, 2, 3])
def test_a_larger_angle_costs_precision_but_not_much(d, dof):
    Y = clusters(1500, d)
    fine, coarse = errors(Y, dof, 0.2), errors(Y, dof, 0.6)
    assert 1e-9 < fine[0] < coarse[0] < 0.01
    assert 1e-9 < fine[1] < coarse[1] < 1e-3


@each("dof", [1e2, 1e6, 1e9])
@each_isa
def test_many_degrees_of_freedom_lose_no_digits(dof, isa):
    Y = (0.02 * clusters(1500, 2)).astype(np.float32)
    of_forces, of_potential = errors(Y, dof, 0.3, isa)
    assert of_forces < 3e-3
    assert of_potential < 2e-4


@each("dof", [1.0, 3.0])
@each_isa
def test_distances_whose_square_overflows_repel_not_at_all(dof, isa):
    Y = clusters(300, 2).astype(np.float32)
    far = np.array([[3e20, 0], [3e20, 1e17], [-3e20, 2e20]], np.float32)
    potential, forces = repel(np.concatenate([Y, far]), dof, isa=isa)
    expected = repel(Y, dof, 0.0, isa=isa)
    np.testing.assert_allclose(potential, [*expected[0], 0, 0, 0], rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(forces[:-3], expected[1], atol=1e-3)
    np.testing.assert_allclose(forces[-3:], 0, atol=1e-15)


@each("angle", [0.0, 0.5])
@each("d", [1, 2, 3])
@each_kind
def test_duplicates_repel_each_other(d, angle, dtype, isa, irregular, assert_exact):
    Y = irregular(40, d)[np.random.default_rng(0).integers(40, size=600)].astype(dtype)
    if angle == 0:
        assert_exact(Y, 1.0, angle, isa)
    else:
        assert max(errors(Y, 1.0, angle, isa)) < 0.03
    for n in (1, 2, 13):
        potential, forces = repel(np.repeat(Y[:1], n, axis=0), angle=angle, isa=isa)
        assert (potential == n - 1).all()
        assert (forces == 0).all()


@each_kind
def test_very_many_equal_points_are_no_quadratic_work(dtype, isa):
    n = 300_000
    Y = np.full((n, 2), 0.1, dtype)
    Y[-1] = 1.1
    potential, forces = repel(Y, angle=0.5, isa=isa)
    np.testing.assert_allclose(potential[:-1], n - 2 + 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(potential[-1], (n - 1) / 3, rtol=1e-6)
    np.testing.assert_allclose(forces[-1], (n - 1) / 9, rtol=1e-6)


@each("d", [1, 2, 3])
@each_isa
def test_points_nearer_than_the_finest_cell_share_a_chunk(d, isa, irregular, assert_exact):
    Y = irregular(300, d)
    Y[:-1] = 0.5 + 1e-3 * Y[:-1]
    Y[-1] = 1e9  # the finest cell is wider than all the others together
    assert_exact(Y, 1.0, 0.0, isa)
    assert max(errors(Y, 1.0, 0.5, isa)) < 1e-9


@each("scale", [1e-8, 1e4])
@each("d", [1, 2, 3])
@each_kind
def test_the_unit_of_the_map_does_not_matter(d, scale, dtype, isa, assert_exact):
    Y = (scale * clusters(400, d)).astype(dtype)
    assert_exact(Y, 1.0, 0.0, isa)
    assert max(errors(Y, 1.0, 0.3, isa)) < 0.02


@each("threads", [2, 3])
@each("dof", [1.0, 3.0])
@each("d", [1, 2, 3])
@each_kind
def test_threads_do_not_change_a_bit(d, dof, threads, dtype, isa):
    Y = clusters(2003, d).astype(dtype)
    for got, true in zip(repel(Y, dof, 0.5, threads, isa), repel(Y, dof, 0.5, 1, isa), strict=True):
        assert got.tobytes() == true.tobytes()


@each_kind
def test_results_come_in_the_order_of_the_rows(dtype, isa):
    Y = clusters(700, 2).astype(dtype)  # all different: the order along the curve is the same
    shuffled = np.random.default_rng(0).permutation(700)
    for got, true in zip(repel(Y[shuffled], isa=isa), repel(Y, isa=isa), strict=True):
        assert np.array_equal(got, true[shuffled])


@each_kind
def test_the_input_is_left_alone_and_may_be_empty(dtype, isa):
    Y = clusters(50, 2).astype(dtype)
    before = Y.copy()
    repel(Y, isa=isa)
    assert np.array_equal(Y, before)
    assert repel(Y[:0], isa=isa)[1].shape == (0, 2)


@each("bad", ["np.nan", "np.inf", "1e308", "5e-324"])
def test_numbers_that_make_no_map_do_no_harm(bad, run_apart):
    code = f"y = np.random.default_rng(0).random((99, 2)); y[5] = {bad}; y[7] = -y[5]\n"
    call = "_native.repel_tree(y, 1.0, 0.5, np.empty(99), np.empty((99, 2)), 2); print('back')"
    assert run_apart(code + call) == "back"


GOOD = {
    "y": np.zeros((4, 2)),
    "dof": 1.0,
    "angle": 0.5,
    "potential": np.zeros(4),
    "forces": np.zeros((4, 2)),
    "threads": 1,
}


CHANGES = [
    ("dof", -1.0, "dof must be positive"),
    ("angle", -0.1, "angle must be from 0 to 1"),
    ("angle", 1.1, "angle must be from 0 to 1"),
    ("angle", np.nan, "angle must be from 0 to 1"),
    ("potential", np.zeros(5), "potential must be"),
    ("forces", np.zeros((4, 1)), "forces must be"),
    ("threads", 0, "threads must be at least 1"),
]


def test_arrays_that_do_not_fit_are_refused(refuses):
    refuses(_native.repel_tree, GOOD, CHANGES)


def test_maps_of_many_columns_are_refused():
    with pytest.raises(ValueError, match="1, 2 or 3 columns"):
        _native.repel_tree(np.zeros((4, 4)), 1.0, 0.5, np.zeros(4), np.zeros((4, 4)), 1)

"""fuzzy_weights, fuzzy_repel and fuzzy_sample against their definitions in numpy."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind

# --- fuzzy_weights ----------------------------------------------------------------------------


def weigh(D, target, connectivity=1.0, mean=0.0, threads=1, isa="auto"):
    weights = np.full_like(D, np.nan)
    nearest, widths = np.full(len(D), np.nan), np.full(len(D), np.nan)
    _native.fuzzy_weights(D, target, connectivity, mean, weights, nearest, widths, threads, isa)
    return weights, nearest, widths


def weigh_row(distances, target, connectivity, mean):
    """The definition for one row: rho, sigma and the memberships."""
    d = distances[np.isfinite(distances)].astype(float)
    positive = np.sort(d[d > 0])
    rho = 0.0
    if len(positive) >= connectivity:
        rho = np.interp(connectivity, np.arange(len(positive) + 1), [0.0, *positive])
    elif len(positive):
        rho = positive[-1]
    over = np.maximum(d - rho, 0)
    least = 1e-3 * (d.sum() / (len(d) + 1) if rho > 0 else mean)
    if (over == 0).sum() >= target or not (over > 0).any():
        sigma = 0.0
    elif len(d) <= target:
        sigma = math.inf
    else:
        bounds = 1e-9 * over.max(), 1e9 * over.max()
        sigma = brentq(lambda s: np.exp(-over / s).sum() - target, *bounds, xtol=1e-300, rtol=1e-14)
    sigma = max(sigma, least)
    w = np.zeros(len(distances))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(over == 0, 1.0, np.exp(-over / sigma))
    w[np.isfinite(distances)] = found
    return w, rho, sigma


def lists(n, k, dtype, seed=0):
    """Ascending distances of very different rows: skewed, tied, with zeros, with missing ones."""
    rng = np.random.default_rng(seed)
    D = np.sort(rng.gamma(0.7, size=(n, k)) * 10 ** rng.uniform(-3, 3, (n, 1)), axis=1)
    D[1::7, : k // 2] = 0
    D[2::7, : max(1, k - 2)] = D[2::7, :1]
    D[3::7] = D[3::7, :1]
    D[4::7, k // 3 + 1 :] = np.inf
    D[5::7, 1:] = np.inf
    D[6::21] = 0
    return D.astype(dtype)


@each("connectivity", [0.0, 0.5, 1.0, 1.5, 3.0])
@each("k", [1, 2, 4, 14, 40])
@each_kind
def test_memberships_equal_their_definition(k, connectivity, dtype, isa):
    D, target = lists(63, k, dtype), math.log2(k + 1)
    found = weigh(D, target, connectivity, 2.5, isa=isa)
    for i, row in enumerate(D):
        w, rho, sigma = weigh_row(row, target, connectivity, 2.5)
        assert found[1][i] == pytest.approx(rho, rel=1e-12)
        # all memberships rise with sigma, so none is further off than the sum, which is within 1e-7
        np.testing.assert_allclose(found[0][i], w, atol=1e-7 + 2 * np.finfo(dtype).eps)
        assert found[2][i] == pytest.approx(sigma, rel=1e-4)


@each_isa
def test_widths_are_those_of_another_implementation(isa):
    """Published tests of uwot for the rows (1.1, 1.2, 1.3, 1.4) and (0, 0, 0.5, 0.8).

    The first number of a row there is the row itself: it counts neither in the sum, so that the
    target of the first row is larger by its membership of 1, nor, if it is 0, as a neighbor.
    """
    first = np.array([[1.1, 1.2, 1.3, 1.4]])
    for k, sigma in [(2, 0.16410065), (3, 0.2959671)]:
        _, nearest, widths = weigh(first, 1 + math.log2(k), isa=isa)
        assert nearest[0] == 1.1
        assert widths[0] == pytest.approx(sigma, abs=1e-5)
    _, nearest, widths = weigh(np.array([[0.0, 0.5, 0.8]]), 1.0, isa=isa)
    assert nearest[0] == 0.5
    assert widths[0] == pytest.approx(0.000325)


@each_kind
def test_extreme_distances_have_finite_memberships(dtype, isa):
    D = np.array([[1e-12, 1, 1e6, 1e12], [0, 0, 0, 1e12], [1e-30, 2e-30, 3e-30, 4e-30], [0] * 4])
    weights, nearest, widths = weigh(D.astype(dtype), 1.5, isa=isa)
    for found in (weights, nearest, widths):
        assert np.isfinite(found).all()
    assert (weights[:, 0] == 1).all()
    nothing = weigh(np.full((3, 4), np.inf, dtype), 1.5, isa=isa)
    assert (nothing[0] == 0).all()
    assert (nothing[1] == 0).all()


@each("n", [0, 1, 2, 9, 700])
@each_kind
def test_threads_and_company_change_no_membership(n, dtype, isa, same_for_threads, same_alone):
    D = lists(n, 14, dtype)
    same_for_threads(lambda threads: weigh(D, 3.9, 1.5, threads=threads, isa=isa))
    same_alone(lambda rows: weigh(D[rows], 3.9, 1.5, isa=isa), range(0, n, 97))


# --- fuzzy_repel and fuzzy_sample -------------------------------------------------------------

LAWS = [(1.577, 0.895, 0.05), (0.3, 2.6, 0.4), (12.0, 0.2, 0.003)]  # a, b, soft
FIRST, PER_OCTAVE = -20, 3
HEIGHTS = np.random.default_rng(9).gamma(1.0, size=(34 + 20) * 3 + 1).astype(np.float32)
HEIGHTS[-1] = 0  # beyond the table the potential is 0


def repel(points, y, same, law, threads=1, isa="auto", potential=True):
    forces = np.full_like(points, np.nan)
    heights = np.full(len(points), np.nan) if potential else None
    _native.fuzzy_repel(
        points, y, same, *law, HEIGHTS, FIRST, PER_OCTAVE, heights, forces, threads, isa
    )
    return forces, heights


def sample(y, seed, draws, law, threads=1, isa="auto", heights=HEIGHTS):
    forces, potential = np.full_like(y, np.nan), np.full(len(y), np.nan)
    _native.fuzzy_sample(
        y, seed, draws, *law, heights, FIRST, PER_OCTAVE, potential, forces, threads, isa
    )
    return forces, potential


def pair_terms(points, y, law):
    """Forces (m, n, d) and potentials (m, n) of all pairs, and the rounding of a force's factor."""
    a, b, soft = law
    gap = points.astype(float)[:, None] - y.astype(float)
    u = (gap**2).sum(axis=2)
    bounded = np.clip(u, 1e-12, 1e12)
    push = 2 * b / ((soft + bounded) * (1 + np.minimum(a * bounded**b, 1e18)))
    with np.errstate(divide="ignore"):
        places = (np.log2(u) - FIRST) * PER_OCTAVE
    height = np.interp(places, np.arange(len(HEIGHTS)), HEIGHTS)
    # x^b = 2^(b log2 x): an error of the exponent is one of the power, relatively
    units = 60 + 4 * b * np.abs(np.log2(bounded)).max()
    return push[:, :, None] * gap, height, units


@each("law", LAWS)
@each("same", [True, False])
@each("n", [1, 2, 9, 70])
@each("d", [1, 2, 3, 5])
@each_kind
def test_repulsion_is_the_sum_over_all_pairs(d, n, same, law, dtype, isa, irregular):
    y = irregular(n, d).astype(dtype)
    points = y if same else irregular(n + 3, d, seed=1).astype(dtype)
    if n > 2 and not same:
        points[0] = y[0]  # no distance
    if n > 2:
        y[2] = y[1]
    forces, potential = repel(points, y, same, law, isa=isa)
    terms, heights, units = pair_terms(points, y, law)
    if same:
        heights[np.arange(n), np.arange(n)] = 0
    size = np.abs(terms).sum(axis=1) + np.abs(points).max() * 2 * law[1] / law[2] * (n > 2)
    slack = (units + n) * np.finfo(dtype).eps * size
    assert (np.abs(forces - terms.sum(axis=1)) <= slack).all()
    np.testing.assert_allclose(potential, heights.sum(axis=1), rtol=1e-6, atol=1e-6)
    without, _ = repel(points, y, same, law, isa=isa, potential=False)
    assert without.tobytes() == forces.tobytes()


@each("law", LAWS)
@each("d", [1, 2, 3, 5])
@each_kind
def test_extreme_distances_repel_by_finite_forces(d, law, dtype, isa):
    y = np.zeros((5, d), dtype)
    y[:, 0] = [0, 1e-12, 1, 1e6, 1e12]
    for forces, potential in (repel(y, y, True, law, isa=isa), sample(y, 1, 9, law, isa=isa)):
        assert np.isfinite(forces).all()
        assert np.isfinite(potential).all()
    at_zero, _ = repel(y[:1], y[:1], False, law, isa=isa)
    assert (at_zero == 0).all()


@each("d", [1, 2, 3, 5])
@each_kind
def test_threads_do_not_change_a_bit_of_the_repulsion(d, dtype, isa, irregular, same_for_threads):
    y = irregular(300, d).astype(dtype)
    same_for_threads(lambda threads: repel(y, y, True, LAWS[0], threads, isa))
    same_for_threads(lambda threads: sample(y, 7, 20, LAWS[0], threads, isa))


def mixed(x):
    """SplitMix64 of Steele, Lea & Flood, for arrays of uint64."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def drawn(n, seed, draws):
    """Who is drawn for each point (n, draws)."""
    key = mixed(np.uint64(seed) ^ mixed(np.arange(n, dtype=np.uint64)))[:, None]
    with np.errstate(over="ignore"):
        words = mixed(key + np.arange(draws, dtype=np.uint64)) >> np.uint64(32)
    numbers = ((words * np.uint64(n - 1)) >> np.uint64(32)).astype(int)
    return numbers + (numbers >= np.arange(n)[:, None])


@each("draws", [1, 3, 8, 21])
@each("n", [2, 9, 70])
@each("d", [1, 2, 3, 5])
@each_kind
def test_drawn_pairs_are_those_of_the_counter(d, n, draws, dtype, isa, irregular):
    y, seed, law = irregular(n, d).astype(dtype), 2**63 + 12345, LAWS[0]
    forces, potential = sample(y, seed, draws, law, isa=isa)
    terms, heights, units = pair_terms(y, y, law)
    others = drawn(n, seed, draws)
    chosen = np.take_along_axis(terms, others[:, :, None], axis=1) * (n - 1) / draws
    slack = (units + draws) * np.finfo(dtype).eps * np.abs(chosen).sum(axis=1)
    assert (np.abs(forces - chosen.sum(axis=1)) <= slack).all()
    expected = np.take_along_axis(heights, others, axis=1).sum(axis=1) * (n - 1) / draws
    np.testing.assert_allclose(potential, expected, rtol=1e-4, atol=1e-4)


def test_a_point_is_never_drawn_for_itself(irregular):
    y = irregular(40, 4)
    heights = np.zeros_like(HEIGHTS)
    heights[0] = 1  # no distance at all
    for seed in range(50):
        assert (sample(y, seed, 100, LAWS[0], heights=heights)[1] == 0).all()
    assert set(drawn(40, 3, 2000)[7]) == set(range(40)) - {7}  # but every other one


# --- refusals ---------------------------------------------------------------------------------

WEIGHTS = {
    "distances": np.ones((3, 4)),
    "target": 2.0,
    "connectivity": 1.0,
    "mean_distance": 0.0,
    "weights": np.ones((3, 4)),
    "nearest": np.ones(3),
    "widths": np.ones(3),
    "threads": 1,
}
LAW = {"a": 1.0, "b": 1.0, "soft": 0.1, "heights": HEIGHTS, "first": FIRST, "per_octave": 3}
OUT = {"potential": np.ones(3), "forces": np.ones((3, 2)), "threads": 1}
REPEL = {"points": np.ones((3, 2)), "y": np.ones((3, 2)), "same": True, **LAW, **OUT}
SAMPLE = {"y": np.ones((3, 2)), "seed": 0, "draws": 1, **LAW, **OUT}


CHANGES = [
    ("weights", np.ones((3, 3)), "weights must be as distances"),
    ("nearest", np.ones(2), "nearest and widths"),
    ("widths", np.ones(4), "nearest and widths"),
    ("target", 0.0, "target must be positive"),
    ("target", np.nan, "target must be positive"),
    ("connectivity", -1.0, "not negative"),
    ("mean_distance", -1.0, "not negative"),
    ("threads", 0, "threads must be at least 1"),
]


def test_weights_that_do_not_fit_are_refused(refuses):
    refuses(_native.fuzzy_weights, WEIGHTS, CHANGES)


CHANGED_LAWS = [
    ("a", 0.0, "a, b and soft must be positive"),
    ("a", np.nan, "a, b and soft must be positive"),
    ("a", 1e39, "a, b and soft must be positive"),
    ("b", -1.0, "a, b and soft must be positive"),
    ("b", 3.1, "b at most 3"),
    ("soft", 0.0, "a, b and soft must be positive"),
    ("heights", np.ones(1, np.float32), "at least two heights"),
    ("per_octave", 0, "at least two heights"),
    ("forces", np.ones((3, 3)), "forces"),
    ("forces", np.ones((2, 2)), "forces"),
    ("potential", np.ones(2), "potential"),
    ("threads", 0, "threads must be at least 1"),
]


def test_laws_and_results_that_do_not_fit_are_refused(refuses):
    refuses(_native.fuzzy_repel, REPEL, CHANGED_LAWS)
    refuses(_native.fuzzy_sample, SAMPLE, CHANGED_LAWS)


def test_points_that_do_not_fit_are_refused(refuses):
    changes = [
        ("y", np.ones((4, 2)), "one number of rows"),
        ("points", np.ones((3, 3)), "as many columns"),
    ]
    refuses(_native.fuzzy_repel, REPEL, changes)
    refuses(_native.fuzzy_sample, SAMPLE, [("draws", 0, "one draw")])
    one = {"y": np.ones((1, 2)), "forces": np.ones((1, 2)), "potential": np.ones(1)}
    with pytest.raises(ValueError, match="at least two points"):
        _native.fuzzy_sample(**{**SAMPLE, **one})

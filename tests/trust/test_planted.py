"""Planted truths: what the diagnosis says of errors and structures that are known.

The targets are rates over many maps; ``benchmarks/trust.py --planted`` measures them with 25
repeats. Here are few maps with fixed seeds. A bound on the number of failures is the smallest that
a diagnosis exactly at its target keeps in 99 of 100 such tests.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binom

import lowland
from lowland.metrics import gap_test, inner_gaps, islands, point_home, strangers
from lowland.metrics.home import KINDS
from lowland.trust import trust
from support import planted_truths as plants
from support.cases import each

N = 600
# Here the 75 nearest are an eighth of all points, a disc of a third of the width. Points that are
# swapped within it are not errors by definition.
FAR = 0.35


def allowed(runs, rate):
    """The failures that a rate causes at most in 99 of 100 such tests."""
    return int(binom(runs, rate).ppf(0.99))


@pytest.fixture(scope="module")
def mapped():
    """A function (name, k, seed) -> data in k groups, groups, map; every map is made once."""
    known = {}

    def make(name, k, seed):
        if (name, k, seed) not in known:
            X, group = plants.good_data(name, N, k, np.random.default_rng([10, k, seed]))
            known[name, k, seed] = X, group, plants.MAPS[name](X, seed)
        return known[name, k, seed]

    return make


def test_swapped_points_are_found_and_sent_home(mapped):
    called = []
    for name, share in itertools.product(plants.MAPS, (0.01, 0.05)):
        areas, errors = [], []
        for seed in range(2):
            X, _, before = mapped(name, 4, seed)
            Y, moved = plants.swapped(before, share, np.random.default_rng(seed), FAR)
            assert moved.sum() == max(2, 2 * round(share * N / 2))
            found = point_home(X, Y)
            areas.append(plants.auc(found.missing, moved))
            error = np.linalg.norm(found.home - before, axis=1)[moved]
            errors.append(error / plants.width(before))
            misplaced = found.kind == KINDS.index("misplaced")
            called.append(misplaced[moved])
            # wrong arrows are fewer than the least that is planted, or none could be believed
            assert misplaced[~moved].mean() < 0.01
        assert np.mean(areas) >= 0.99, name
        assert np.median(np.concatenate(errors)) <= 0.03, name
    # Arrows point home from .81 of the points in the prototype's worst case; here are 288 points,
    # whose share has a standard error.
    every = np.concatenate(called)
    assert every.mean() > 0.81 - 3 * np.sqrt(0.81 * 0.19 / len(every))


def test_a_group_that_is_cut_in_the_map_is_one_in_the_data(mapped):
    false, true = [], []
    for name in plants.MAPS:
        areas = []
        for seed in range(3):
            X, group, before = mapped(name, 4, seed % 2)
            rng = np.random.default_rng([20, seed])
            members = group == seed
            Y, half = plants.cut_apart(before, members, rng)
            found = trust(X, Y)
            truth = np.where(half, 4, group)
            gaps = plants.apart(found.gaps, found.island_of, truth)
            halves = [gap for gap, *pair in gaps if set(pair) == {seed, 4}]
            assert halves, name  # the halves are islands, and the test has found that they belong
            false += halves
            true += [gap for gap, one, other in gaps if one != other and {one, other} != {seed, 4}]
            torn = plants.torn(found.neighbors, members, half)
            areas.append(plants.auc(found.points.missing, torn))
        assert np.mean(areas) >= 0.95, name
    wrong = sum(gap.verdict != "not in the data" for gap in false)
    assert wrong <= allowed(len(false), 0.05)
    assert len(true) > 20
    denied = sum(gap.verdict == "not in the data" for gap in true)
    assert denied <= allowed(len(true), 0.05)
    # groups 9 deviations apart: real gaps are called so in 90 % of the cases from 5 on
    assert sum(gap.verdict != "real" for gap in true) <= allowed(len(true), 0.1)


def test_true_gaps_outlast_a_few_misplaced_points(mapped):
    for name in ("t-SNE", "PCA"):
        X, group, before = mapped(name, 4, 0)
        Y, _ = plants.swapped(before, 0.04, np.random.default_rng(0), FAR)
        found = trust(X, Y)
        gaps = plants.apart(found.gaps, found.island_of, group)
        assert all(gap.verdict != "not in the data" for gap, one, other in gaps if one != other)


def test_two_groups_at_one_place_are_seen_as_two(mapped):
    for name in plants.MAPS:
        areas = []
        for seed in range(2):
            separate = name in ("t-SNE", "PCA")
            if separate:
                X, group, before = mapped(name, 4, seed)
            else:
                X, group = plants.patches(N, 10, np.random.default_rng([30, seed]))
                before = plants.MAPS[name](X, seed)
            Y = plants.overlaid(before, group == 0, group == 1)
            pressed = plants.pressed(Y, group)
            assert pressed.sum() > 30
            asked = pressed | (group == 2) | ((group == 3) & separate)
            areas.append(plants.auc(strangers(X, Y)[asked], pressed[asked]))
            inner = inner_gaps(X, np.choose(group, [1, 1, 2, 3]))
            assert inner[1].cut < 0.3, name
            if separate:
                assert inner[2].verdict != "real", name
                found = trust(X, Y)
                both = np.bincount(found.island_of[group <= 1]).argmax()
                assert found.islands[both - 1].inner.verdict == "real", name
                merged = next(s for s in found.sentences if s.question == "merged")
                assert merged.level == "caution"
        assert np.mean(areas) >= 0.98, name


def test_maps_of_noise_show_no_real_gap():
    cases = [
        (kind, d, perplexity)
        for place, (kind, d) in enumerate(itertools.product(plants.NOISE, (2, 5, 10, 50)))
        for perplexity in ((2, 30) if place % 2 else (5, 100))
    ]
    found, seen = [], 0
    for seed, (kind, d, perplexity) in enumerate(cases):
        X = plants.noise(kind, 250, d, np.random.default_rng([40, seed]))
        Y = lowland.TSNE(2, perplexity=perplexity, random_state=seed).fit_transform(X)
        found.append(gap_test(X, islands(Y), Y))
        seen += len(found[-1])
    assert seen > 30  # there are gaps to be judged: small perplexities break noise into islands
    assert plants.real_shares(found) * len(cases) <= allowed(len(cases), 0.05)
    # a diagnosis that never decided would keep that rate, too: most gaps are denied
    called = [gap.verdict == "not in the data" for gaps in found for gap in gaps]
    assert np.mean(called) > 0.5


def test_other_maps_of_noise_show_no_real_gap():
    found = []
    for name, kind, d in itertools.product(
        ("PCA", "Isomap", "LaplacianEigenmaps"), plants.NOISE, (2, 10)
    ):
        X = plants.noise(kind, 250, d, np.random.default_rng([41, d]))
        Y = plants.MAPS[name](X, 0)
        found.append(gap_test(X, islands(Y), Y))
    assert plants.real_shares(found) * len(found) <= allowed(len(found), 0.05)


@each("d", [2, 5, 10])
def test_two_gaussians_are_one_when_near_and_two_when_far(d):
    """One Gaussian that is cut in the middle is cut as its references are.

    All counts have one expectation then. The reference is the least of seven (a Gaussian, three
    axes on each side), so that the mean cut is at least 1; and the least of seven numbers of a
    relative deviation s is on average at most s sqrt(2 log 7) below their mean.
    """
    runs, medians = 8, []
    for delta in (0, 2, 4, 5, 6):
        rng = np.random.default_rng([50, d])
        cuts = [gap_test(*plants.two_gaussians(400, d, delta, rng))[0].cut for _ in range(runs)]
        medians.append(np.median(cuts))
        if delta == 0:
            spread, error = np.std(cuts, ddof=1), 3 * np.std(cuts, ddof=1) / np.sqrt(runs)
            most = 1 / (1 - spread * np.sqrt(2 * np.log(7)))
            assert 1 - error < np.mean(cuts) < most + error
            assert min(cuts) > 0.5  # from there on a gap is not in the data
        if delta >= 5:
            assert sum(cut >= 0.3 for cut in cuts) <= allowed(runs, 0.1)
    assert medians == sorted(medians, reverse=True)


def test_the_interval_of_one_half_holds_the_other_half():
    # How many islands both halves have depends on details of their maps, so on the processor.
    # Tables are drawn until there are enough to judge; when this ends does not depend on coverage.
    covered, seed = [], 0
    while len(covered) < 9 and seed < 8:
        rng = np.random.default_rng([60, seed])
        X, group = plants.groups(480, 5, 4, 5.0, rng)
        half = rng.permutation(480) < 240
        found = [stability_of(X[side], group[side], seed) for side in (half, ~half)]
        for key in found[0].keys() & found[1].keys():
            one, other = found[0][key], found[1][key]
            covered.append(one.low - 1e-9 <= other.jaccard <= one.high + 1e-9)
        seed += 1
    assert len(covered) >= 9
    assert covered.count(False) <= allowed(len(covered), 0.15)


def stability_of(X, group, seed):
    """The stability of each island by the groups that it holds most of."""
    make_map = plants.MAPS["t-SNE"]
    found = trust(X, make_map(X, seed), make_map=make_map, random_state=seed)
    held = {}
    for island in found.islands:
        inside = np.bincount(group[found.island_of == island.number], minlength=4)
        held[tuple(np.flatnonzero(2 * inside > np.bincount(group)).tolist())] = island.stability
    return held


def test_an_impostor_has_the_same_ranks_and_no_contrast(mapped):
    X, _, Y = mapped("t-SNE", 4, 0)
    D = cdist(X, X)
    c = 2000.0
    true, false = (trust(d, Y, metric="precomputed") for d in (D, plants.impostor(D, c)))
    for one, other in zip(true.points[:5], false.points[:5], strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(true.neighbors, false.neighbors)
    # D^2 is about 10 within a group and 91 or more between groups: 1 - sqrt(10 / 91) = .67, where
    # .5 is what Kaufman & Rousseeuw call a reasonable structure
    assert true.contrast.silhouette > 0.5
    # all distances are between sqrt(c) and the largest, and so are all means of them
    assert abs(false.contrast.silhouette) < 1 - np.sqrt(c / (c + D.max() ** 2))
    levels = [(sentence.question, sentence.level) for sentence in false.sentences]
    assert ("contrast", "caution") in levels or ("gaps", "serious") in levels
    # the same as columns: each row has an axis of its own
    wide = trust(np.hstack([X, np.sqrt(c / 2) * np.eye(N)]), Y)
    assert wide.contrast.silhouette == pytest.approx(false.contrast.silhouette)


@pytest.mark.slow
def test_verdicts_do_not_depend_on_position_size_and_order(mapped):
    for name in plants.MAPS:
        X, group, before = mapped(name, 4, 1)
        rng = np.random.default_rng(70)
        Y, _ = plants.swapped(before, 0.02, rng)
        Y, _ = plants.cut_apart(Y, group == 1, rng)
        first = trust(X, Y)
        assert {gap.verdict for gap in first.gaps} >= {"real", "not in the data"}
        for how, (order, Z) in plants.changed(Y, rng).items():
            same = plants.same_verdicts(first, trust(X[order], Z), order)
            assert all(same.values()), (name, how, same)


def test_threads_seeds_and_inputs(mapped):
    X, _, Y = mapped("t-SNE", 4, 0)
    X.flags.writeable = Y.flags.writeable = False

    def make_map(rows, seed):
        return lowland.PCA(2).fit_transform(rows)

    one, two = (trust(X, Y, make_map=make_map, n_jobs=jobs) for jobs in (1, 2))
    for a, b in zip(one.points[:5], two.points[:5], strict=True):
        assert a.tobytes() == b.tobytes()
    assert one.to_dict() == two.to_dict()
    assert one.stability.points.tobytes() == two.stability.points.tobytes()

"""Whether islands come again in other maps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t

from lowland.errors import LowlandError
from lowland.metrics import island_stability
from support.cases import each


def best_jaccard(inside, other):
    """By sets, from the definition; rows that the other map does not have are left out."""
    present = {i for i, code in enumerate(other) if code >= 0}
    mine = {i for i in present if inside[i]}
    groups = [{i for i in present if other[i] == code} for code in set(other) - {-1, 0}]
    return max((len(mine & group) / len(mine | group) for group in groups), default=0.0)


def parts(rng, n, m, islands):
    """Islands of maps of parts of the rows: some rows have changed, numbers are others."""
    others = []
    for _ in range(m):
        codes = np.where(rng.random(n) < 0.2, rng.integers(0, 5, n), islands)
        codes = np.array([0, 3, 1, 4, 2, 5])[codes]
        codes[rng.random(n) < 0.3] = -1
        others.append(codes)
    return others


@each("seed", range(5))
def test_the_mean_of_the_best_jaccard_index(seed):
    rng = np.random.default_rng(seed)
    islands = rng.integers(0, 5, 300)
    others = parts(rng, 300, 3, islands)
    found = island_stability(islands, others)
    assert [each.island for each in found] == [1, 2, 3, 4]
    for each_island in found:
        inside = islands == each_island.island
        values = [best_jaccard(inside.tolist(), other.tolist()) for other in others]
        assert each_island.jaccard == pytest.approx(np.mean(values), rel=1e-12)
        assert 0 <= each_island.low <= each_island.jaccard <= each_island.high <= 1


def test_verdicts_are_hennigs_limits():
    islands = np.ones(100, int)
    for kept, verdict in ((76, "stable"), (75, "doubtful"), (60, "doubtful"), (59, "unstable")):
        other = np.where(np.arange(100) < kept, 1, 2)
        assert island_stability(islands, [other])[0].verdict == verdict


def test_numbers_and_order_do_not_matter():
    rng = np.random.default_rng(0)
    islands = rng.integers(0, 4, 200)
    others = parts(rng, 200, 3, islands)
    first = island_stability(islands, others)
    assert island_stability(islands, [np.where(o > 0, 6 - o, o) for o in others]) == first
    order = rng.permutation(200)
    assert island_stability(islands[order], [o[order] for o in others]) == first


def test_the_interval_widens_with_the_rows_that_maps_share():
    """Deviations between maps that share rows are smaller than between maps of new rows."""
    n, rng = 400, np.random.default_rng(1)
    islands = np.ones(n, int)
    torn = [np.where(rng.random(n) < share, 1, 2) for share in (0.8, 0.9, 0.85)]
    for shared in (0, 100):
        others = []
        for number, codes in enumerate(torn):
            rows = np.r_[:shared, shared + 100 * number : shared + 100 * (number + 1)]
            others.append(np.full(n, -1))
            others[-1][rows] = codes[rows]
        found = island_stability(islands, others)[0]
        values = [best_jaccard([True] * n, codes.tolist()) for codes in others]
        f = shared / (shared + 100)
        mean = np.mean(values)
        near = (n * mean + 1) / (n + 2)
        variance = np.var(values, ddof=1) / (1 - f) + near * (1 - near) / n
        expected = t(2).ppf(0.95) * np.sqrt(2 * variance * (1 + 2 * f) / 3)
        assert found.low == pytest.approx(max(mean - expected, 0))
        assert found.high == pytest.approx(min(mean + expected, 1))


def test_an_index_of_one_in_all_maps_is_no_certainty():
    islands = np.repeat([1, 2], 40)
    for found in island_stability(islands, [islands, islands, islands]):
        assert found.jaccard == found.high == 1
        assert 0.85 < found.low < 1


def test_islands_without_rows_in_other_maps_are_left_out():
    islands = np.repeat([1, 2, 0], 20)
    other = np.where(islands == 2, -1, 1)
    assert [found.island for found in island_stability(islands, [other])] == [1]
    assert island_stability(np.zeros(30, int), [np.ones(30, int)]) == []
    # rows outside of all islands are not an island
    assert island_stability(islands, [np.zeros(60, int)])[0].jaccard == 0


def test_bad_input_is_named():
    islands = np.repeat([1, 2], 20)
    for call, name in (
        (lambda: island_stability(islands, []), "others="),
        (lambda: island_stability(islands, 3), "others=3"),
        (lambda: island_stability(islands, None), "others=None"),
        (lambda: island_stability(islands, [islands[:5]]), r"others\[0\] has shape"),
        (lambda: island_stability(islands, [islands, islands * 0.5]), r"others\[1\] has shape"),
        (lambda: island_stability(islands, [islands - 4]), r"others\[0\] holds -3"),
        (lambda: island_stability(islands, [islands * 10**9]), r"others\[0\] holds 2000000000"),
        (lambda: island_stability(islands * 10**9, [islands]), "islands holds 2000000000"),
        (lambda: island_stability(islands - 3, [islands]), "islands holds -2"),
        (lambda: island_stability("12", [islands]), "islands has shape"),
    ):
        with pytest.raises(LowlandError, match=name):
            call()

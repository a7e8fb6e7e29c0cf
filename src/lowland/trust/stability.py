"""How much of a map comes again, with other seeds and other rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from lowland._core.monitor import Monitor
from lowland.metrics import IslandStability, island_stability, map_agreement
from lowland.trust.refitting import MakeMap, RefitPart, RefitRows, islands_of, refit, turned
from lowland.trust.result import OtherMap, Stability

REFITS = 3


def stability_of_refits(
    source: RefitRows,
    Y: np.ndarray,
    island_of: np.ndarray,
    make_map: MakeMap,
    seed: int,
    monitor: Monitor,
) -> tuple[Stability, np.ndarray]:
    """Three refits on parts of the rows that share half of them; and the first refit as it is.

    Refits are compared with one another, because a map of fewer rows has other neighbors than the
    map of all. Islands of the map are looked for in each refit.
    """
    n, m = len(Y), source.size()
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(n)
    core, rest = np.sort(order[: m // 2]), order[m // 2 :]
    first = np.empty(0)
    maps: list[tuple[np.ndarray, np.ndarray]] = []
    with monitor.phase("refits", total=REFITS) as phase:
        for number in range(REFITS):
            own = rng.choice(rest, m - len(core), replace=False)
            rows = np.sort(np.concatenate([core, own]))
            part = RefitPart(rows, is_null=False)
            Z = refit(make_map, source.of(rows), seed + 1 + number, Y.shape[1], part)
            first = Z if number == 0 else first
            maps.append((rows, Z))
            phase.advance(1)
    places = [np.searchsorted(rows, core) for rows, _ in maps]
    cores = [Z[place] for (_, Z), place in zip(maps, places, strict=True)]
    threads = source.options.threads
    pairs = [
        map_agreement(one, other, n_jobs=threads) for one, other in itertools.combinations(cores, 2)
    ]
    points = np.full(n, np.nan)
    points[core] = np.mean([pair.points for pair in pairs], axis=0)
    titles = [f"refit {number + 1}" for number in range(REFITS)]
    shown = [turned(title, *each, Y[each[0]]) for title, each in zip(titles, maps, strict=True)]
    stable = _islands(island_of, [(rows, islands_of(Z)) for rows, Z in maps])
    agreement = float(np.mean([pair.mean for pair in pairs]))
    return Stability(points, agreement, pairs[0].chance, stable, shown), first


def stability_of_others(
    Y: np.ndarray, island_of: np.ndarray, others: Sequence[np.ndarray], threads: int
) -> Stability:
    """Other maps of the same rows, such as those of other seeds, compared with one another."""
    maps = [Y, *others]
    pairs = [
        map_agreement(one, other, n_jobs=threads) for one, other in itertools.combinations(maps, 2)
    ]
    points = np.mean([pair.points for pair in pairs], axis=0)
    every = np.arange(len(Y))
    shown: list[OtherMap] = [
        turned(f"other map {number + 1}", every, Z, Y) for number, Z in enumerate(others)
    ]
    stable = _islands(island_of, [(every, islands_of(Z)) for Z in others])
    agreement = float(np.mean([pair.mean for pair in pairs]))
    return Stability(points, agreement, pairs[0].chance, stable, shown)


def _islands(
    island_of: np.ndarray, found: Sequence[tuple[np.ndarray, np.ndarray]]
) -> list[IslandStability]:
    if not island_of.max(initial=0):
        return []
    others = []
    for rows, codes in found:
        everyone = np.full(len(island_of), -1)
        everyone[rows] = codes
        others.append(everyone)
    return island_stability(island_of, others)

"""How well an alignment finds partners that it was not told: pairs that a trial fit did not see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from lowland.linear.pca import PCA
from lowland.metrics.matching import match_ranks
from lowland.metrics.procrustes import procrustes

FEWEST = 10  # objects; with fewer, none are held out
MOST = 2000  # objects are held out; more would not tell more


class Match(NamedTuple):
    """How near the partners of some rows are in a map."""

    nearest: float  # share of rows whose nearest row of the other set is the partner
    rank: float  # mean share of the rows of the other set that are nearer than the partner


class HeldOut(NamedTuple):
    """Pairs that were held out, found in a map that was made without them."""

    objects: int
    share: float  # of all objects that are known
    found: Match
    chance: Match
    simple: Match | None  # each set's PCA map, turned by the other pairs (Procrustes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "objects": self.objects,
            "share": self.share,
            "nearest": self.found.nearest,
            "rank": self.found.rank,
            "chance": self.chance._asdict(),
            "pca_procrustes": None if self.simple is None else self.simple._asdict(),
        }


def held_out_rows(n: int, share: float, seed: int) -> np.ndarray:
    """Which of n objects are held out: none if there are few, and at most 2000."""
    wanted = min(round(share * n), MOST) if n >= FEWEST else 0
    chosen = np.zeros(n, dtype=bool)
    if wanted and n - wanted >= 2:
        chosen[np.random.default_rng(seed).permutation(n)[:wanted]] = True
    return chosen


def measure_held_out(
    Xs: Sequence[Any],
    rows: np.ndarray,
    chosen: np.ndarray,
    fit: Callable[[np.ndarray], list[np.ndarray]],
) -> HeldOut:
    """Fit without the chosen objects and look for their partners.

    ``fit`` makes the maps of all sets from the objects that it gets.
    """
    known, asked = rows[~chosen], rows[chosen]
    maps = fit(known)
    found = match_of(maps, asked)
    turned = simple(Xs, known, maps[0].shape[1])
    return HeldOut(
        int(chosen.sum()),
        float(chosen.mean()),
        found,
        chance_of(maps, asked),
        None if turned is None else match_of(turned, asked),
    )


def match_of(maps: Sequence[np.ndarray], rows: np.ndarray) -> Match:
    """Over all ordered pairs of sets: is the partner the nearest row, and how many are nearer?

    Rows at the same distance as the partner count half.
    """
    nearest, ranks = [], []
    for one, other in combinations(range(len(maps)), 2):
        both = rows[(rows[:, one] >= 0) & (rows[:, other] >= 0)][:, [one, other]]
        if not len(both):
            continue
        nearer, tied = match_ranks(maps[one], maps[other], both)
        others = np.array([[len(maps[other]) - 1], [len(maps[one]) - 1]])
        nearest.append(np.where(nearer == 0, 1.0 / tied, 0.0).ravel())
        ranks.append(((nearer + (tied - 1) / 2) / np.maximum(others, 1)).ravel())
    if not nearest:
        return Match(float("nan"), float("nan"))
    return Match(float(np.concatenate(nearest).mean()), float(np.concatenate(ranks).mean()))


def chance_of(maps: Sequence[np.ndarray], rows: np.ndarray) -> Match:
    """What a map that knows nothing would give."""
    shares = []
    for one, other in permutations(range(len(maps)), 2):
        both = int(((rows[:, one] >= 0) & (rows[:, other] >= 0)).sum())
        shares += [1.0 / len(maps[other])] * both
    return Match(float(np.mean(shares)) if shares else float("nan"), 0.5)


def simple(Xs: Sequence[Any], rows: np.ndarray, q: int) -> list[np.ndarray] | None:
    """The PCA map of each set, turned to the first one by the known pairs; None without enough."""
    maps = []
    for place, X in enumerate(Xs):
        narrow = min(q, *X.shape)
        Y = np.zeros((X.shape[0], q))
        Y[:, :narrow] = np.asarray(PCA(narrow, random_state=0).fit_transform(X))
        if place:
            both = rows[(rows[:, 0] >= 0) & (rows[:, place] >= 0)]
            if len(both) < 2:
                return None
            Y = procrustes(maps[0], Y, pairs=both[:, [0, place]]).aligned
        maps.append(Y)
    return maps

"""A map with planted faults, and what a check of it would say: values made by hand."""

from __future__ import annotations

import math

import numpy as np

from lowland.metrics.gaps import Gap
from lowland.metrics.hills import IslandStability
from lowland.metrics.home import KINDS, PointHome
from lowland.trust import Chance, Contrast, Island, OtherMap, Plateau, Sentence, Stability, Trust

FINE, MISPLACED, TORN, PRESSED = range(len(KINDS))


def make_coordinates(n=200, q=2, misplaced=4):
    """Four groups at the corners of a square; the first rows of group 1 lie in group 3."""
    rng = np.random.default_rng(0)
    corners = np.array([[-9.0, -10, 2], [11, -10, -2], [10, 10, 2], [-10, 10, -2]])
    Y = corners[np.arange(4).repeat(n // 4)] + rng.normal(size=(n, 3))
    Y[:misplaced] += corners[2] - corners[0]
    return Y[:, :q]


def make_trust(Y, refits=True, misplaced=4):
    """Each quarter of the rows is an island; the first rows of island 1 belong to island 2.

    Of each quarter, the last three rows are torn, and the three before them are pressed; the first
    row of the second quarter is not measured.
    """
    Y = np.asarray(Y, dtype=float)
    n, quarter = len(Y), len(Y) // 4
    island_of = np.arange(1, 5).repeat(quarter)
    centers = [np.median(Y[island_of == number], axis=0) for number in range(1, 5)]
    missing, strangers = np.full(n, 0.1), np.full(n, 0.1)
    kind = np.full(n, FINE, dtype=np.int8)
    home = np.stack([centers[number - 1] for number in island_of])
    for end in range(quarter, n + 1, quarter):
        kind[end - 3 : end], missing[end - 3 : end] = TORN, 0.7
        kind[end - 6 : end - 3], strangers[end - 6 : end - 3] = PRESSED, 0.9
    kind[:misplaced], missing[:misplaced], strangers[:misplaced] = MISPLACED, 1.0, 0.95
    home[:misplaced] = centers[1]
    missing[quarter] = strangers[quarter] = math.nan
    home[quarter], kind[quarter] = math.nan, -1
    points = PointHome(missing, strangers, home, np.ones(n), kind, 0.75, 15, 75)
    stable = [
        IslandStability(1, 0.93, 0.88, 0.97, "stable"),
        IslandStability(2, 0.41, 0.2, 0.62, "unstable"),
        IslandStability(3, 0.7, 0.6, 0.8, "doubtful"),
        IslandStability(4, 0.9, 0.85, 0.95, "stable"),
    ]
    inner = Gap(3, 3, 0.04, 0.31, 0.13, "real")
    islands = [
        Island(
            number,
            int((island_of == number).sum()),
            center,
            inner if number == 3 else None,
            stable[number - 1] if refits else None,
        )
        for number, center in enumerate(centers, start=1)
    ]
    gaps = [
        Gap(3, 4, 0.01, 0.3, 0.03, "real"),
        Gap(1, 4, 0.02, 0.25, 0.08, "bridged", (2, 3)),
        Gap(2, 3, 0.12, 0.3, 0.4, "unclear"),
        Gap(1, 2, 0.2, 0.25, 0.8, "not in the data"),
    ]
    return Trust(
        coordinates=Y,
        points=points,
        islands=islands,
        island_of=island_of,
        gaps=gaps,
        stability=make_stability(Y, stable) if refits else None,
        chance=make_chance(Y) if refits else None,
        contrast=Contrast(0.35, 0.5, math.nan),
        sentences=[
            Sentence("points", "caution", f"{misplaced} points lie far from home."),
            Sentence("gaps", "serious", "The gap between islands 1 and 2 is not in the data."),
            Sentence("merged", "caution", "Island 3 holds two groups."),
            Sentence("stability", "serious", "Island 2 is not found again in refits."),
            Sentence("chance", "fine", "The map shows far more than chance would."),
            Sentence("contrast", "fine", "The islands are separate in the data."),
        ],
        reasons={} if refits else {"stability": "refits were not asked for", "chance": "No null."},
        neighbors=np.empty((n, 0), int),
    )


def make_stability(Y, islands):
    n = len(Y)
    halves = [np.arange(0, n, 2), np.arange(1, n, 2)]
    refits = [
        OtherMap(f"seed {seed}", rows, 3 * Y[rows] + seed) for seed, rows in enumerate(halves)
    ]
    points = np.where(np.arange(n) % 5 == 0, math.nan, 0.6)
    return Stability(points, 0.56, 0.02, islands, refits)


def make_chance(Y):
    rng = np.random.default_rng(1)
    rows = np.arange(0, len(Y), 2)
    null = OtherMap("null", rows, rng.normal(size=(len(rows), Y.shape[1])))
    return Chance(0.53, 0.25, 3, 1, 0.91, null)


def make_plateau(Y):
    rows = np.arange(0, len(Y), 3)
    values = [5.0, 15.0, 30.0, 50.0, 100.0]
    return Plateau(
        parameter="perplexity",
        values=values,
        excess=[0.05, 0.24, 0.28, 0.27, math.nan],
        overlap=[0.21, 0.5, 0.58, 0.57, 0.41],
        on_plateau=[False, False, True, True, False],
        default=30.0,
        recommended=30.0,
        sentence="Perplexities from 30 to 50 show the same; the default lies among them.",
        maps=[OtherMap(f"perplexity {value:g}", rows, value * Y[rows]) for value in values],
    )

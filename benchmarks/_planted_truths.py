"""The table of planted truths: what the diagnosis says of errors and structures that are known.

The plants are those of the tests (``tests/support/planted_truths.py``), with more rows and repeats.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _harness import DATA
from scipy.spatial.distance import cdist

import lowland
from lowland.metrics import gap_test, inner_gaps, islands, point_home, strangers
from lowland.trust import trust

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import planted_truths as plants

MISPLACED = 1


class Line(NamedTuple):
    """One measured number; ``holds`` is None where there is no target."""

    plant: str
    case: str
    measured: str
    value: float
    target: str
    holds: bool | None


def line(plant: str, case: str, measured: str, value: float, target: str = "") -> Line:
    holds = None
    if target:
        sign, bound = target.split()
        holds = bool(value >= float(bound) if sign == ">=" else value <= float(bound))
    return Line(plant, case, measured, float(value), target, holds)


def mnist_part(n: int, rng: np.random.Generator) -> np.ndarray:
    """Some rows of MNIST in 50 principal components."""
    X = np.load(DATA / "mnist.npz")["X"]
    some = X[np.sort(rng.choice(len(X), n, replace=False))].astype(np.float64)
    return np.asarray(lowland.PCA(50).fit_transform(some))


def swapped(repeats: int, n: int = 1000) -> Iterator[Line]:
    """AUC of missing neighbors, and how far the home is from where the point was."""

    def data_of(name: str) -> Callable[[np.random.Generator], np.ndarray]:
        return lambda rng: plants.good_data(name, n, 4, rng)[0]

    cases = [(name, name, data_of(name)) for name in plants.MAPS]
    if (DATA / "mnist.npz").exists():
        cases.append(("t-SNE of MNIST", "t-SNE", lambda rng: mnist_part(n, rng)))
    for title, name, make in cases:
        found: dict[float, list[Any]] = {0.01: [], 0.05: []}
        for seed in range(repeats):
            rng = np.random.default_rng([1, seed])
            X = make(rng)
            before = plants.MAPS[name](X, seed)
            for share, results in found.items():
                Y, moved = plants.swapped(before, share, rng)
                home = point_home(X, Y)
                error = np.linalg.norm(home.home - before, axis=1)[moved] / plants.width(before)
                recall = (home.kind[moved] == MISPLACED).mean()
                scores = (home.missing, home.strangers)
                results.append((*(plants.auc(s, moved) for s in scores), error, recall))
        for share, results in found.items():
            missing, strange, errors, recalls = zip(*results, strict=True)
            case, pooled = f"{title}, {share:.0%}", np.concatenate(errors)
            yield line("swapped", case, "AUC(missing), mean", np.mean(missing), ">= .99")
            yield line("swapped", case, "AUC(missing), least", np.min(missing))
            yield line("swapped", case, "AUC(strangers), mean", np.mean(strange))
            yield line("swapped", case, "home error, median", np.median(pooled), "<= .03")
            yield line("swapped", case, "home error, mean", np.mean(pooled))
            yield line("swapped", case, "recall of 'misplaced'", np.mean(recalls))


def cut(repeats: int, n: int = 500) -> Iterator[Line]:
    """One group is cut in the map: what the test says of its halves and of the true gaps."""
    for name in plants.MAPS:
        false, true, areas = [], [], []
        for seed in range(repeats):
            rng = np.random.default_rng([2, seed])
            X, group = plants.good_data(name, n, 3, rng)
            members = group == 0
            Y, half = plants.cut_apart(plants.MAPS[name](X, seed), members, rng)
            found = trust(X, Y, n_jobs=1)
            truth = np.where(half, 3, group)
            for gap, one, other in plants.apart(found.gaps, found.island_of, truth):
                if {one, other} == {0, 3}:
                    false.append(gap)
                elif one != other:
                    true.append(gap)
            torn = plants.torn(found.neighbors, members, half)
            areas.append(plants.auc(found.points.missing, torn) if torn.any() else np.nan)
        called = np.mean([gap.verdict == "not in the data" for gap in false])
        yield line("cut", name, "tested gaps of halves", len(false), f">= {repeats}")
        yield line("cut", name, "called not in the data", called, ">= .95")
        yield line("cut", name, "cut of halves, least", np.min([gap.cut for gap in false]))
        wrong = np.mean([gap.verdict == "not in the data" for gap in true])
        yield line("cut", name, f"true gaps called so (of {len(true)})", wrong, "<= .05")
        yield line("cut", name, "cut of true gaps, most", np.max([gap.cut for gap in true]))
        yield line("cut", name, "AUC(missing) of torn points, mean", np.nanmean(areas), ">= .95")
        yield line("cut", name, "AUC(missing) of torn points, least", np.nanmin(areas))


def overlaid(repeats: int, n: int = 500) -> Iterator[Line]:
    """Two groups at one place of the map: separate ones, or distant discs of a square.

    Isomap and Laplacian eigenmaps show separate groups as spots, in which every point is a
    stranger; of a square they make a good map. Points near the discs are left out, because some of
    them are strangers, too.
    """
    for name in plants.MAPS:
        areas, cuts, others = [], [], []
        separate = name in ("t-SNE", "PCA")
        for seed in range(repeats):
            rng = np.random.default_rng([3, seed])
            X, group = plants.good_data(name, n, 4, rng) if separate else plants.patches(n, 10, rng)
            Y = plants.overlaid(plants.MAPS[name](X, seed), group == 0, group == 1)
            pressed = plants.pressed(Y, group)
            asked = pressed | (group == 2) | ((group == 3) & separate)
            areas.append(plants.auc(strangers(X, Y)[asked], pressed[asked]))
            inner = inner_gaps(X, np.choose(group, [1, 1, 2, 3]))
            cuts.append(inner[1].cut)
            if separate:
                others += [inner[2].verdict, inner[3].verdict]
                seen = islands(Y)  # those of the map itself
                cuts.append(inner_gaps(X, seen)[np.bincount(seen[group <= 1]).argmax()].cut)
        real = np.mean([value < 0.3 for value in cuts])
        yield line("overlaid", name, "AUC(strangers), mean", np.mean(areas), ">= .98")
        yield line("overlaid", name, "AUC(strangers), least", np.min(areas))
        yield line("overlaid", name, "share of inner cuts below .3", real, ">= .95")
        yield line("overlaid", name, "inner cut, most", np.max(cuts))
        if others:
            wrong = np.mean([verdict == "real" for verdict in others])
            yield line("overlaid", name, "single groups called two", wrong, "<= .05")


def noise(repeats: int, n: int = 400) -> Iterator[Line]:
    """Maps of data without groups: how many show a gap that is called real."""
    for kind in plants.NOISE:
        every, cuts = [], []
        for d, perplexity in itertools.product((2, 5, 10, 50), (2, 5, 30, 100)):
            found = []
            for seed in range(repeats):
                rng = np.random.default_rng([4, seed, d])
                X = plants.noise(kind, n, d, rng)
                tsne = lowland.TSNE(2, perplexity=perplexity, random_state=seed, n_jobs=1)
                found.append(trust(X, tsne.fit_transform(X), n_jobs=1).gaps)
            cuts += [gap.cut for gaps in found for gap in gaps]
            every += found
            share, many = plants.real_shares(found), np.mean([len(gaps) for gaps in found])
            case = f"{kind}, d = {d}, perplexity {perplexity}"
            yield line("noise", case, f"maps with a real gap ({many:.1f} gaps)", share)
        yield line("noise", kind, "maps with a real gap", plants.real_shares(every), "<= .05")
        tested = f"cut, 1 % quantile of {len(cuts)}"
        yield line("noise", kind, tested, np.nanquantile(cuts, 0.01) if cuts else np.nan)
    for name in ("PCA", "Isomap", "LaplacianEigenmaps"):
        found = []
        for kind, d, seed in itertools.product(plants.NOISE, (2, 10, 50), range(repeats)):
            X = plants.noise(kind, n, d, np.random.default_rng([5, seed, d]))
            found.append(trust(X, plants.MAPS[name](X, seed), n_jobs=1).gaps)
        case = f"{name}, all kinds, d 2 to 50"
        yield line("noise", case, "maps with a real gap", plants.real_shares(found), "<= .05")


def gaussians(repeats: int, n: int = 400) -> Iterator[Line]:
    """Two Gaussians: cut in the middle, and as the islands of a t-SNE map."""
    for d, delta in itertools.product((2, 5, 10), (0, 1, 2, 3, 4, 5, 6)):
        cuts, maps, shown = [], [], 0
        for seed in range(repeats):
            rng = np.random.default_rng([6, seed])
            X, side = plants.two_gaussians(n, d, delta, rng)
            cuts.append(gap_test(X, side)[0].cut)
            Y = plants.MAPS["t-SNE"](X, seed)
            found = gap_test(X, islands(Y), Y)
            shown += len(found) > 0
            maps += [gap.verdict == "real" for gap in found]
        case = f"d = {d}, Delta = {delta}"
        yield line("gaussians", case, "cut, median", np.median(cuts))
        if delta == 0:
            yield line("gaussians", case, "cut, 5 % quantile", np.quantile(cuts, 0.05), ">= .5")
            yield line("gaussians", case, "|median cut - 1|", abs(np.median(cuts) - 1), "<= .25")
        real = np.mean([value < 0.3 for value in cuts])
        yield line("gaussians", case, "real, cut in the middle", real, ">= .9" * (delta >= 5))
        yield line("gaussians", case, "t-SNE maps with a gap", shown / repeats)
        if maps:
            share = np.mean(maps)
            yield line("gaussians", case, "real, of map gaps", share, ">= .9" * (delta >= 5))


def halves(repeats: int, n: int = 600) -> Iterator[Line]:
    """Whether the interval of an island's stability in one half holds its value in the other."""
    every = []
    for distance in (3.0, 4.0, 5.0, 6.0, 8.0):
        covered, values, found = [], [], 0
        for seed in range(repeats):
            rng = np.random.default_rng([7, seed])
            X, group = plants.groups(n, 5, 4, distance, rng)
            half = rng.permutation(n) < n // 2
            stable = [_stability(X[side], group[side], seed) for side in (half, ~half)]
            found += len(stable[0])
            for number in sorted(stable[0].keys() & stable[1].keys()):
                a, b = stable[0][number], stable[1][number]
                covered.append(a.low - 1e-9 <= b.jaccard <= a.high + 1e-9)
                values.append(a.jaccard)
        case = f"centers {distance:.0f} sigma apart"
        both = f"covered, of {len(covered)} islands in both halves"
        yield line("halves", case, both, np.mean(covered))
        yield line("halves", case, "islands of one half found in the other", len(covered) / found)
        yield line("halves", case, "mean Jaccard", np.mean(values))
        every += covered
    yield line("halves", "all distances", f"covered, of {len(every)}", np.mean(every), ">= .85")


def _stability(X: np.ndarray, group: np.ndarray, seed: int) -> dict[Any, Any]:
    """The stability of each island, by the groups that it holds more than half of."""
    make_map = plants.MAPS["t-SNE"]
    found = trust(X, make_map(X, seed), make_map=make_map, random_state=seed, n_jobs=1)
    held = {}
    for island in found.islands:
        inside = np.bincount(group[found.island_of == island.number], minlength=group.max() + 1)
        key = tuple(np.flatnonzero(inside > np.bincount(group) / 2).tolist())
        if key and island.stability is not None:
            held[key] = island.stability
    return held


def impostor(repeats: int, n: int = 400) -> Iterator[Line]:
    """D^2 + c: the same ranks, hardly any contrast."""
    same, before, after = [], [], []
    for seed in range(repeats):
        rng = np.random.default_rng([8, seed])
        X, _ = plants.groups(n, 5, 4, 8.0, rng)
        D = cdist(X, X)
        Y = plants.MAPS["t-SNE"](X, seed)
        both = [trust(d, Y, metric="precomputed") for d in (D, plants.impostor(D, 1e4))]
        one, other = both[0].points, both[1].points
        pairs = zip(one[:5], other[:5], strict=True)
        same.append(all(np.array_equal(a, b) for a, b in pairs))
        before.append(both[0].contrast.silhouette)
        after.append(both[1].contrast.silhouette)
    yield line("impostor", "D^2 + 10 000", "rank outputs identical", np.mean(same), ">= 1")
    yield line("impostor", "D^2 + 10 000", "silhouette before", np.mean(before))
    yield line("impostor", "D^2 + 10 000", "silhouette after", np.mean(after), "<= .05")


def moved(repeats: int, n: int = 500) -> Iterator[Line]:
    """Rotated, mirrored and scaled maps, and permuted rows: the same verdicts."""
    for name in plants.MAPS:
        counted: dict[str, list[bool]] = {}
        for seed in range(repeats):
            rng = np.random.default_rng([9, seed])
            X, _ = plants.good_data(name, n, 4, rng)
            Y, _ = plants.swapped(plants.MAPS[name](X, seed), 0.05, rng)
            first = trust(X, Y, n_jobs=1)
            for how, (order, Z) in plants.changed(Y, rng).items():
                other = trust(X[order], Z, n_jobs=1)
                for part, agrees in plants.same_verdicts(first, other, order).items():
                    counted.setdefault(f"{how}: {part}", []).append(agrees)
        for what, agree in counted.items():
            yield line("moved", name, what, np.mean(agree), ">= 1")


PLANTS: dict[str, Callable[[int], Iterator[Line]]] = {
    "swapped": swapped,
    "cut": cut,
    "overlaid": overlaid,
    "noise": noise,
    "gaussians": gaussians,
    "halves": halves,
    "impostor": impostor,
    "moved": moved,
}

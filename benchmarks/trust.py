"""Trust: planted truths with their targets, and what the diagnosis of a map costs.

    benchmarks/trust.py --planted                         the table of planted truths
    benchmarks/trust.py --planted --plant noise --repeats 5   one of its rows, fewer repeats
    benchmarks/trust.py --cost                            MNIST: time beside the map, peak memory
    benchmarks/trust.py --growth --large --peers          1000 to 1 000 000 rows; other tools

Without any of these options all parts run. JSON lines go to stderr.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _harness import DATA, current_memory, peak_so_far, reset_peak
from _planted_truths import PLANTS
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness as sklearn_trustworthiness

import lowland
from lowland.metrics import missing_neighbors, point_home
from lowland.neighbors import NeighborGraph, knn_graph
from lowland.trust import trust

REPEATS = 25
COST_ROWS, LARGE_ROWS, PEER_ROWS = 70_000, 1_000_000, 5_000
GROWTH = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
WITHOUT_REFITS, WITH_REFITS, MOST_MB, LARGE_SECONDS, EXPONENT = 0.25, 1.0, 300, 60, 1.2


def report(part: str, measured: str, value: float, target: str = "", holds: Any = None) -> None:
    """One line of a table, and the same as JSON."""
    word = "" if holds is None else "yes" if holds else "NO"
    print(f"{part:26}{measured:50}{value:10.3f}  {target:10}{word}", flush=True)
    record = {"part": part, "measured": measured, "value": value, "target": target, "holds": holds}
    print(json.dumps(record), file=sys.stderr)


def bound(part: str, measured: str, value: float, most: float, asked: bool = True) -> None:
    """A line with a target, which holds for the full number of rows only."""
    report(part, measured, value, *((f"<= {most:g}", bool(value <= most)) if asked else ()))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def planted(names: list[str], repeats: int) -> None:
    """The table of planted truths."""
    missed = 0
    for name in names:
        start = time.perf_counter()
        for found in PLANTS[name](repeats):
            word = "" if found.holds is None else "yes" if found.holds else "NO"
            missed += found.holds is False
            shown = f"{found.plant:10}{found.case:42}{found.measured:46}{found.value:8.3f}"
            print(f"{shown}  {found.target:8}{word}", flush=True)
            print(json.dumps(found._asdict()), file=sys.stderr)
        print(f"{name}: {repeats} repeats, {time.perf_counter() - start:.0f} s")
    print(f"{missed} targets missed")


# --- cost -------------------------------------------------------------------------------------


def mnist50(n: int) -> np.ndarray:
    """50 principal components of MNIST."""
    X = np.load(DATA / "mnist.npz")["X"].astype(np.float32)
    X = X[np.random.default_rng(0).permutation(len(X))[:n]]
    return np.ascontiguousarray(lowland.PCA(50).fit_transform(X))


def tsne(X: Any, seed: int) -> np.ndarray:
    return np.asarray(lowland.TSNE(2, random_state=seed).fit_transform(X))


def cost(n: int) -> None:
    """Trust of a t-SNE map of MNIST, beside the time of the map."""
    part = f"MNIST {n} x 50"
    try:
        X = mnist50(n)
    except FileNotFoundError as error:
        print(f"{part}: skipped, {error.filename} is not there (set LOWLAND_DATA)")
        return
    method = lowland.TSNE(2, random_state=0)
    with method.sharing() as shared:
        mapping, Y = timed(lambda: method.fit_transform(X))
    graph = shared.graph
    full = n == COST_ROWS
    report(part, "map, seconds", mapping)
    plain, _ = timed(lambda: trust(X, Y, graph))
    report(part, "without refits, seconds", plain)
    bound(part, "without refits / map", plain / mapping, WITHOUT_REFITS, full)
    refitted, found = timed(lambda: trust(X, Y, graph, make_map=tsne))
    report(part, "with refits, seconds", refitted)
    bound(part, "with refits / map", refitted / mapping, WITH_REFITS, full)
    searching, _ = timed(lambda: trust(X, Y))
    report(part, "without a graph and refits, seconds", searching)
    for sentence in found.sentences:
        print(f"    {sentence.level:8}{sentence.text}")
    for refits in (False, True):
        peak = memory_apart(X, Y, graph, refits)
        words = "with refits" if refits else "without refits"
        bound(part, f"peak memory {words}, MB", peak, MOST_MB)


def memory_apart(X: np.ndarray, Y: np.ndarray, graph: NeighborGraph, refits: bool) -> float:
    """Megabytes above the data, the map and the graph at the peak, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, array in zip("XYid", (X, Y, graph.indices, graph.distances), strict=True):
            np.save(Path(folder) / f"{name}.npy", array)
        command = [sys.executable, __file__, "--memory-of", folder]
        command += ["--refits"] * refits
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def memory_here(folder: Path, refits: bool) -> float:
    X, Y, indices, distances = (np.load(folder / f"{name}.npy") for name in "XYid")
    graph = NeighborGraph(indices, distances, len(X))
    make_map = tsne if refits else None
    trust(X[:300], Y[:300], make_map=make_map)  # libraries are loaded before memory is measured
    before = current_memory()
    reset_peak()
    trust(X, Y, graph, make_map=make_map)
    return (peak_so_far() - before) / 1e6


def clouds(n: int, d: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Twenty groups of five dimensions in d, and a map of two dimensions of each."""
    rng = np.random.default_rng(0)
    group = rng.integers(20, size=n)
    within = rng.standard_normal((n, 5))
    flat = 6 * rng.standard_normal((20, 5))[group] + within
    X = flat @ rng.standard_normal((5, d)) + 0.1 * rng.standard_normal((n, d))
    angle = 2 * np.pi * group / 20
    centers = 12 * np.column_stack([np.cos(angle), np.sin(angle)])
    return X.astype(np.float32), centers + within[:, :2]


def growth(rows: list[int]) -> None:
    """Trust without refits of more and more rows with a known graph; exponents of the growth."""
    before: tuple[int, float] | None = None
    for n in rows:
        X, Y = clouds(n)
        graph = knn_graph(X, 75)
        taken = min(timed(lambda X=X, Y=Y, graph=graph: trust(X, Y, graph))[0] for _ in range(2))
        report("growth", f"{n} rows, seconds", taken)
        if before is not None:
            exponent = float(np.log(taken / before[1]) / np.log(n / before[0]))
            bound("growth", f"exponent {before[0]} to {n}", exponent, EXPONENT)
        before = n, taken


def large(n: int) -> None:
    """Very many rows without refits: with a graph, and with the search for neighbors."""
    X, Y = clouds(n)
    part = f"{n} x {X.shape[1]}"
    searching, graph = timed(lambda: knn_graph(X, 75))
    report(part, "graph of 75 neighbors, seconds", searching)
    given, _ = timed(lambda: trust(X, Y, graph))
    bound(part, "trust with a graph, seconds", given, LARGE_SECONDS)
    peak = memory_apart(X, Y, graph, refits=False)
    report(part, "peak memory with a graph, MB", peak)
    alone, _ = timed(lambda: trust(X, Y))
    report(part, "trust without a graph, seconds", alone)


# --- peers ------------------------------------------------------------------------------------


def rho_of_points(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """scDEED's score: correlation of the map distances to the nearest half of the rows in the data
    with the smallest map distances. The permuted null is not made."""
    n = len(X)
    D, d = cdist(X, X), cdist(Y, Y)
    order = np.argsort(D, axis=1)[:, 1 : n // 2 + 1]
    kept, best = np.take_along_axis(d, order, axis=1), np.sort(d, axis=1)[:, 1 : n // 2 + 1]
    kept, best = (side - side.mean(axis=1, keepdims=True) for side in (kept, best))
    return (kept * best).sum(axis=1) / np.sqrt((kept**2).sum(axis=1) * (best**2).sum(axis=1))


def peers(n: int) -> None:
    """Which points are wrong: the same question to other tools, at a size that they can do."""
    from support.planted_truths import auc, good_data, swapped

    rng = np.random.default_rng(0)
    X = good_data("t-SNE", n, 10, rng)[0]
    Y, wrong = swapped(tsne(X, 0), 0.01, rng)
    candidates: dict[str, Callable[[], np.ndarray | float]] = {
        "lowland, missing": lambda: missing_neighbors(X, Y),
        "lowland, point_home": lambda: point_home(X, Y).missing,
        "lowland, all of trust": lambda: trust(X, Y).points.missing,
        "scDEED's score, numpy": lambda: -rho_of_points(X, Y),
        "scikit-learn (one number)": lambda: sklearn_trustworthiness(X, Y, n_neighbors=15),
    }
    if importlib.util.find_spec("zadu") is not None:
        zadu = importlib.import_module("zadu.measures.trustworthiness_continuity")

        def local() -> np.ndarray:
            _, found = zadu.measure(X, Y, k=15, return_local=True)
            return 1 - np.asarray(found["local_continuity"])

        candidates["ZADU, local continuity"] = local
    print(f"\npeers: {n} rows, 1 % swapped; seconds, and AUC of the swapped points")
    for name, work in candidates.items():
        work()  # libraries are loaded
        taken, found = timed(work)
        report(name, f"{n} rows, seconds", taken)
        if np.ndim(found):
            report(name, "AUC of swapped points", auc(np.asarray(found), wrong))


def main() -> None:
    parser = argparse.ArgumentParser()
    for part in ("planted", "cost", "growth", "large", "peers"):
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--plant", choices=list(PLANTS), action="append")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rows", type=int, help="fewer rows for every part of the cost")
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--refits", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory_of:
        print(memory_here(given.memory_of, given.refits))
        return
    parts = ("planted", "cost", "growth", "large", "peers")
    wanted = [part for part in parts if getattr(given, part)] or list(parts)
    most = given.rows or LARGE_ROWS
    if "planted" in wanted:
        planted(given.plant or list(PLANTS), given.repeats)
    if "cost" in wanted:
        cost(min(COST_ROWS, most))
    if "growth" in wanted:
        growth([n for n in GROWTH if n <= most])
    if "large" in wanted:
        large(min(LARGE_ROWS, most))
    if "peers" in wanted:
        peers(min(PEER_ROWS, most))


if __name__ == "__main__":
    main()

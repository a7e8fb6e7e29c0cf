"""What ``lowland map`` costs at every size: the shares of its stages, and the memory of measuring.

    python benchmarks/main_job.py                         # the whole curve
    python benchmarks/main_job.py --rows 20001 --columns 10

Each size runs in a fresh process: the command on a file, then once more measuring alone, for its
peak of memory above the data. The tables are clusters; MNIST is added where the data folder has it.
Verdicts: measuring takes at most half of the fit + 1 s and 300 MB beyond the data, the whole
command at most 1.6 times the fit + 2 s. Load on the machine lengthens all stages; a verdict counts
on an idle one. ``--cpu`` compares the processor's seconds instead, without the stages.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _harness import DATA, current_memory, peak_so_far, reset_peak

ROWS = (100, 1_000, 5_000, 10_000, 19_999, 20_001, 70_000, 200_000)
COLUMNS = (10, 50, 784)
MOST_NUMBERS = 70_000 * 784
STAGES = ("reading", "preparing", "fitting", "measuring", "drawing", "writing")
CLUSTERS = 20
MEASURING_MB = 300.0


def clusters(n: int, p: int) -> np.ndarray:
    """Clusters with fewer directions of large variance than columns, float32."""
    rng = np.random.default_rng(0)
    centers = 12 / np.sqrt(p) * rng.standard_normal((CLUSTERS, p))
    spread = np.linspace(1, 0.2, p)
    X = np.empty((n, p), np.float32)
    for start in range(0, n, 10_000):
        rows = X[start : start + 10_000]
        noise = rng.standard_normal(rows.shape) * spread
        rows[:] = centers[rng.integers(0, CLUSTERS, len(rows))] + noise
    return X


def table(n: int, p: int, mnist: bool) -> np.ndarray:
    if not mnist:
        return clusters(n, p)
    return np.load(DATA / "mnist.npz")["X"].astype(np.float32)[:n]


# --- in a fresh process --------------------------------------------------------------------------


def run_measuring(path: str, map_path: str) -> dict[str, float]:
    """Time and memory of the measures that the command asks for, above those of the data."""
    from lowland.metrics import Comparison, point_continuity, point_trust, quality

    X, Y = np.load(path).astype(np.float64), np.load(map_path)
    few = min(len(X), 300)
    quality(X[:few], Y[:few])  # loads what is imported on first use
    before = current_memory()
    reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    both = Comparison(X, Y)
    found = quality(both)
    point_trust(both)
    point_continuity(both)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "megabytes": (peak_so_far() - before) / 1e6,
        "rows": found.sample_size,
    }


def run_fit(path: str, map_path: str) -> dict[str, float]:
    """Time of the default method as the command runs it."""
    import lowland

    X = np.load(path).astype(np.float64)
    few = min(len(X), 300)
    lowland.TSNE(max_iter=5, perplexity=5, random_state=0).fit(X[:few])
    wall, cpu = time.perf_counter(), time.process_time()
    if X.shape[1] > 50 < len(X):
        X = lowland.PCA(50, random_state=0).fit_transform(X)
    perplexity = min(30.0, (len(X) - 1) / 3)
    np.save(map_path, lowland.TSNE(perplexity=perplexity, random_state=0).fit_transform(X))
    return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


PARTS = {"--measuring": run_measuring, "--fit": run_fit}


def _fresh(*arguments: str) -> str:
    here = str(Path(__file__).resolve())
    done = subprocess.run(
        [sys.executable, here, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()[-1]


# --- the curve -----------------------------------------------------------------------------------


def run_stages(path: Path, folder: Path, measuring: float) -> dict[str, float]:
    """Seconds of each stage of the command, as it tells them, and of the whole process.

    A version that tells only the seconds of the fit gets those of measuring from a run of its own.
    """
    command = [sys.executable, "-m", "lowland", "map", str(path), "-o", str(folder), "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - start
    told = json.loads(done.stdout)
    stages = told.get("stages") or {"fitting": told["seconds"], "measuring": measuring}
    return {**{stage: float(stages.get(stage, 0.0)) for stage in STAGES}, "whole": whole}


def measure_size(n: int, p: int, mnist: bool, with_stages: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path, map_path = folder / "table.npy", folder / "map.npy"
        np.save(path, table(n, p, mnist))
        record: dict[str, Any] = {"rows": n, "columns": p, "data": "MNIST" if mnist else "clusters"}
        fit = json.loads(_fresh("--fit", str(path), str(map_path)))
        alone = json.loads(_fresh("--measuring", str(path), str(map_path)))
        record |= {"fit_cpu": fit["cpu"], "measuring_cpu": alone["cpu"]}
        record |= {"megabytes": alone["megabytes"], "measured_rows": alone["rows"]}
        if with_stages:
            record |= run_stages(path, folder / "out", alone["seconds"])
    return record


def verdicts(record: dict[str, Any], cores: int) -> str:
    """Which of the promises do not hold; "ok" if all do."""
    broken = []
    if record["megabytes"] > MEASURING_MB:
        broken.append("memory")
    if "fitting" not in record:
        if record["measuring_cpu"] > record["fit_cpu"] / 2 + cores:  # 1 s of all cores
            broken.append("measuring")
        return ", ".join(broken) or "ok"
    if record["measuring"] > record["fitting"] / 2 + 1:
        broken.append("measuring")
    if record["whole"] > 1.6 * record["fitting"] + 2:
        broken.append("whole")
    return ", ".join(broken) or "ok"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--no-mnist", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="only fit and measure, by CPU seconds")
    options = parser.parse_args()
    names = ["fit cpu", "meas cpu", *(() if options.cpu else (*STAGES, "whole"))]
    print(f"{'rows x columns':>22}" + "".join(f"{name:>10}" for name in names), end="")
    print(f"{'measured':>10}{'MB':>6}  verdict")
    sizes = [(n, p, False) for p in options.columns for n in options.rows if n * p <= MOST_NUMBERS]
    if not options.no_mnist and (DATA / "mnist.npz").exists() and 784 in options.columns:
        sizes += [(n, 784, True) for n in options.rows if n <= 70_000]
    for n, p, mnist in sizes:
        record = measure_size(n, p, mnist, not options.cpu)
        record["verdict"] = verdicts(record, len(os.sched_getaffinity(0)))
        keys = ["fit_cpu", "measuring_cpu", *(() if options.cpu else (*STAGES, "whole"))]
        print(
            f"{record['data']:>8}{n:>8} x {p:<3}" + "".join(f"{record[k]:10.2f}" for k in keys),
            end="",
        )
        print(f"{record['measured_rows']:>10}{record['megabytes']:6.0f}  {record['verdict']}")
        print(json.dumps(record), file=sys.stderr)
        sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in PARTS:
        print(json.dumps(PARTS[sys.argv[1]](*sys.argv[2:])))
    else:
        main()

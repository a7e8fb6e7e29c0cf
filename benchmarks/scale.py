"""Tables larger than memory: time and memory of streams, of a cluster of processes, of large maps.

    python benchmarks/scale.py --folder /data/scale --make      # 10 000 000 x 50 rows, 4 GB Parquet
    python benchmarks/scale.py --folder /data/scale --pca       # beside reading the files twice
    python benchmarks/scale.py --folder /data/scale --workers   # 4 processes beside a stream
    python benchmarks/scale.py --folder /data/scale --map       # lowland map, t-SNE of a sample
    python benchmarks/scale.py --tasks                          # 1 billion rows of simulated chunks
    python benchmarks/scale.py --graph                          # neighbors across parts, recall
    python benchmarks/scale.py --placing                        # new rows in maps of many rows
    python benchmarks/scale.py --growth                         # 100 to 3 000 000 rows

Each measured run is a process of its own, so that its peak memory is its own. The files hold
clusters on curved sheets with noise, float64, as polars writes them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _harness import DATA, peak_so_far

ROWS_PER_FILE = 1_000_000
GROUPS, DIMENSIONS = 200, 6


def clusters(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of bent clusters in p columns, and the number of the cluster of each."""
    shape = np.random.default_rng(1)  # the same clusters in every file
    centers = shape.normal(0, 4, (GROUPS, p))
    axes = shape.normal(0, 1, (GROUPS, DIMENSIONS, p))
    rng = np.random.default_rng([2, seed])
    kind = rng.integers(0, GROUPS, n)
    place = rng.normal(0, 1, (n, DIMENSIONS))
    X = rng.normal(0, 0.3, (n, p))
    for group in range(GROUPS):
        here = kind == group
        X[here] += centers[group] + np.sin(place[here]) @ axes[group]
    return X, kind


def make(folder: Path, n: int, p: int) -> None:
    """Write the files."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    for number in range(-(-n // ROWS_PER_FILE)):
        rows = min(ROWS_PER_FILE, n - number * ROWS_PER_FILE)
        X, kind = clusters(rows, p, number)
        frame = pl.from_numpy(X, schema=[f"c{i}" for i in range(p)], orient="row")
        names = pl.Series("kind", [f"g{k}" for k in kind])
        frame.with_columns(names).write_parquet(folder / f"part-{number:04d}.parquet")
    print(f"{folder}: {n} x {p}, {sum(f.stat().st_size for f in folder.iterdir()) / 1e9:.2f} GB")


# --- work that is measured in a process of its own --------------------------------------------


def read_twice(folder: Path, out: Path) -> dict[str, Any]:
    """Every file as a data frame and as an array, one after another, two times."""
    import polars as pl

    for _ in range(2):
        for path in sorted(folder.glob("*.parquet")):
            pl.read_parquet(path).drop("kind").to_numpy(order="c")
    return {}


def chunks_twice(folder: Path, out: Path) -> dict[str, Any]:
    """All chunks as arrays, two times."""
    from lowland.chunks import open_rows

    rows = open_rows(folder)
    for _ in range(2):
        for _block in rows.blocks():
            pass
    return {"tasks": len(rows.tasks)}


def pca_stream(folder: Path, out: Path) -> dict[str, Any]:
    """PCA of all rows, and all of them placed and written."""
    from lowland import PCA
    from lowland.chunks import open_rows

    rows = open_rows(folder)
    pca = PCA(2).fit(rows)
    parts = pca.transform(rows).write(out)
    return {"variance": pca.explained_variance_.tolist(), "parts": len(parts.files)}


def pca_workers(folder: Path, out: Path) -> dict[str, Any]:
    """The same by four processes; without the time to start them."""
    from lowland import PCA
    from lowland.chunks import Dask, open_rows

    with Dask("local:4"):
        start = time.perf_counter()
        rows = open_rows(folder)
        pca = PCA(2).fit(rows)
        parts = pca.transform(rows).write(out)
        inside = time.perf_counter() - start
    return {
        "variance": pca.explained_variance_.tolist(),
        "parts": len(parts.files),
        "seconds_inside": round(inside, 2),
    }


WORK: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "read_twice": read_twice,
    "chunks_twice": chunks_twice,
    "pca_stream": pca_stream,
    "pca_workers": pca_workers,
}


class Measured(NamedTuple):
    """Seconds and peak memory of a process, and what it said."""

    seconds: float
    peak_gb: float
    said: dict[str, Any]


def apart(work: str, folder: Path, **environment: str) -> Measured:
    """One piece of work in a process of its own."""
    out = Path(tempfile.mkdtemp(dir=folder.parent)) / "out"
    command = [sys.executable, __file__, "--folder", str(folder), "--work", work, "--out", str(out)]
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
        )
    finally:
        shutil.rmtree(out.parent, ignore_errors=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def here(work: str, folder: Path, out: Path) -> None:
    start = time.perf_counter()
    said = WORK[work](folder, out)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak_gb": peak_so_far() / 1e9, "said": said}))


def beside(folder: Path, names: list[str], repeats: int, **environment: str) -> None:
    """Kinds of work in turn; the best of several runs counts."""
    best: dict[str, Measured] = {}
    for _ in range(repeats):
        for name in names:
            found = apart(name, folder, **environment)
            if name not in best or found.seconds < best[name].seconds:
                best[name] = found
    for name, found in best.items():
        ratio = found.seconds / best[names[0]].seconds
        print(f"{name:14}{found.seconds:8.1f} s{ratio:7.2f}{found.peak_gb:7.2f} GB  {found.said}")


def large_map(folder: Path, sample: int, more: list[str]) -> None:
    """``lowland map`` of all files; its time, and the peak memory of the process."""
    out = Path(tempfile.mkdtemp(dir=folder.parent)) / "map"
    command = [sys.executable, "-m", "lowland", "map", f"{folder}/*.parquet", "-o", str(out)]
    command += ["--sample", str(sample), "--color", "kind", *more]
    start = time.perf_counter()
    subprocess.run(["/usr/bin/time", "-v", *command], check=True)
    print(f"{time.perf_counter() - start:.0f} s, results in {out}")


# --- many tasks -------------------------------------------------------------------------------


class CountedChunk(NamedTuple):
    """Rows that are made from their number, at next to no cost."""

    first: int
    n_rows: int

    @property
    def identity(self) -> tuple[int, int]:
        return tuple(self)

    @property
    def source(self) -> str:
        return f"rows from {self.first}"

    def read(self, start: int) -> Any:
        from lowland._base.rows.chunks import Block

        few = np.arange(start, start + 4, dtype=np.float64)[:, None]
        return Block(np.hstack([few, few * 2]), start, source=self.source)


def first_sum(block: Any) -> float:
    return float(block.X[0, 0])


def add(a: float, b: float) -> float:
    return a + b


def many_tasks(n_rows: int) -> None:
    """Tasks of a billion rows, and the memory of the scheduler when it has gone through them."""
    from lowland._base.rows.chunks import TASK_ROWS
    from lowland._base.rows.table import Rows
    from lowland.chunks import Dask

    chunks = [CountedChunk(i, min(TASK_ROWS, n_rows - i)) for i in range(0, n_rows, TASK_ROWS)]
    rows = Rows(chunks, 50)
    start = time.perf_counter()
    stream = rows.total(first_sum, add)
    streamed = time.perf_counter() - start
    with Dask("local:4") as cluster:
        start = time.perf_counter()
        spread = rows.total(first_sum, add)
        taken = time.perf_counter() - start
        memory = cluster.client.run_on_scheduler(peak_so_far)
    each = taken / len(rows.tasks)
    print(
        f"{n_rows} rows, {len(rows.tasks)} tasks: stream {streamed:.1f} s, 4 workers {taken:.1f} s "
        f"({1e3 * each:.2f} ms per task), peak of the scheduler's process {memory / 1e9:.2f} GB, "
        f"same result {stream == spread}"
    )


# --- neighbors across parts -------------------------------------------------------------------


def graph(n: int) -> None:
    """Recall of the graph across parts, by the number of copies of each row."""
    from lowland import PCA
    from lowland._base.rows.arrays import array_rows
    from lowland.chunks import knn_graph

    X = np.load(DATA / "mnist.npz")["X"][:n].astype(np.float32)
    rows = array_rows(np.ascontiguousarray(PCA(50).fit_transform(X)))
    print(f"MNIST, {n} x 50, 15 neighbors: recall on a sample, seconds")
    for parts in (16, 64):
        for copies in (2, 3, 4):
            start = time.perf_counter()
            found = knn_graph(rows, 15, n_parts=parts, copies=copies, target_recall=0.0)
            taken = time.perf_counter() - start
            print(f"{parts:4} parts, {copies} copies: {found.recall_:.4f} {taken:6.1f} s")
    start = time.perf_counter()
    found = knn_graph(rows, 15)
    print(f"default: recall {found.recall_:.4f}, {time.perf_counter() - start:.1f} s")


# --- curves -----------------------------------------------------------------------------------


def growth() -> None:
    """A stream beside memory for more and more rows, and for more and more columns."""
    from lowland import PCA
    from lowland._base.rows.arrays import array_rows

    print("rows x columns: PCA + transform in memory, of chunks (s)")
    shapes = [(n, 10) for n in (100, 1000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000)]
    for n, p in [
        *shapes,
        (100_000, 100),
        (20_000, 1000),
        (5000, 3000),
        (5000, 4000),
        (500, 20_000),
    ]:
        X = np.random.default_rng(0).standard_normal((n, p)) * np.linspace(1, 2, p)
        times = []
        for table in (X, array_rows(X)):
            start = time.perf_counter()
            placed = PCA(2, random_state=0).fit(table).transform(table)
            if table is not X:
                for _block in placed.blocks():
                    pass
            times.append(time.perf_counter() - start)
        print(f"{n:9} x {p:6}: {times[0]:8.3f} {times[1]:8.3f}")


def placing() -> None:
    """New rows in t-SNE maps of more and more rows: milliseconds of CPU time per row."""
    from lowland import TSNE

    print("fitted rows, new rows: CPU ms per row in the first call, in the second")
    for n in (1000, 10_000, 100_000, 300_000):
        X = clusters(n + 20_000, 50, 0)[0].astype(np.float32)
        tsne = TSNE(max_iter=20, early_exaggeration_iter=0, random_state=0).fit(X[:n])
        for m in (1, 100, 20_000):
            taken = []
            for _ in range(2):
                start = time.process_time()
                tsne.transform(X[n : n + m])
                taken.append(1e3 * (time.process_time() - start) / m)
            print(f"{n:8} {m:6}: {taken[0]:9.3f} {taken[1]:9.3f}")


PCA_RUNS = ["read_twice", "chunks_twice", "pca_stream"]
STEPS: dict[str, Callable[[argparse.Namespace], None]] = {
    "make": lambda given: make(given.folder, given.rows, given.columns),
    "pca": lambda given: beside(given.folder, PCA_RUNS, given.repeats, LOWLAND_MEMORY_LIMIT="1GB"),
    "workers": lambda given: beside(given.folder, ["pca_stream", "pca_workers"], given.repeats),
    "map": lambda given: large_map(given.folder, given.sample, given.more),
    "tasks": lambda given: many_tasks(1_000_000_000),
    "graph": lambda given: graph(40_000),
    "growth": lambda given: growth(),
    "placing": lambda given: placing(),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path("scale-data"))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--sample", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("more", nargs="*", help="options of 'lowland map', after --")
    for step in STEPS:
        parser.add_argument(f"--{step}", action="store_true")
    parser.add_argument("--work", choices=list(WORK), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        here(given.work, given.folder, given.out)
    for step, work in STEPS.items():
        if getattr(given, step):
            work(given)


if __name__ == "__main__":
    main()

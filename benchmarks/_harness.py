"""Side-by-side timing: candidates take turns on the same data in the same process.

The machine may be noisy, so only ratios from one run mean anything: candidates run round-robin,
the best of several runs counts, and quality stands beside time. Peak memory above the input is
measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(os.environ.get("LOWLAND_DATA", "data"))


class Case(NamedTuple):
    """One piece of work, and who can do it: name -> function of the data."""

    name: str
    load: Callable[[], Any]
    candidates: dict[str, Callable[[Any], Any]]
    quality: Callable[[Any, Any], float | dict[str, float]]  # one number, or several by name
    quality_name: str


def main(cases: list[Case], repeats: int = 7, patience: float = 15.0) -> None:
    """Run the cases asked for on the command line and print a table and JSON lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=[case.name for case in cases])
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--only", help="candidates beside lowland, separated by commas")
    parser.add_argument("--no-memory", action="store_true", help="do not run again for the peak")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for case in cases:
        if options.case in (None, case.name):
            if options.memory_of:
                print(peak_memory_here(case, options.memory_of))
            else:
                run(_chosen(case, options.only), options.repeats, patience, not options.no_memory)


def _chosen(case: Case, only: str | None) -> Case:
    if only is None:
        return case
    wanted = {"lowland", *only.split(",")}
    kept = {name: work for name, work in case.candidates.items() if name in wanted}
    return case._replace(candidates=kept)


def run(case: Case, repeats: int, patience: float, with_memory: bool = True) -> None:
    """Round-robin; a candidate that has used up its patience (seconds) sits the rest out."""
    try:
        data = case.load()
    except FileNotFoundError as error:
        print(f"\n{case.name}: skipped, {error.filename} is not there (set LOWLAND_DATA)")
        return
    times: dict[str, list[float]] = {name: [] for name in case.candidates}
    quality: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, candidate in case.candidates.items():
            if sum(times[name]) > patience:
                continue
            start = time.perf_counter()
            result = candidate(data)
            times[name].append(time.perf_counter() - start)
            if name not in quality:
                measured = case.quality(data, result)
                named = measured if isinstance(measured, dict) else {case.quality_name: measured}
                quality[name] = named
            del result
    ours = min(times["lowland"])
    peers = {name: min(taken) for name, taken in times.items() if name != "lowland"}
    peers = peers or {"lowland": ours}
    best_peer = min(peers, key=peers.__getitem__)
    print(f"\n{case.name}  (best of up to {repeats}; ratio to the best peer, {best_peer})")
    print(f"{'':32}{'seconds':>9}{'ratio':>8}{'peak MB':>9}  {case.quality_name}")
    for name, taken in times.items():
        record = {
            "case": case.name,
            "candidate": name,
            "seconds": round(min(taken), 4),
            "ratio_to_best_peer": round(min(taken) / peers[best_peer], 3),
            "lowland_ratio": round(ours / min(taken), 3),
            "peak_mb_above_input": peak_memory(case, name) if with_memory else float("nan"),
            **quality[name],
            "runs": len(taken),
        }
        print(
            f"{name:32}{record['seconds']:9.3f}{record['ratio_to_best_peer']:8.2f}"
            f"{record['peak_mb_above_input']:9.0f}  "
            + "  ".join(f"{value:.4g}" for value in quality[name].values())
        )
        print(json.dumps(record), file=sys.stderr)


def peak_memory(case: Case, candidate: str) -> float:
    """Megabytes above the loaded input at the peak, in a fresh process."""
    command = [sys.executable, sys.argv[0], "--case", case.name, "--memory-of", candidate]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def peak_memory_here(case: Case, candidate: str) -> float:
    data = case.load()
    run_once = case.candidates[candidate]
    small = data[:200]  # load the candidate's libraries before measuring
    run_once(small)
    before = current_memory()
    reset_peak()
    run_once(data)
    return (peak_so_far() - before) / 1e6


def current_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_so_far() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")

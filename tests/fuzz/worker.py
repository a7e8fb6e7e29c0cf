"""A process that runs cases until something ends it; its parent notices."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from fuzz.cases import Finding, run_case

MEMORY = 8 << 30  # of address space
GROWTH = 1 << 30  # of resident memory by one case


def work(cpu_seconds: float) -> int:
    """Read names of cases, one per line, and answer each with one line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a case prints is not an answer
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(all_threads=False)
    # The processor time of a case is limited by a signal that ends the process.
    faulthandler.register(signal.SIGPROF, all_threads=False, chain=True)
    os.environ["LOWLAND_MEMORY_LIMIT"] = "2GB"
    with tempfile.TemporaryDirectory(prefix="lowland-fuzz-") as folder:
        os.chdir(folder)
        for line in sys.stdin:
            answers.write(json.dumps(_answer(line.strip(), cpu_seconds)) + "\n")
            answers.flush()
        os.chdir("/")
    return 0


def _answer(case: str, cpu_seconds: float) -> dict[str, object]:
    start, written = time.monotonic(), _stderr_size()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        finding = run_case(case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if finding is None and grown > GROWTH:
        finding = Finding(case, "Memory", f"{grown / 1e9:.1f} GB more than before", "")
    if finding is None and _stderr_size() > written:
        said = _stderr_since(written)
        # Rust prints the panic of a thread of polars before Python hears of it as an error. The
        # command line hides it; a library must not redirect the descriptors of its process.
        if not (case.startswith("files:") and "panicked at crates/polars" in said):
            finding = Finding(case, "Stderr", said, "")
    gc.collect(0)
    _clean()
    return {
        "case": case,
        "seconds": time.monotonic() - start,
        "finding": None if finding is None else list(finding),
    }


def _stderr_size() -> int:
    return os.fstat(2).st_size


def _stderr_since(start: int) -> str:
    with open("/dev/fd/2", errors="replace") as file:
        file.seek(start)
        return " ".join(file.read(2000).split())[:300]


def _clean() -> None:
    """Remove what a case has left in the current folder."""
    for path in Path().iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

"""Runs tests with the kernels that other processors would take.

The last digits of a result depend on the kernels of OpenBLAS, which ``OPENBLAS_CORETYPE`` chooses,
and on our own, which ``LOWLAND_INSTRUCTION_SET`` chooses. No test may depend on them. This runs the
tests of what is promised (or those that are named) as two processors of other kinds would, one of
them without AVX2:

    python tests/processors.py                            # reference, contract and docs tests
    python tests/processors.py -n 2 tests/metrics         # options and paths of pytest
    python tests/processors.py --core Sandybridge         # one kind only; --baseline: without AVX2
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("tests/reference", "tests/contract", "tests/docs")
CORES = ("Haswell", "Nehalem", "Sandybridge")  # with AVX2, without AVX, with AVX
SAME = {"Zen": "Haswell"}  # core types that have the kernels of another one
ARCHITECTURES = """
import numpy, scipy.linalg, threadpoolctl
found = {each.get("architecture") for each in threadpoolctl.threadpool_info()}
print(*sorted(map(str, found)))
"""


class Processor(NamedTuple):
    """A kind of processor: its kernels of OpenBLAS, and whether ours are the baseline."""

    core: str
    baseline: bool

    def environment(self) -> dict[str, str]:
        """The environment of a process that takes these kernels."""
        chosen = {"LOWLAND_INSTRUCTION_SET": "baseline"} if self.baseline else {}
        return {**os.environ, "OPENBLAS_CORETYPE": self.core, **chosen}

    def __str__(self) -> str:
        return f"OPENBLAS_CORETYPE={self.core}" + (
            " LOWLAND_INSTRUCTION_SET=baseline" if self.baseline else ""
        )


def architecture(environment: dict[str, str]) -> str:
    """The kernels that OpenBLAS takes in such an environment, in numpy and in scipy."""
    command = [sys.executable, "-c", ARCHITECTURES]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def others(own: str) -> list[Processor]:
    """Two kinds that differ from this processor; the older one lacks AVX2.

    >>> [str(each) for each in others("SkylakeX")]
    ['OPENBLAS_CORETYPE=Haswell', 'OPENBLAS_CORETYPE=Nehalem LOWLAND_INSTRUCTION_SET=baseline']
    """
    first, second = [core for core in CORES if core != SAME.get(own, own)][:2]
    return [Processor(first, False), Processor(second, True)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests as each processor; the exit code is 1 if a test failed as one of them."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--core", help="only this core type of OpenBLAS")
    parser.add_argument("--baseline", action="store_true", help="with --core: without AVX2")
    options, arguments = parser.parse_known_args(argv)
    paths = [] if any((ROOT / each.split("::")[0]).exists() for each in arguments) else TESTS
    processors = [Processor(options.core, options.baseline)] if options.core else None
    failed = False
    for processor in processors or others(architecture({**os.environ, "OPENBLAS_CORETYPE": ""})):
        taken = architecture(processor.environment())
        print(f"{processor} ({taken})", flush=True)  # noqa: T201
        # OpenBLAS takes its own choice where it lacks the kernels or the processor cannot run them.
        if taken not in (processor.core, SAME.get(processor.core)):
            print(f"OpenBLAS takes {taken} instead: nothing to try.", flush=True)  # noqa: T201
            failed = True
            continue
        command = [sys.executable, "-m", "pytest", *arguments, *paths]
        done = subprocess.run(command, cwd=ROOT, env=processor.environment())
        failed = failed or done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

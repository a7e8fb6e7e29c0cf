"""Plants one error at a time in a copy of the package and asks whether a test notices it.

The errors are listed in ``tests/planted/*.toml``, one file per room. Each of them names a file of
``src/lowland``, a text that occurs there exactly once, the wrong text that takes its place, and the
tests that must fail. ``make mutants`` runs all of them; ``make mutants ARGS="mds --jobs 1"`` runs
those whose name or file holds a word.

The named tests run once without any error first, because a test that always fails notices nothing.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import dataclasses
import functools
import os
import py_compile
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "lowland"
PLANTED = ROOT / "tests" / "planted"
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-m", ""]
SECONDS = 120  # a run of the named tests takes some seconds
BASELINE_SECONDS = 900  # of all named tests, without an error

KILLED, SURVIVED = "killed", "SURVIVED"
TIMED_OUT = "killed (by the time limit)"
NOT_APPLICABLE, BROKEN_TEST = "does not apply", "test fails by itself"
BROKEN_PLANT = "is no program"  # any test would notice it
SLIP = re.compile(r"^[E|\s]*(NameError|UnboundLocalError|ImportError|ModuleNotFoundError):", re.M)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One planted error, and the tests that must notice it."""

    family: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.family}: {self.name}"

    def planted_in(self, source: str) -> str:
        """The source with the error; ``ValueError`` if the old text is not there exactly once."""
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"the text occurs {count} times in {self.file}, not once")
        if self.old == self.new:
            raise ValueError(f"the planted text leaves {self.file} as it is")
        return source.replace(self.old, self.new)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    status: str
    seconds: float = 0.0
    detail: str = ""

    @property
    def is_good(self) -> bool:
        return self.status in (KILLED, TIMED_OUT)


def all_mutants() -> list[Mutant]:
    """The planted errors of all families."""
    found = []
    for path in sorted(PLANTED.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            tests = tuple(entry.pop("tests"))
            # a literal text of several lines ends with the line end before its last quotes
            old, new = entry.pop("old").removesuffix("\n"), entry.pop("new").removesuffix("\n")
            found.append(Mutant(family=path.stem, old=old, new=new, tests=tests, **entry))
    return found


def chosen(mutants: Sequence[Mutant], words: Sequence[str]) -> list[Mutant]:
    """Those whose title or file holds one of the words; all of them without a word."""
    return [m for m in mutants if not words or any(w in m.title or w in m.file for w in words)]


class Copy:
    """A copy of the package in a folder of its own, in which tests run."""

    def __init__(self, folder: Path, kernels: Path) -> None:
        self.folder, self.package = folder, folder / "lowland"
        ignored = shutil.ignore_patterns("*.cpp", "*.h", "*.so", "*.pyd", "__pycache__")
        shutil.copytree(PACKAGE, self.package, ignore=ignored)
        shutil.copy2(kernels, self.package / "_native" / kernels.name)
        # valid by the content of the source: a planted file and a restored one are compiled anew
        compileall.compile_dir(
            self.package,
            quiet=1,
            invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
        )

    def environment(self) -> dict[str, str]:
        held = {name: value for name, value in os.environ.items() if name != "LOWLAND_DATA"}
        return {
            **held,
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # to import them takes longer than most tests
        }

    def check_import(self) -> None:
        """Refuse to go on if tests would import another lowland than this copy."""
        code = "import lowland, lowland._native.kernels as k; print(lowland.__file__, k.__file__)"
        found = subprocess.run(
            [sys.executable, "-c", code],
            env=self.environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        if not all(path.startswith(str(self.folder)) for path in found):
            raise SystemExit(
                f"tests would import {found[0]} instead of the copy, as they do with an editable "
                "install; run `make mutants`, which installs the wheel."
            )

    def run(self, tests: Sequence[str], *options: str, seconds: float) -> tuple[int | None, str]:
        """The exit code of pytest and its output; None if it took too long."""
        process = subprocess.Popen(
            [sys.executable, *PYTEST, *options, *tests],
            env=self.environment(),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=seconds)
            return process.returncode, text
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]

    def try_out(self, mutant: Mutant) -> Outcome:
        """Plant the error, run its tests, and remove the error again."""
        path = self.package / mutant.file
        source = path.read_text(encoding="utf-8")
        try:
            planted = mutant.planted_in(source)
            compile(planted, mutant.file, "exec")
        except (ValueError, SyntaxError) as error:
            return Outcome(mutant, NOT_APPLICABLE, detail=str(error))
        start = time.perf_counter()
        path.write_text(planted, encoding="utf-8")
        try:
            code, text = self.run(mutant.tests, "-x", seconds=SECONDS)
        finally:
            path.write_text(source, encoding="utf-8")
        taken = time.perf_counter() - start
        if code is None:
            return Outcome(mutant, TIMED_OUT, taken, f"{SECONDS} s")
        if code == 0:
            return Outcome(mutant, SURVIVED, taken, ", ".join(mutant.tests))
        if code > 1 or SLIP.search(text):
            return Outcome(mutant, BROKEN_PLANT, taken, f"pytest ended with {code}: {text[-600:]}")
        # a test failed, or a signal ended the process
        return Outcome(mutant, KILLED, taken, _first_failure(text))


def exists(test: str) -> bool:
    """Whether a file or folder of tests, or a function in a file, is there."""
    place, _, function = test.partition("[")[0].partition("::")  # a case is not looked up
    path = ROOT / place
    if not function:
        return path.exists()
    return path.is_file() and function in _functions(path)


@functools.cache
def _functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def _first_failure(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0][:160] if lines else ""


def failing(text: str) -> list[str]:
    """Node ids of what failed, from the summary of pytest."""
    lines = [line.split() for line in text.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return [words[1] for words in lines if len(words) > 1]


def broken_tests(copies: Sequence[Copy], mutants: Sequence[Mutant]) -> list[str]:
    """Node ids of named tests that fail although no error is planted, or that do not exist."""
    named = sorted({test for mutant in mutants for test in mutant.tests})
    tests = [test for test in named if exists(test)]
    files = sorted({test.partition("::")[0] for test in tests})
    # a file that is named as a whole contains its tests that are named one by one
    whole = {test for test in tests if "::" not in test}
    parts = [
        [
            test
            for test in tests
            if test.partition("::")[0] in files[place :: len(copies)]
            and (test in whole or test.partition("::")[0] not in whole)
        ]
        for place in range(len(copies))
    ]
    with ThreadPoolExecutor(len(copies)) as pool:
        runs = pool.map(
            lambda copy, part: copy.run(part, seconds=BASELINE_SECONDS) if part else (0, ""),
            copies,
            parts,
        )
        found = [test for test in named if test not in tests]
        for code, text in runs:
            if code not in (0, 1):
                raise SystemExit(f"the tests cannot run without an error, either:\n{text}")
            found += failing(text)
    return found


def outcomes(
    copies: Sequence[Copy], mutants: Sequence[Mutant], broken: Sequence[str]
) -> Iterator[Outcome]:
    """Try all mutants, one per copy at a time; results as they come, in order."""
    free: queue.Queue[Copy] = queue.Queue()
    for copy in copies:
        free.put(copy)

    def outcome(mutant: Mutant) -> Outcome:
        useless = [b for b in broken if any(b.startswith(test) for test in mutant.tests)]
        if useless:
            return Outcome(mutant, BROKEN_TEST, detail=", ".join(useless))
        copy = free.get()
        try:
            return copy.try_out(mutant)
        finally:
            free.put(copy)

    pool = ThreadPoolExecutor(len(copies))
    try:
        yield from pool.map(outcome, mutants)
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for those that have not begun


def compiled_kernels() -> Path:
    """The compiled kernels of the lowland that this Python imports."""
    from lowland._native import kernels

    return Path(kernels.__file__)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="only errors whose name or file holds a word")
    parser.add_argument("--jobs", type=int, default=2, help="errors that are tried at a time")
    parser.add_argument(
        "--trust-tests", action="store_true", help="do not run the tests without an error first"
    )
    parser.add_argument("--verbose", action="store_true", help="show the test that noticed")
    parser.add_argument("--list", action="store_true", help="show the errors and try none")
    options = parser.parse_args(arguments)
    mutants = chosen(all_mutants(), options.words)
    if not mutants:
        parser.error(f"no planted error has {' or '.join(options.words)} in its name")
    if options.list:
        for mutant in mutants:
            print(f"{mutant.title}  [{mutant.file}]  {' '.join(mutant.tests)}")
        return 0
    start, found = time.perf_counter(), []
    with tempfile.TemporaryDirectory(prefix="lowland-mutants-") as folder:
        kernels = compiled_kernels()
        n_copies = max(1, min(options.jobs, len(mutants)))
        copies = [Copy(Path(folder) / str(number), kernels) for number in range(n_copies)]
        copies[0].check_import()
        broken = [] if options.trust_tests else broken_tests(copies, mutants)
        for outcome in outcomes(copies, mutants, broken):
            found.append(outcome)
            print(f"{outcome.seconds:6.1f} s  {outcome.status:10}  {outcome.mutant.title}")
            if outcome.status != KILLED or options.verbose:
                print(f"            {outcome.detail}", flush=True)
    bad = [outcome for outcome in found if not outcome.is_good]
    slow = [outcome for outcome in found if outcome.status == TIMED_OUT]
    print(
        f"{len(found) - len(bad)} of {len(found)} errors are noticed, {len(slow)} of them by the "
        f"time limit; {time.perf_counter() - start:.0f} s"
    )
    for outcome in bad:
        print(f"{outcome.status}: {outcome.mutant.title} [{outcome.mutant.file}]")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

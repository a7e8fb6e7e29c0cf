"""Makes one error at a time in a copy of the package and asks whether a test notices it.

Planted errors state mathematics: ``tests/planted/<room>.toml`` lists a file of ``src/lowland``, a
text that occurs there exactly once, the wrong text in its place, and the tests that must fail.
``make mutants`` tries all of them, ``make mutants ARGS="mds --jobs 1"`` those whose name or file
holds a word. The named tests run without any error first: a test that always fails notices nothing.

Random errors measure the tests: ``make mutants N=200 SEED=1 ROOM=mds`` draws small errors from the
syntax trees, runs the tests that execute the changed line, and lists the errors that survive.
``mutation/`` holds the parts. Neither mutmut 3 nor cosmic-ray does this here: mutmut makes no error
outside of functions and in decorated ones, such as properties, and chooses tests by function;
cosmic-ray runs one command for all mutants. Neither draws a sample by room or knows C++.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import functools
import itertools
import re
import signal
import sys
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from mutation import line_map, trying
from mutation.copies import PACKAGE, ROOT, TEST_SECONDS, here, workers

PLANTED = ROOT / "tests" / "planted"

KILLED, SURVIVED = "killed", "SURVIVED"
TIMED_OUT = "killed (by the time limit)"
NOT_APPLICABLE, BROKEN_TEST = "does not apply", "test fails by itself"
BROKEN_PLANT = "is not a program"  # any test would notice it
NO_TESTS = 5  # exit code of pytest
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
    """What became of a planted error."""

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


def try_planted(mutant: Mutant) -> Outcome:
    """Plant the error in the copy of this worker, run its tests, and remove the error again."""
    path = here().package / mutant.file
    try:
        planted = mutant.planted_in(path.read_text(encoding="utf-8"))
        compile(planted, mutant.file, "exec")
    except (ValueError, SyntaxError) as error:
        return Outcome(mutant, NOT_APPLICABLE, detail=str(error))
    start = time.perf_counter()
    with here().planted(path, planted.encode()):
        run = here().run(mutant.tests, "-x")
    taken = time.perf_counter() - start
    if run.code == -signal.SIGALRM:
        return Outcome(mutant, TIMED_OUT, taken, f"{TEST_SECONDS:.0f} s")
    if run.code == 0:
        return Outcome(mutant, SURVIVED, taken, ", ".join(mutant.tests))
    if run.code > 1 or SLIP.search(run.text):
        detail = f"pytest ended with {run.code}: {run.text[-600:]}"
        return Outcome(mutant, BROKEN_PLANT, taken, detail)
    # a test failed, or a signal ended the process
    return Outcome(mutant, KILLED, taken, run.culprit)


def failing(tests: Sequence[str]) -> list[str]:
    """Node ids of what fails although no error is planted."""
    run = here().run(tests)
    if run.code not in (0, 1):
        raise RuntimeError(f"the tests cannot run without an error, either:\n{run.text}")
    return run.failed


def broken_tests(pool: Executor, jobs: int, mutants: Sequence[Mutant]) -> list[str]:
    """Node ids of named tests that fail although no error is planted, or that do not exist."""
    named = sorted({test for mutant in mutants for test in mutant.tests})
    tests = [test for test in named if exists(test)]
    # a file that is named as a whole contains its tests that are named one by one
    whole = {test for test in tests if "::" not in test}
    single = [test for test in tests if test in whole or line_map.file_of(test) not in whole]
    by_file = [list(group) for _, group in itertools.groupby(single, line_map.file_of)]
    parts = [list(itertools.chain(*by_file[place::jobs])) for place in range(jobs)]
    found = [test for test in named if test not in tests]
    return found + list(itertools.chain(*pool.map(failing, filter(None, parts))))


def run_planted(mutants: Sequence[Mutant], options: argparse.Namespace) -> int:
    start, found = time.perf_counter(), []
    with workers(options.jobs) as pool:
        broken = [] if options.trust_tests else broken_tests(pool, options.jobs, mutants)
        useless = {m: [b for b in broken if b.startswith(m.tests)] for m in mutants}
        found += [Outcome(m, BROKEN_TEST, 0.0, ", ".join(b)) for m, b in useless.items() if b]
        tried = pool.map(try_planted, [mutant for mutant in mutants if not useless[mutant]])
        for outcome in itertools.chain(tuple(found), tried):
            print(f"{outcome.seconds:6.1f} s  {outcome.status:10}  {outcome.mutant.title}")
            if outcome.status != KILLED or options.verbose:
                print(f"            {outcome.detail}", flush=True)
            if outcome.status != BROKEN_TEST:
                found.append(outcome)
    bad = [outcome for outcome in found if not outcome.is_good]
    slow = [outcome for outcome in found if outcome.status == TIMED_OUT]
    print(
        f"{len(found) - len(bad)} of {len(found)} errors are noticed, {len(slow)} of them by the "
        f"time limit; {time.perf_counter() - start:.0f} s"
    )
    for outcome in bad:
        print(f"{outcome.status}: {outcome.mutant.title} [{outcome.mutant.file}]")
    return 1 if bad else 0


def existing_tests(files: Sequence[str]) -> list[str]:
    """Node ids of the tests of some files that are not slow."""
    files = [file for file in files if (ROOT / file).exists()]
    if not files:
        return []
    run = here().run(files, "--collect-only", "-m", "not slow", idle=600)
    if run.code not in (0, NO_TESTS):
        raise RuntimeError(f"the tests cannot be collected:\n{run.text[-2000:]}")
    return [line for line in run.text.splitlines() if "::" in line]


def run_random(options: argparse.Namespace) -> int:
    sites = [s for s in trying.all_sites() if options.room in (None, s.room)]
    sample = trying.drawn(sites, options.random, options.seed)
    if not sample:
        raise SystemExit(f"there is no room {options.room}, or nothing to change in it")
    if options.list:
        for site in sample:
            source = (PACKAGE / site.file).read_bytes()
            print(f"{site.file}:{site.line}  {site.operator}  {site.change(source)}")
        return 0
    print(
        f"{len(sample)} of {len(sites)} errors; each has at most {line_map.MOST_TESTS} tests that "
        f"take at most {line_map.MOST_SECONDS:.0f} s of a processor, those first that run its line"
    )
    start, verdicts = time.perf_counter(), []
    with workers(options.jobs) as pool:
        known = line_map.LineMap()
        known.update(pool.submit(existing_tests, sorted(known.changed_tests)).result())
        if known.changed:
            print(f"{len(known.changed)} files have changed since the map was made (--remap)")
        tests = [{t: known.seconds[t] for t in known.tests(site)} for site in sample]
        for site, verdict in zip(sample, pool.map(trying.try_out, sample, tests), strict=True):
            verdicts.append(verdict)
            change = site.change((PACKAGE / site.file).read_bytes())
            print(
                f"{verdict.seconds:6.1f} s  {verdict.status}  {site.room}  {site.file}:{site.line}"
                f"  {site.operator}: {change}  [{verdict.detail}]",
                flush=True,
            )
    print_rates(verdicts)
    print(f"seed {options.seed}; {time.perf_counter() - start:.0f} s")
    return 0


def print_rates(verdicts: Sequence[trying.Verdict]) -> None:
    """A table by room, and the errors that nobody noticed."""
    rooms: dict[str, list[trying.Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        if verdict.counts:
            rooms[verdict.site.room].append(verdict)
            rooms["all"].append(verdict)
    rooms["all"] = rooms.pop("all", [])
    print(f"\n{'room':14} mutants  killed    rate  not covered")
    for room, members in rooms.items():
        killed = sum(v.is_killed for v in members)
        open_lines = sum(v.status == trying.NOT_COVERED for v in members)
        rate = f"{killed / max(1, len(members)):.1%}"
        print(f"{room:14} {len(members):7}  {killed:6}  {rate:>6}  {open_lines:11}")
    for verdict in verdicts:
        if verdict.counts and not verdict.is_killed:
            print(f"\n{verdict.status} {verdict.detail}\n{verdict.difference()}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="only planted errors whose name or file holds one")
    parser.add_argument("--jobs", type=int, default=2, help="errors that are tried at a time")
    parser.add_argument(
        "--trust-tests", action="store_true", help="do not run the tests without an error first"
    )
    parser.add_argument("--verbose", action="store_true", help="show the test that noticed")
    parser.add_argument("--list", action="store_true", help="show the errors and try none")
    parser.add_argument("--random", type=int, metavar="N", help="try N random errors instead")
    parser.add_argument("--seed", type=int, default=1, help="of the random errors")
    parser.add_argument("--room", help="only errors of one folder: mds, engines, native, ...")
    parser.add_argument("--remap", action="store_true", help="record anew which tests run a line")
    parser.add_argument("--coverage", action="store_true", help="show the lines that tests run")
    options = parser.parse_args(arguments)
    # a shell starts background jobs without interrupts, but some tests send them
    signal.signal(signal.SIGINT, signal.default_int_handler)
    uses_map = options.coverage or (options.random and not options.list)
    if options.remap or (uses_map and not (line_map.FOLDER / "map" / "sources.json").exists()):
        line_map.record(options.jobs)
    if options.coverage or (options.remap and not options.random):
        for room, (run, total) in line_map.LineMap().coverage().items():
            print(f"{room:14} {run:6} of {total:6} lines  {run / max(total, 1):6.1%}")
        return 0
    if options.random:
        return run_random(options)
    mutants = chosen(all_mutants(), options.words)
    if not mutants:
        parser.error(f"no planted error has {' or '.join(options.words)} in its name")
    if options.list:
        for mutant in mutants:
            print(f"{mutant.title}  [{mutant.file}]  {' '.join(mutant.tests)}")
        return 0
    return run_planted(mutants, options)


if __name__ == "__main__":
    sys.exit(main())

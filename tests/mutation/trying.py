"""A random sample of errors, and what becomes of each when its tests run."""

from __future__ import annotations

import collections
import dataclasses
import difflib
import functools
import random
import signal
import time
from collections.abc import Iterable

from mutation.copies import PACKAGE, here
from mutation.kernels import build, kernel_sites
from mutation.line_map import file_of
from mutation.sites import Site, python_sites

KILLED, SURVIVED, TIMED_OUT = "killed", "SURVIVED", "killed (time limit)"
NOT_COVERED, NO_PROGRAM = "NOT COVERED", "does not compile"
NATIVE_SHARE = 0.1  # of a sample of all rooms, because each of these has to be compiled
FIRST = 20  # tests that are collected and run first, because most errors do not outlive them


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of an error."""

    site: Site
    status: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        return self.status != NO_PROGRAM

    @property
    def is_killed(self) -> bool:
        return self.status in (KILLED, TIMED_OUT)

    def difference(self) -> str:
        """The error as a unified diff without lines around it."""
        source = (PACKAGE / self.site.file).read_bytes()
        before, after = source.decode(), self.site.planted_in(source).decode()
        name = f"src/lowland/{self.site.file}"
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), name, name, n=0, lineterm=""
        )
        return "\n".join(lines)


def all_sites() -> list[Site]:
    """All errors that can be made in the package."""
    files = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
    found = [site for file in files for site in python_sites(file, (PACKAGE / file).read_bytes())]
    return found + kernel_sites()


def drawn(sites: Iterable[Site], count: int, seed: int) -> list[Site]:
    """A sample in which each room has its share of the sites, but kernels at most a tenth.

    A larger sample of the same seed contains the smaller ones, up to rounding of the shares.
    """
    rooms: dict[str, list[Site]] = collections.defaultdict(list)
    for site in sites:
        rooms[site.room].append(site)
    weights = {room: float(len(members)) for room, members in rooms.items()}
    others = sum(weights.values()) - weights.get("native", 0.0)
    if others and "native" in weights:
        most = others * NATIVE_SHARE / (1 - NATIVE_SHARE)
        weights["native"] = min(weights["native"], most)
    total = sum(weights.values())
    exact = {room: count * weight / total for room, weight in weights.items()}
    sizes = {room: int(share) for room, share in exact.items()}
    by_remainder = sorted(exact, key=lambda room: (sizes[room] - exact[room], room))
    for room in by_remainder[: count - sum(sizes.values())]:
        sizes[room] += 1
    chosen = []
    for room in sorted(rooms):
        order = random.Random(f"{seed} {room}").sample(rooms[room], len(rooms[room]))
        chosen += order[: sizes[room]]
    return chosen


def try_out(site: Site, tests: dict[str, float]) -> Verdict:
    """Make the error in the copy of this worker and run its tests until one of them fails.

    The tests come in their order, with the seconds that each of them takes.
    """
    begin = time.perf_counter()
    wrong, path = site.planted_in((PACKAGE / site.file).read_bytes()), here().package / site.file
    if site.is_native and tests:
        built = build(site.file, wrong)
        if built is None:
            return Verdict(site, NO_PROGRAM)
        wrong, path = built, here().kernels
    elif not site.is_native and not _compiles(wrong):
        return Verdict(site, NO_PROGRAM)
    while tests:
        with here().planted(path, wrong):
            status, detail = _outcome(tests)
        if status == SURVIVED or _passes(detail or tuple(tests)):
            return Verdict(site, status, detail, time.perf_counter() - begin)
        if not detail:
            raise RuntimeError("the recorded tests cannot be collected: use --remap")
        # what fails without an error, too, notices nothing
        tests = {test: s for test, s in tests.items() if detail not in (test, file_of(test))}
    return Verdict(site, NOT_COVERED)


def _outcome(tests: dict[str, float]) -> tuple[str, str]:
    """The status, and the test that has decided it; none if no test could start."""
    order = list(tests)
    for part in filter(None, (order[:FIRST], order[FIRST:])):
        files = list(dict.fromkeys(map(file_of, part)))
        together = sorted(part, key=lambda test: files.index(file_of(test)))  # share fixtures
        run = here().run(together, "-x", seconds=lambda test: 30 + 10 * tests[test])
        if run.code != 0:
            return TIMED_OUT if run.code == -signal.SIGALRM else KILLED, run.culprit
    return SURVIVED, f"{len(tests)} tests, {sum(tests.values()):.0f} s"


@functools.cache
def _passes(tests: str | tuple[str, ...]) -> bool:
    """Whether a test passes without an error, or whether a file or several tests are collected."""
    if isinstance(tests, str) and "::" in tests:
        return here().run([tests]).code == 0
    return here().run([tests] if isinstance(tests, str) else tests, "--collect-only").code == 0


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "", "exec")
    except SyntaxError:
        return False
    return True

"""Which tests run a line of the package: recorded once, then asked for every mutant."""

from __future__ import annotations

import ast
import collections
import functools
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from mutation.copies import PACKAGE, ROOT, Copy, installed_kernels
from mutation.sites import FUNCTION, Site, room_of

FOLDER, TESTS = ROOT / "build" / "mutants", ROOT / "tests"
MOST_TESTS, MOST_SECONDS = 200, 90.0  # that are spent on one mutant, of processor time
NEW_TEST_SECONDS = 1.0  # of a test that is not in the map
PHASE = re.compile(r" \((setup|call|teardown)\)$")  # after the test that has started a program

SETTINGS = """[run]
source = {package}
data_file = {folder}/lines
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
patch = fork, _exit
disable_warnings = no-data-collected, module-not-imported, module-not-measured
"""


def record(jobs: int, *options: str) -> None:
    """Run the tests that are not slow once, and write the map; what fails is not in it."""
    import coverage

    shutil.rmtree(FOLDER / "map", ignore_errors=True)
    copy = Copy(FOLDER / "map", installed_kernels())
    sources = {"package": _digests(copy.package), "tests": _digests(TESTS)}
    settings = copy.folder / "coveragerc"
    settings.write_text(SETTINGS.format(package=copy.package, folder=copy.folder))
    environment = {
        **copy.environment(),
        "PYTHONPATH": os.pathsep.join(
            [str(copy.folder), str(TESTS), str(Path(__file__).parent / "startup")]
        ),
        "COVERAGE_PROCESS_START": str(settings),
        "LOWLAND_LINE_MAP": str(copy.folder),
    }
    del environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"], environment["PYTHONDONTWRITEBYTECODE"]
    command = ["-m", "pytest", "-q", "--tb=line", "-p", "mutation.recording", "-n", str(jobs)]
    subprocess.run([sys.executable, *command, *options], env=environment, cwd=ROOT, check=False)
    measured = coverage.Coverage(config_file=str(settings))
    measured.combine([str(copy.folder)])
    measured.save()
    (copy.folder / "sources.json").write_text(json.dumps(sources, indent=0))


class LineMap:
    """The recorded tests: how long each takes, and which of them run a line."""

    def __init__(self, folder: Path = FOLDER / "map") -> None:
        import coverage

        self.folder = folder
        self.seconds: dict[str, float] = {}
        self.not_passed: set[str] = set()
        self.new: set[str] = set()
        for path in folder.glob("tests-*.json"):
            tests = json.loads(path.read_text())
            self.seconds |= tests["seconds"]
            self.not_passed |= set(tests["not passed"])
        sources = json.loads((folder / "sources.json").read_text())
        self.changed = _changed(sources["package"], PACKAGE)
        self.changed_tests = {
            f"tests/{file}"
            for file in _changed(sources["tests"], TESTS)
            if Path(file).name.startswith("test_")
        }
        self.measured = coverage.Coverage(config_file=str(folder / "coveragerc"))
        self.measured.load()

    def update(self, existing: Iterable[str]) -> None:
        """Take the tests of the changed test files from a new collection.

        The lines that a new test runs are not recorded: see ``tests``.
        """
        recorded = self.seconds.keys() | self.not_passed
        self.new = {test for test in existing if test not in recorded}
        gone = {t for t in self.seconds if file_of(t) in self.changed_tests} - set(existing)
        self.seconds = {t: s for t, s in self.seconds.items() if t not in gone}
        self.seconds |= dict.fromkeys(self.new, NEW_TEST_SECONDS)

    @functools.cache  # noqa: B019
    def of_lines(self, file: str) -> dict[int, set[str]]:
        """The tests of each line of a file, as it was when the map was made."""
        found = self.measured.get_data().contexts_by_lineno(str(self.folder / "lowland" / file))
        return {
            line: {PHASE.sub("", test) for test in tests} & self.seconds.keys()
            for line, tests in found.items()
        }

    @functools.cache  # noqa: B019
    def of_functions(self, file: str) -> set[str]:
        """The tests that run any function of a file; for its other lines nobody knows."""
        path = self.folder / "lowland" / file
        source = path.read_bytes() if path.exists() else b""
        inside = {
            line
            for node in ast.walk(ast.parse(source))
            if isinstance(node, FUNCTION)
            for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        }
        return set().union(*(t for line, t in self.of_lines(file).items() if line in inside))

    def running(self, site: Site) -> set[str]:
        """The tests that run a line, or the functions of its file if that is not recorded."""
        if site.is_native:
            return self._of_kernel(site.file)
        if site.at_import or site.file in self.changed:
            folder = Path(site.file).parent
            beside = [str(folder / path.name) for path in (PACKAGE / folder).glob("*.py")]
            return self.of_functions(site.file) or set().union(*map(self.of_functions, beside))
        lines = self.of_lines(site.file)
        first, last = site.lines
        return lines.get(site.line) or set().union(
            *(lines.get(line, ()) for line in range(first, last + 1))
        )

    def tests(self, site: Site) -> list[str]:
        """The tests for a mutant, those first that are likely to notice it; none if none run it.

        After those that run the line come new ones that name the module or stand beside tests of
        it. Then come the others of the same test files, and those that run another function of the
        module: of several tests that share a fixture or a cached result only the first has run the
        line.
        """
        names = [part.strip("_") for part in Path(site.file).with_suffix("").parts]
        running = self.running(site)
        if site.is_native:
            return within_limits(in_turns(running, self.seconds, names), self.seconds)
        of_module = running | self.of_functions(site.file)
        files = {file_of(test) for test in of_module}
        new = {test for test in self.new if names[-1] in test or file_of(test) in files} - running
        beside = {file_of(test) for test in running}
        others = of_module | {test for test in self.seconds if file_of(test) in beside}
        groups = [running, new, others - running - new if running else ()]
        order = itertools.chain(*(in_turns(group, self.seconds, names) for group in groups))
        return within_limits(order, self.seconds)

    def coverage(self) -> dict[str, tuple[int, int]]:
        """The lines of each room that tests run, and all its lines of code."""
        found: dict[str, tuple[int, int]] = collections.defaultdict(lambda: (0, 0))
        package = self.folder / "lowland"
        for path in sorted(package.rglob("*.py")):
            _, lines, _, missing, _ = self.measured.analysis2(str(path))
            for room in (room_of(str(path.relative_to(package))), "all"):
                run, total = found[room]
                found[room] = run + len(lines) - len(missing), total + len(lines)
        return dict(sorted(found.items(), key=lambda item: (item[0] == "all", item[0])))

    def _of_kernel(self, file: str) -> set[str]:
        """The tests of the folder of a kernel; those of all kernels for what they share."""
        folder = Path(file).parent.name
        places = ["native/"] if folder == "common" else [f"native/{folder}/", f"engines/{folder}/"]
        # kernels with errors are built for one instruction set
        return {
            test
            for test in self.seconds
            if test.startswith(tuple(f"tests/{place}" for place in places)) and "avx2" not in test
        }


def file_of(test: str) -> str:
    return test.partition("::")[0]


def in_turns(tests: Iterable[str], seconds: dict[str, float], names: list[str]) -> list[str]:
    """Fast tests first, in turns of the test files; before them those that name the module.

    A line of the core is run by thousands of tests, and the fastest of all are much alike. The
    names are the folders and the module: a test that names more of them comes first.
    """
    turns: dict[str, int] = collections.Counter()
    keys = {}
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        named = sum(name in test for name in names)
        keys[test] = (-named, turns[file_of(test)], seconds[test], test)
        turns[file_of(test)] += 1
    return sorted(keys, key=lambda test: keys[test])


def within_limits(tests: Iterable[str], seconds: dict[str, float]) -> list[str]:
    """The first of the tests that fit; at least one."""
    kept: list[str] = []
    left = MOST_SECONDS
    for test in tests:
        if not kept or (seconds[test] <= left and len(kept) < MOST_TESTS):
            kept.append(test)
            left -= seconds[test]
    return kept


def _digests(folder: Path) -> dict[str, str]:
    """A digest of every Python file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.py"))
    }


def _changed(recorded: dict[str, str], folder: Path) -> set[str]:
    """Files that are new, gone or different."""
    now = _digests(folder)
    return {file for file in recorded.keys() | now.keys() if recorded.get(file) != now.get(file)}

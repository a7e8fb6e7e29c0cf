"""What the tests of a file may cost: processor time against ``tests/budget.toml``.

``--budget check`` names the files that have outgrown their row of the table and fails the run;
``--budget write`` writes the table anew. Counted is the processor time of the test and of the
processes that it has waited for. Machines differ in speed: the median ratio of a file to its row is
the speed of this one. Threads that wait for a core that others use take processor time, too, so
that a run on a busy machine or with more workers than cores names files but fails for none.
"""

from __future__ import annotations

import os
import statistics
import time
import tomllib
from pathlib import Path

import pytest

from lowland._base.threads import available_cpus

TABLE = Path(__file__).resolve().parents[1] / "budget.toml"
LISTED = 2.0  # seconds; a file that takes less has no row
GENEROUS = 1.5
GRACE = 6.0  # seconds: the first test of a process pays for the imports of libraries
PROPERTY = "processor time"
# Of the elapsed time, that the workers spend in tests: the rest is collection and other programs.
# It is 0.8 on an idle machine, and half of that beside a busy loop on each core.
QUIET = 0.6
# Eight minutes of two cores, on a machine on which all tests took 13.2 minutes before some were
# marked as slow. The table is from a slower machine, on which they took 19.2.
TOTAL = 16 * 60.0 * 19.2 / 13.2
HEAD = """\
# Processor time of each test file in seconds, as `make test ARGS="--budget write"` measured it.
# A file without a row takes less than 2 s. `make test` names the files that outgrow this by half.
"""


def read_table() -> dict[str, float]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def outgrown(table: dict[str, float], measured: dict[str, float]) -> list[str]:
    """A line for each file that takes more than 1.5 times its row, at the speed of this machine."""
    ratios = [measured[name] / table[name] for name in table if name in measured]
    speed = statistics.median(ratios) if ratios else 1.0
    allowed = {name: GRACE + GENEROUS * speed * table.get(name, LISTED) for name in measured}
    return [
        f"{name} took {measured[name]:.1f} s of processor time; {allowed[name]:.1f} s are allowed"
        for name in sorted(measured, key=measured.__getitem__, reverse=True)
        if measured[name] > allowed[name]
    ]


def is_quiet(measured: float, elapsed: float, workers: int, cores: int) -> bool:
    """Whether each worker had a core for itself."""
    return workers <= cores and measured > QUIET * workers * elapsed


def _spent() -> tuple[float, float]:
    """Processor time of this process, and of the processes that it has waited for."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


class Budget:
    """A plugin: workers measure, the process that started them adds up and compares."""

    def __init__(self, config: pytest.Config) -> None:
        self.mode = config.getoption("--budget")
        self.measured: dict[str, float] = {}
        self.before, self.spent = (0.0, 0.0), 0.0
        self.lines: list[str] = []
        self.begin = time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.before, self.spent = _spent(), 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        """The last test of all ends browsers and clusters, whose time is not its own."""
        report = yield
        (own, children), self.before = self.before, _spent()
        ended = report.when == "teardown"
        self.spent += self.before[0] - own + (0.0 if ended else self.before[1] - children)
        if ended:
            report.user_properties.append((PROPERTY, self.spent))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if report.when == "teardown" and name == PROPERTY:
                file = report.nodeid.partition("::")[0]
                self.measured[file] = self.measured.get(file, 0.0) + value

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput") or not self.mode:
            return
        if self.mode == "write":
            rows = {n: s for n, s in sorted(self.measured.items()) if s >= LISTED}
            text = "".join(f'"{name}" = {seconds:.1f}\n' for name, seconds in rows.items())
            TABLE.write_text(HEAD + text, encoding="utf-8")
            return
        self.lines = outgrown(read_table(), self.measured)
        workers = getattr(session.config.option, "numprocesses", None) or 1
        elapsed = time.monotonic() - self.begin
        quiet = is_quiet(sum(self.measured.values()), elapsed, workers, available_cpus())
        if self.lines and not quiet:
            self.lines.append("no failure: the machine was busy, or had more workers than cores")
        elif self.lines and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if self.mode:
            total = sum(self.measured.values())
            terminalreporter.write_line(f"processor time of the tests: {total:.0f} s")
        if self.lines:
            terminalreporter.section("files that have outgrown tests/budget.toml")
            for line in self.lines:
                terminalreporter.write_line(line)

"""A plugin of pytest that notes which test runs each line, and how much time each test takes.

``startup/sitecustomize.py`` has started to measure before lowland is imported, also in programs
that a test starts. Here the measured lines get the name of the test. The time is that of the
processor, because elapsed time depends on what else the machine does.
"""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

seconds: dict[str, float] = {}
not_passed: set[str] = set()  # skipped or failed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    import coverage

    measured = coverage.Coverage.current()
    assert measured is not None
    measured.switch_context(item.nodeid)
    before = processor_seconds()
    try:
        return (yield)
    finally:
        seconds[item.nodeid] = round(processor_seconds() - before, 4)
        measured.switch_context("")


def processor_seconds() -> float:
    """Of this process and of the programs that it has started and that have ended."""
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + programs.ru_utime + programs.ru_stime


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not report.passed:
        not_passed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write the tests of this process; there are several of them with xdist."""
    kept = {test: s for test, s in seconds.items() if test not in not_passed}
    found = {"seconds": kept, "not passed": sorted(not_passed)}
    path = Path(os.environ["LOWLAND_LINE_MAP"]) / f"tests-{os.getpid()}.json"
    path.write_text(json.dumps(found, indent=0), encoding="utf-8")

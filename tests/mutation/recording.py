"""A plugin of pytest that notes which test runs each line, and how long each test takes.

``startup/sitecustomize.py`` has started to measure before lowland is imported, also in programs
that a test starts. Here the measured lines get the name of the test.
"""

from __future__ import annotations

import json
import os
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
    try:
        return (yield)
    finally:
        measured.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        not_passed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write the tests, once for all workers."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        kept = {test: round(s, 4) for test, s in seconds.items() if test not in not_passed}
        found = {"seconds": kept, "not passed": sorted(not_passed)}
        path = Path(os.environ["LOWLAND_LINE_MAP"]) / "tests.json"
        path.write_text(json.dumps(found, indent=0), encoding="utf-8")

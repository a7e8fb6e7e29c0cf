"""What once failed does not fail any more, and the fuzzer notices what it is there for."""

from __future__ import annotations

import re

import pytest

from fuzz.cases import run_case
from fuzz.fixed_cases import FIXED
from fuzz.planted import PLANTED
from fuzz.supervisor import Worker, run_all

KINDS = {
    "crash": "Crash",
    "exit": "SystemExit",
    "end": "Crash",
    "foreign": "KeyError",
    "warning": "Broken",
    "modified": "Broken",
    "bit": "Broken",
    "memory": "MemoryError",
    "stderr": "Stderr",
    "hang": "Hang",
    "slow": "Slow",
}


@pytest.mark.slow
def test_what_once_failed():
    found = run_all(f"fixed:{name}" for name in FIXED)
    assert not found, "\n".join(f"{x.case}: {x.kind} in {x.where}: {x.message}" for x in found)


@pytest.mark.slow
def test_every_kind_of_failure_is_noticed_and_the_next_case_runs():
    assert KINDS.keys() == PLANTED.keys()
    with Worker(cpu_seconds=4.0) as worker:  # the imports of a new process count, too
        for name, kind in KINDS.items():
            worker.wall_seconds = 3.0 if name == "hang" else 100.0
            finding = worker.run(f"planted:{name}")[1]
            assert finding is not None, name
            assert finding.kind == kind, finding
    assert run_case("planted:bit") == run_case("planted:bit")


def without_addresses(values):
    """A bare object is drawn as a value that no parameter takes."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(values))


def test_a_case_is_the_same_each_time(monkeypatch):
    """The inputs of a case depend on its name only."""
    from fuzz import api_cases

    drawn = []
    monkeypatch.setattr(api_cases, "run_estimator", lambda *given: drawn.append(given))
    for _ in range(2):
        for number in range(20):
            run_case(f"api:{number}")
    half = len(drawn) // 2
    assert half > 5
    for first, second in zip(drawn[:half], drawn[half:], strict=True):
        assert without_addresses(first[1:4]) == without_addresses(second[1:4])

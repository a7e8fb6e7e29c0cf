"""The table of what test files may cost, and how it is compared."""

from __future__ import annotations

from pathlib import Path

from support.budget import GRACE, LISTED, TOTAL, is_quiet, outgrown, read_table

ROOT = Path(__file__).resolve().parents[1]


def test_the_table_stays_within_eight_minutes_of_two_cores():
    table = read_table()
    assert sum(table.values()) <= TOTAL
    assert min(table.values()) >= LISTED


def test_every_row_is_a_file():
    missing = [name for name in read_table() if not (ROOT / name).exists()]
    assert not missing, "run 'make test ARGS=\"--budget write\"'"


def test_files_that_grow_by_half_are_named_on_a_machine_of_any_speed():
    table = {f"tests/test_{i}.py": 100.0 for i in range(5)}
    for speed in (0.5, 1.0, 2.0):
        same = dict.fromkeys(table, speed * 100.0)
        assert outgrown(table, same) == []
        assert outgrown(table, {**same, "tests/test_0.py": speed * 140.0}) == []
        (line,) = outgrown(table, {**same, "tests/test_0.py": speed * 150.0 + 2 * GRACE})
        assert line.startswith("tests/test_0.py took ")


def test_a_new_file_has_what_a_file_without_a_row_has():
    table = {"tests/test_a.py": 10.0}
    assert outgrown(table, {"tests/test_a.py": 10.0, "tests/test_new.py": GRACE + LISTED}) == []
    (line,) = outgrown(table, {"tests/test_a.py": 10.0, "tests/test_new.py": GRACE + 2 * LISTED})
    assert "tests/test_new.py" in line


def test_only_a_quiet_machine_is_judged():
    assert is_quiet(800.0, 500.0, workers=2, cores=2)
    assert is_quiet(800.0, 500.0, workers=2, cores=8)
    assert not is_quiet(400.0, 500.0, workers=2, cores=2)
    assert not is_quiet(1900.0, 500.0, workers=4, cores=2)

"""Planted errors fit the sources; random ones are small, leave out what they should, and repeat.

``make mutants`` plants errors and runs tests; here nothing is planted.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import mutants
from mutation import kernels, sites, trying
from mutation.line_map import LineMap, in_turns, within_limits
from support.cases import each

SHARED = "engines"  # the family of what several rooms share: _engines, methods/_bases, _base


def test_planted_errors_are_in_the_file_of_their_room_and_have_different_names():
    found = mutants.all_mutants()
    assert len(list(mutants.PLANTED.glob("*.toml"))) <= 16
    assert 120 <= len(found) <= 200
    titles = [mutant.title for mutant in found]
    assert len(set(titles)) == len(titles)
    for mutant in found:
        shared = mutant.file.removeprefix("methods/").startswith("_")
        assert mutant.family == (SHARED if shared else sites.room_of(mutant.file)), mutant.title


def test_every_planted_error_applies_exactly_once_and_compiles():
    wrong = []
    for mutant in mutants.all_mutants():
        source = (mutants.PACKAGE / mutant.file).read_text(encoding="utf-8")
        try:
            compile(mutant.planted_in(source), mutant.file, "exec")
        except (ValueError, SyntaxError) as error:
            wrong.append(f"{mutant.title}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_planted_error_names_tests_that_exist():
    wrong = [
        f"{mutant.title}: {test}"
        for mutant in mutants.all_mutants()
        for test in mutant.tests or ["no test"]
        if not mutants.exists(test)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_text_that_is_missing_repeated_or_unchanged_is_refused():
    def planted(source, old, new):
        return mutants.Mutant("core", "a name", "file.py", old, new, ()).planted_in(source)

    assert planted("a = 1\nb = 2", "1", "3") == "a = 3\nb = 2"
    for source, old, new in (
        ("a = 1", "2", "3"),
        ("a = 1 + 1", "1", "3"),
        ("a = 1", "1", "1"),
    ):
        with pytest.raises(ValueError, match=r"times in file\.py|as it is"):
            planted(source, old, new)


def test_words_choose_by_name_family_or_file():
    found = mutants.all_mutants()
    assert mutants.chosen(found, []) == found
    some = mutants.chosen(found, ["mds:", "methods/linear/pca.py"])
    assert {m.family for m in some} == {"mds", "linear"}
    assert not mutants.chosen(found, ["no such word"])


def changed(source: str, file: str = "methods/mds/mds.py") -> dict[str, list[str]]:
    """The sources with one error each, by operator."""
    raw = textwrap.dedent(source).encode()
    found: dict[str, list[str]] = {}
    for site in sites.python_sites(file, raw):
        planted = site.planted_in(raw).decode()
        compile(planted, file, "exec")
        found.setdefault(site.operator, []).append(planted)
    return found


@each(
    "source, operator, expected",
    [
        ("a < b <= c", "comparison", ["a <= b <= c", "a < b < c"]),
        ("a not in b", "comparison", ["a in b"]),
        ("a is None", "comparison", ["a is not None"]),
        ("a and b and c", "boolean", ["a or b and c", "a and b or c"]),
        ("(a + b) * c", "arithmetic", ["(a - b) * c", "(a + b) / c"]),
        ("a ** b // c", "arithmetic", ["a * b // c", "a ** b / c"]),
        ("ä += b", "arithmetic", ["ä -= b"]),
        ("ä += b", "statement", ["pass"]),
        ("a = -b", "sign", ["a = b"]),
        ("a if b else c", "condition", ["a if not (b) else c"]),
        ("[a for a in b if c]", "condition", ["[a for a in b if not (c)]"]),
        ("a = 0, 1, 7, 0.5, True", "constant",
         [f"a = {t}" for t in ("1, 1, 7, 0.5, True", "0, 0, 7, 0.5, True", "0, 1, 8, 0.5, True",
                               "0, 1, 7, 1.0, True", "0, 1, 7, 0.5, False")]),
        ("a = f(b, c.d, e)", "arguments", ["a = f(c.d, b, e)"]),
        ("a[b] = c", "statement", ["pass"]),
        ("raise A(1 + 1)", "statement", ["pass"]),
    ],
)  # fmt: skip
def test_an_error_changes_one_place(source, operator, expected):
    assert changed(source)[operator] == expected


@each(
    "source",
    [
        '"""A text."""',
        "import a.b",
        "a: f(1, 2)",
        '__all__ = ["a", 1]',
        "card = Card(keeps=1 + 1)",
        "BLOCK_BYTES = 2**20",
        "def training_cost(n):\n    return n * 2",
        "def __repr__(self):\n    return self.a + self.b",
        "if TYPE_CHECKING:\n    a = 1",
        'require_memory(8 * n, "a")',
        'warnings.warn(f"{a + b}", stacklevel=2)',
        'a = "b" + c',
        'a = f"{b + 1}"',
        "a = max(b, c)",
        "a = isinstance(b, c)",
        "a = zip(b, *c, strict=True)",
        "def f(a: g(1) = None) -> 2: ...",
    ],
)
def test_nothing_is_changed_in_what_no_result_depends_on(source):
    assert not changed(source)
    assert not changed("a = 1", "plot/maps.py")


def test_a_site_knows_its_statement_and_whether_it_runs_at_import():
    source = b"A = g(1)\ndef f(b=2):\n    return g(\n        b < 3,\n    )\n"
    found = {(s.line, s.operator): s for s in sites.python_sites("methods/mds/mds.py", source)}
    assert found[1, "constant"].at_import
    assert found[2, "constant"].at_import
    inside = found[4, "comparison"]
    assert (inside.lines, inside.at_import, inside.room) == ((3, 5), False, "mds")


@each(
    "line, expected",
    [
        ("for (Index i = 0; i < n; ++i) {", ["for (Index i = 0; i <= n; ++i) {"]),
        ("    a = b + 1;  // c < d", ["    a = b - 1;", "    a = b + 0;", "    ;"]),
        ("    sum += 0.5 * x;", ["    sum -= 0.5 * x;", "    sum += 0.25 * x;",
                                 "    sum += 0.5 / x;", "    ;"]),
        ("template <int D, class T> // a && b", []),
        ('    if (a < b) throw error("a + b");', []),
    ],
)  # fmt: skip
def test_kernels_are_changed_by_rules_for_text(line, expected):
    raw = line.encode()
    found = {s.planted_in(raw).decode() for s in kernels.sites_of("_native/stress/a.cpp", raw)}
    assert {text.partition("  //")[0] for text in found} == set(expected)
    assert not kernels.sites_of("_native/stress/bind_a.cpp", raw)


def test_a_sample_repeats_and_gives_each_room_its_share():
    files = {"mds/a.py": 60, "_engines/b.py": 120, "_native/c/d.cpp": 900}
    many = [
        sites.Site(file, line, (line, line), False, "constant", 0, 1, "2")
        for file, count in files.items()
        for line in range(count)
    ]
    sample = trying.drawn(many, 30, seed=1)
    assert sample == trying.drawn(many, 30, seed=1)
    assert sample != trying.drawn(many, 30, seed=2)
    rooms = [site.room for site in sample]
    assert {room: rooms.count(room) for room in rooms} == {"mds": 9, "engines": 18, "native": 3}
    assert set(sample) <= set(trying.drawn(many, 60, seed=1))
    assert len(set(sample)) == 30


def test_tests_that_name_the_module_come_first_then_the_files_take_turns():
    seconds = {"a.py::x": 1.0, "a.py::y": 2.0, "b.py::x": 3.0, "b.py::mds": 9.0, "c.py::z": 0.5}
    order = ["b.py::mds", "c.py::z", "a.py::x", "b.py::x", "a.py::y"]
    assert in_turns(seconds, seconds, ["mds"]) == order
    assert within_limits(order, {**seconds, "a.py::x": 81.0}) == [*order[:2], *order[3:]]
    assert within_limits(["b.py::mds"], {"b.py::mds": 1000.0}) == ["b.py::mds"]


class Recorded(LineMap):
    """A map of one file of the package with two functions, without a recording."""

    def __init__(self, lines: dict[int, set[str]]) -> None:
        self.lines, self.changed, self.new, self.not_passed = lines, set(), set(), set()
        self.changed_tests = {"tests/a.py"}
        self.seconds = {f"tests/{t}": 1.0 for t in ("a.py::x", "a.py::y", "b.py::z", "c.py::w")}

    def of_lines(self, file: str) -> dict[int, set[str]]:
        return self.lines if file == "methods/mds/mds.py" else {}

    def of_functions(self, file: str) -> set[str]:
        return set().union(*self.of_lines(file).values())


def test_a_mutant_gets_the_tests_that_run_its_line_then_those_beside_them():
    a_x, a_y, b_z = "tests/a.py::x", "tests/a.py::y", "tests/b.py::z"
    known = Recorded({5: {a_x}, 8: {b_z}})

    def tests_at(line, at_import=False, lines=None):
        site = sites.Site(
            "methods/mds/mds.py", line, lines or (line, line), at_import, "sign", 0, 1, ""
        )
        return known.tests(site)

    assert tests_at(5) == [a_x, a_y, b_z]  # y may use what x has made
    assert tests_at(6) == []
    assert tests_at(6, lines=(5, 7)) == [a_x, a_y, b_z]
    assert tests_at(1, at_import=True) == [a_x, b_z, a_y]
    known.changed = {"methods/mds/mds.py"}  # its lines have moved
    assert tests_at(6) == [a_x, b_z, a_y]
    known.changed = set()
    known.update(["tests/a.py::x", "tests/a.py::new"])
    assert tests_at(5) == [a_x, "tests/a.py::new", b_z]
    assert tests_at(6) == ["tests/a.py::new"]


def test_a_diff_of_a_survivor_has_the_changed_line():
    path = "methods/linear/pca.py"
    source = (mutants.PACKAGE / path).read_bytes()
    site = next(s for s in sites.python_sites(path, source) if s.operator == "comparison")
    lines = trying.Verdict(site, trying.SURVIVED).difference().splitlines()
    assert lines[0] == f"--- src/lowland/{path}"
    assert [line[0] for line in lines[2:]] == ["@", "-", "+"]
    assert Path(site.file).suffix == ".py"

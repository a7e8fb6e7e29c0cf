"""The planted errors of ``tests/planted`` still fit the sources and name tests that exist.

``make mutants`` plants them and runs those tests; here nothing is planted.
"""

from __future__ import annotations

import pytest

import mutants

SHARED = "engines"  # the family of what several rooms share: _engines, _bases and _core


def test_planted_errors_are_in_the_file_of_their_room_and_have_different_names():
    found = mutants.all_mutants()
    assert len(list(mutants.PLANTED.glob("*.toml"))) <= 16
    assert 120 <= len(found) <= 200
    titles = [mutant.title for mutant in found]
    assert len(set(titles)) == len(titles)
    for mutant in found:
        room = mutant.file.partition("/")[0]
        assert mutant.family == (SHARED if room.startswith("_") else room), mutant.title


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
    some = mutants.chosen(found, ["mds:", "linear/pca.py"])
    assert {m.family for m in some} == {"mds", "linear"}
    assert not mutants.chosen(found, ["no such word"])


def test_failed_tests_are_read_from_the_summary():
    text = "....F\nFAILED tests/a.py::test_b[1] - assert 0\nERROR tests/c.py\n1 failed"
    assert mutants.failing(text) == ["tests/a.py::test_b[1]", "tests/c.py"]

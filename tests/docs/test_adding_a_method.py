"""The worked example of the documentation is a method like any other."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

import lowland.linear
from lowland import load
from lowland._core import registry
from lowland.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs/adding-a-method.md"
MODULE = "lowland.linear.random_projection"


@pytest.fixture
def blocks():
    """The file of the method, and that of its tests."""
    method, tests = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return method, tests


@pytest.fixture
def method(blocks, tmp_path, monkeypatch):
    """The class, found by the registry in a folder that belongs to the family for a while."""
    folder = tmp_path / "family"
    folder.mkdir()
    (folder / "random_projection.py").write_text(blocks[0], encoding="utf-8")
    monkeypatch.setattr(lowland.linear, "__path__", [*lowland.linear.__path__, str(folder)])
    spec = lowland.linear.__spec__
    locations = [*spec.submodule_search_locations, str(folder)]
    monkeypatch.setattr(spec, "submodule_search_locations", locations)
    importlib.invalidate_caches()
    yield registry.get("random_projection")
    sys.modules.pop(MODULE, None)
    vars(lowland.linear).pop("random_projection", None)


@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base")
def test_the_example_passes_scikit_learns_checks(method):
    check_estimator(method(), on_skip=None)


def test_the_example_passes_its_own_tests(method, blocks):
    found: dict = {}
    exec(compile(blocks[1], str(PAGE), "exec"), found)
    tests = [value for name, value in found.items() if name.startswith("test_")]
    assert len(tests) == 4
    for test in tests:
        test()


def test_the_example_declares_all_that_its_docstring_tells(method):
    for name in method.parameters():
        assert name in method.__doc__ or name in ("random_state", "n_jobs", "verbose")
    assert method.estimate(1000, 50).seconds > 0
    assert all(method.card)


def test_the_command_line_knows_the_example(method, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["map", "iris", "-m", "random-projection", "--orthogonal", "-o", "out"]) == 0
    assert load(tmp_path / "out/model.lowland").orthogonal
    assert main(["transform", "out/model.lowland", "iris", "-o", "again.csv"]) == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out/map.csv").read_bytes()
    capsys.readouterr()
    assert main(["methods", "random_projection"]) == 0
    assert "--orthogonal, --no-orthogonal" in capsys.readouterr().out

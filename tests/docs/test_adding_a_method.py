"""The worked examples of the documentation are methods like any other."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

import lowland.methods.linear
from lowland import load
from lowland._base import registry
from lowland._base.params import short
from lowland.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs/adding-a-method.md"
EXAMPLES = ["random_projection", "locality_preserving_projections"]
N_TESTS = {"random_projection": 4, "locality_preserving_projections": 3}
OPTIONS = {
    "random_projection": ["--orthogonal"],
    "locality_preserving_projections": ["--n-neighbors", "7", "--weights", "binary"],
}


@pytest.fixture(params=EXAMPLES)
def name(request):
    return request.param


@pytest.fixture
def blocks(name):
    """The file of the method, and that of its tests."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 2 * len(EXAMPLES)
    first = 2 * EXAMPLES.index(name)
    return found[first], found[first + 1]


@pytest.fixture
def method(name, blocks, tmp_path, monkeypatch):
    """The class, found by the registry in a folder that belongs to the family for a while."""
    folder = tmp_path / "family"
    folder.mkdir()
    (folder / f"{name}.py").write_text(blocks[0], encoding="utf-8")
    monkeypatch.setattr(
        lowland.methods.linear, "__path__", [*lowland.methods.linear.__path__, str(folder)]
    )
    spec = lowland.methods.linear.__spec__
    locations = [*spec.submodule_search_locations, str(folder)]
    monkeypatch.setattr(spec, "submodule_search_locations", locations)
    importlib.invalidate_caches()
    yield registry.get(name)
    sys.modules.pop(f"lowland.methods.linear.{name}", None)
    vars(lowland.methods.linear).pop(name, None)


@pytest.mark.filterwarnings("ignore:.*does not inherit from `sklearn.base")
def test_an_example_passes_scikit_learns_checks(method):
    few = {"n_neighbors": 3} if "n_neighbors" in method.parameters() else {}  # ten rows at times
    check_estimator(method(**few), on_skip=None)


def test_an_example_passes_its_own_tests(name, method, blocks):
    found: dict = {}
    exec(compile(blocks[1], str(PAGE), "exec"), found)
    tests = [value for test, value in found.items() if test.startswith("test_")]
    assert len(tests) == N_TESTS[name]
    for test in tests:
        test()


def test_an_example_declares_and_documents_everything(method):
    for name, field in method.parameters().items():
        entry = method.documentation(name)
        assert 5 < len(short(entry)) <= 120
        assert eval(re.search(r"default=(.+)$", entry.kind)[1]) == field.default
    assert set(method.fitted_attributes) <= set(re.findall(r"^(\w+_) : ", method.__doc__, re.M))
    assert method.estimate(1000, 50).seconds > 0
    assert all(method.card)
    assert all(method.reading)


def test_the_command_line_knows_an_example(name, method, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    spelling = name.replace("_", "-")
    assert main(["map", "iris", "-m", spelling, *OPTIONS[name], "-o", "out"]) == 0
    assert load(tmp_path / "out/model.lowland").get_params() != method().get_params()
    assert main(["transform", "out/model.lowland", "iris", "-o", "again.csv"]) == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out/map.csv").read_bytes()
    capsys.readouterr()
    assert main(["methods", name]) == 0
    assert OPTIONS[name][0] in capsys.readouterr().out


def section(title):
    """The text of a section of the page."""
    return PAGE.read_text(encoding="utf-8").split(f"\n## {title}")[1].split("\n## ")[0]


def test_every_function_of_the_index_is_where_the_page_says():
    rows = re.findall(r"^\| (?!I need|---)(.+?) \| (.+?) \| (.+?) \|$", section("4."), re.M)
    assert len(rows) > 20
    for _, functions, modules in rows:
        found = [
            importlib.import_module(f"lowland._engines.{module}")
            for module in re.findall(r"`([\w.]+)`", modules)
        ]
        for function in re.findall(r"`(\w+)`", functions):
            assert any(hasattr(module, function) for module in found), function


def test_every_base_is_where_the_page_says():
    bases = re.findall(r"`(\w+)` \(`([\w/]+)\.py`\)", section("3."))
    assert len(bases) >= 11
    for base, path in bases:
        assert hasattr(importlib.import_module(f"lowland.{path.replace('/', '.')}"), base)

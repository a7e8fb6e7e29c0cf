"""Options of methods come from what the methods declare."""

from __future__ import annotations

import json

import pytest

from lowland._base import registry
from lowland._base.constraints import Boolean, Integer, OneOf
from lowland._base.params import Entry
from lowland.cli.app import app
from lowland.cli.method_options import SPELLED, method_options
from lowland.workflow._parameters import RENAMED
from support.cases import each


def own_options() -> set[str]:
    import typer

    command = typer.main.get_command(app).commands["map"]
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


MATRICES = {("MDS", "weights"), ("ManifoldSculpting", "fixed")}


@each("method", registry.names())
def test_every_declared_parameter_is_an_option_or_has_a_spelling_of_its_own(method):
    cls = registry.get(method)
    options = method_options(cls)
    for name in cls.parameters():
        if name in SPELLED:
            assert SPELLED[name].split()[0] in own_options()
        elif (cls.__name__, name) in MATRICES or name in ("callback", "metric_params"):
            # no text spells a function, a dictionary or a matrix
            assert "--" + name.replace("_", "-") not in options
        else:
            assert options["--" + RENAMED.get(name, name).replace("_", "-")].parameter == name


@each("method", registry.names())
def test_no_option_of_a_method_hides_one_of_the_command(method):
    assert not own_options() & set(method_options(registry.get(method)))


@pytest.mark.parametrize("method", registry.names())
def test_values_reach_the_estimator_and_wrong_ones_are_refused(run, refused, method):
    for option in method_options(registry.get(method)).values():
        shown = refused("map", "iris", "-m", method, f"{option.name}=@@")
        assert f"{option.name}: '@@' is not allowed" in shown
        assert option.constraint.describe() in shown


@each("method", registry.names())
def test_defaults_can_be_typed(method):
    for option in method_options(registry.get(method)).values():
        if isinstance(option.constraint, Integer | OneOf | Boolean):
            assert option.read(str(option.default)) == option.default


@pytest.mark.parametrize(
    "spelling",
    [
        ["--n-components", "3", "iris"],
        ["iris", "--n-components=3"],
        ["-m", "pca", "--n-components", "3", "iris"],
        ["iris", "--n-components", "3", "-mpca"],
        ["--method=pca", "--n-components=3", "--", "iris"],
    ],
)
def test_options_may_stand_anywhere(run, spelling):
    result = json.loads(run("map", "--json", *spelling).out)
    assert result["parameters"]["n_components"] == 3


def test_a_flag_has_two_spellings(run):
    for i, (flag, value) in enumerate(
        [("--whiten", True), ("--no-whiten", False), ("--whiten=no", False)]
    ):
        result = json.loads(run("map", "iris", "-m", "pca", flag, "--json", "-o", f"out{i}").out)
        assert result["parameters"]["whiten"] is value


def test_a_value_that_looks_like_an_option_stays_a_value(run, refused, tmp_path):
    assert run("map", "iris", "-o", "--whiten").code == 0
    assert (tmp_path / "--whiten" / "map.csv").exists()
    assert "--n-components: '-1' is not allowed" in refused("map", "iris", "--n-components", "-1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-component", "3"], "did you mean --n-components?"),
        (["--colour", "class"], "did you mean --color?"),
        (["--random-state", "3"], "it is spelled --seed"),
        (["--zzz"], "no such option --zzz"),
        (["--n-components"], "--n-components needs a value"),
        (["-m", "pcaa"], "unknown method 'pcaa'; did you mean 'pca'?"),
        (["-m", "pcaa", "--whiten"], "unknown method 'pcaa'"),
        (["--seed", "x"], "--seed: 'x' is not allowed; expected an integer >= 0"),
        (["--seed", "-1"], "--seed: '-1' is not allowed; expected an integer >= 0"),
        (["--pca", "0"], "--pca: '0' is not allowed; expected an integer >= 1 or auto, none"),
        (["--engine", "cloud"], "--engine: 'cloud' is not allowed; expected auto, memory, stream"),
        (["--scale", "much"], "--scale: 'much' is not allowed; expected auto, none, standard"),
        (["--format", "xlsx"], "--format: 'xlsx' is not allowed; expected csv, parquet"),
        (["--into", "uns"], "--into: 'uns' is not allowed; expected obsm"),
        (["-o"], "-o"),
        (["-x"], "-x"),
        (["extra"], "extra"),
        (["--color", "clas"], "did you mean 'class'?"),
        (["--label", "nothing"], "unknown column 'nothing'"),
        (["--id", "nothing"], "unknown column 'nothing'"),
        (["--jobs", "0"], "n_jobs"),
        (["--jobs", "x"], "--jobs: 'x' is not allowed; expected an integer"),
    ],
)
def test_a_wrong_option_is_one_line_that_names_it(refused, tmp_path, arguments, message):
    assert message in refused("map", "iris", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_option_of_another_method_is_attributed(refused, monkeypatch):
    class Other:
        @staticmethod
        def parameters():
            from lowland._base.params import param

            field = param(Integer(1), default=30)
            field.name = "perplexity"
            return {"perplexity": field}

        @staticmethod
        def documentation(name):
            return Entry("int", "Neighbors.")

    monkeypatch.setattr(registry, "all_methods", lambda: [Other])
    message = refused("map", "iris", "-m", "pca", "--perplexity", "5")
    assert "pca has no option --perplexity; it is an option of other." in message


def test_other_commands_suggest_too(refused):
    assert "did you mean --json?" in refused("methods", "--jsn")
    assert "transform" in refused("transfrom", "a", "b")
    assert "MODEL" in refused("transform")
    assert "INPUT" in refused("map")

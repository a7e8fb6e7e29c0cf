"""Options are declared once: keywords, options of the command line, checks and help agree."""

import dataclasses
import inspect

import numpy as np
import pytest
import typer

from lowland._base.errors import COMMAND_LINE, ParameterError
from lowland._base.params import entries
from lowland.cli.app import app
from lowland.tables.options import READING, TABLE, TableOptions
from lowland.workflow import (
    align_tables,
    compare_methods,
    describe_table,
    make_map,
    place_rows,
    score_map,
    select_columns,
    trust_map,
)
from lowland.workflow.options import Matching, RunSettings

INTERNAL = {
    "beside",
    "gower",
    "kept",
    "learns",
    "missing_distances",
    "missing_values_taken",
    "spelling",
}
FUNCTIONS = {
    "align": align_tables,
    "compare": compare_methods,
    "info": describe_table,
    "map": make_map,
    "score": score_map,
    "select": select_columns,
    "transform": place_rows,
    "trust": trust_map,
}
OF_PARTS = {"engine", "scheduler", "refine", "resume"}  # the command alone writes parts of a map


def typed_options(command):
    """The options of a command by their spellings."""
    params = typer.main.get_command(app).commands[command].params
    return {spelling: param for param in params for spelling in param.opts}


@pytest.mark.parametrize("options", [TableOptions, RunSettings, Matching])
def test_every_field_is_documented_and_declared(options):
    fields = {field.name for field in dataclasses.fields(options)} - INTERNAL
    assert fields == set(options.declared())
    assert fields == set(entries(options.__doc__, "Parameters"))


@pytest.mark.parametrize("options", [TableOptions, RunSettings, Matching])
def test_defaults_are_allowed_and_wrong_values_are_refused_by_name(options):
    options()
    for name, declared in options.declared().items():
        if not declared.constraint.allows(object()):
            with pytest.raises(ParameterError, match=rf"^{name}: .* is not allowed; expected "):
                options(**{name: object()})


@pytest.mark.parametrize(("command", "function"), FUNCTIONS.items())
def test_a_command_and_its_function_take_the_same_options(command, function):
    typed = typed_options(command)
    shown = inspect.signature(function).parameters
    documented = entries(function.__doc__, "Parameters")
    for options in (TableOptions, RunSettings, Matching):
        for name, declared in options.declared().items():
            spelling = COMMAND_LINE.option(name)
            if name in shown:
                assert name in documented
                assert (spelling in typed) == (declared.group is not None)
            elif name in OF_PARTS:
                continue
            if spelling in typed:
                assert name in shown
                assert typed[spelling].help == declared.help
    assert not {"table", "settings", "matching"} & set(shown)


def test_functions_show_the_options_of_reading():
    for function in (make_map, compare_methods, score_map, describe_table):
        assert set(READING) < set(inspect.signature(function).parameters)
    assert set(TABLE) < set(inspect.signature(make_map).parameters)


def test_an_option_that_a_function_does_not_take_is_refused():
    with pytest.raises(TypeError, match="scale"):
        place_rows("model.lowland", "iris", scale="none")


def test_the_call_in_the_report_has_every_option_that_was_given():
    made = make_map("iris", "pca", drop="sepal width (cm)", scale="standard", seed=3, whiten=True)
    assert made.summary()["command"] == (
        "lowland.workflow.make_map('iris', 'pca', seed=3, drop=('sepal width (cm)',), "
        "scale='standard', whiten=True)"
    )


def sizes(figure):
    """The sizes of all points of a figure."""
    drawn = [each for axes in figure.axes for each in axes.collections]
    return {size for each in drawn if hasattr(each, "get_sizes") for size in each.get_sizes()}


def test_every_picture_of_a_map_has_the_look_that_was_asked_for(monkeypatch, tmp_path):
    """An option about pictures is declared in one place and drawn in another, and nothing else."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    path = tmp_path / "rows.csv"
    np.savetxt(path, X, delimiter=",", header="a,b,c,d", comments="")
    runs = [
        (X, "pca", {"n_components": 1}),
        (X, "pca", {}),
        (X, "pca", {"n_components": 3}),
        (X, "relational_perspective_map", {}),
        (path, "pca", {"engine": "stream"}),
    ]
    usual = [make_map(data, method, measure=False, **how) for data, method, how in runs]
    assert all(sizes(made.picture()) and 7.0 not in sizes(made.picture()) for made in usual)
    monkeypatch.setattr(RunSettings, "look", {"s": 7.0})
    for data, method, how in runs:
        assert sizes(make_map(data, method, measure=False, **how).picture()) == {7.0}, method
    assert 7.0 not in sizes(usual[1].picture())

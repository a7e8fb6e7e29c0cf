"""Options about a table are declared once, and every function and command shows them."""

import dataclasses
import inspect

import pytest

from lowland._base.params import entries
from lowland.cli import table_options
from lowland.tables.options import ENTRIES, READING, TableOptions
from lowland.workflow import compare_methods, describe_table, make_map, place_rows, score_map

INTERNAL = {
    "beside",
    "gower",
    "kept",
    "learns",
    "missing_distances",
    "missing_values_taken",
    "spelling",
}


def test_every_field_is_documented_and_has_an_option():
    fields = {field.name for field in dataclasses.fields(TableOptions)} - INTERNAL
    assert fields == set(ENTRIES)
    assert fields == set(table_options.TABLE)
    assert set(table_options.READING) == set(READING)


@pytest.mark.parametrize("function", [make_map, compare_methods, score_map, describe_table])
def test_functions_show_the_options_that_they_take(function):
    shown = set(inspect.signature(function).parameters)
    assert set(READING) < shown
    assert "table" not in shown
    assert set(READING) < set(entries(function.__doc__, "Parameters"))


def test_an_option_that_a_function_does_not_take_is_refused():
    with pytest.raises(TypeError, match="scale"):
        place_rows("model.lowland", "iris", scale="none")

"""What the data of a call may be: paths, tables with names of columns, bare numbers."""

from pathlib import Path

import numpy as np
import pandas
import polars as pl

from lowland.datasets import iris
from lowland.tables.in_memory import has_column_names, is_path
from support.cases import each


@each(
    ("data", "path", "named"),
    [
        ("rows.csv", True, True),
        (Path("rows.csv"), True, True),
        (["a.csv", Path("b.csv")], True, True),
        (pl.DataFrame({"a": [1.0]}), False, True),
        (pandas.DataFrame({"a": [1.0]}), False, True),
        (iris(), False, True),
        (np.ones((2, 2)), False, False),
        ([[1.0, 2.0], [3.0, 4.0]], False, False),
        ([], False, False),
    ],
)
def test_paths_and_names_of_columns_are_told_apart(data, path, named):
    assert is_path(data) == path
    assert has_column_names(data) == named

"""Labels beside a table in memory."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland._core.errors import DataError
from lowland.io import as_table
from support.cases import each

X = np.eye(3)


@each(
    "values",
    [
        [10**400] * 3,
        [[1], [2, 3], [4]],
        np.array([None, "a", 1], object),
        np.zeros((3, 2)),
        "abc",
        3,
    ],
)
def test_labels_that_are_no_column_are_refused_by_name(values):
    with pytest.raises(DataError, match="data: label 'kind'"):
        as_table(X, beside={"kind": values})


@each("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_dates_of_every_resolution_are_labels(unit):
    days = np.array(["2024-01-01", "2024-02-03", "NaT"], f"M8[{unit}]")
    column = as_table(X, beside={"day": days}).labels["day"]
    assert column.dtype.is_temporal()
    assert column.cast(pl.Date).to_list() == [*days[:2].astype("M8[D]").tolist(), None]

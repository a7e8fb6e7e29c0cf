"""The tables of the folder ``data``: names in the first line and column, numbers elsewhere."""

from __future__ import annotations

import csv
from importlib import resources
from typing import NamedTuple

import numpy as np


class NamedTable(NamedTuple):
    """Names of rows and columns; ``columns`` of text come apart from the numbers."""

    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    values: np.ndarray
    text: dict[str, tuple[str, ...]]


def read(name: str, text_columns: tuple[str, ...] = ()) -> NamedTable:
    """The table ``data/<name>.csv``; ``text_columns`` are not converted to numbers."""
    path = resources.files("lowland.datasets") / "data" / f"{name}.csv"
    header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    numbers = [i for i, column in enumerate(header) if i and column not in text_columns]
    return NamedTable(
        tuple(row[0] for row in rows),
        tuple(header[i] for i in numbers),
        np.array([[float(row[i]) for i in numbers] for row in rows]),
        {column: tuple(row[header.index(column)] for row in rows) for column in text_columns},
    )

"""What a data set is, and what every generator shares: argument checks, labels, noise."""

from __future__ import annotations

import csv
import dataclasses
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from lowland._base.constraints import Boolean, Constraint, Integer, Real, Seed, check_argument
from lowland._base.context import generator

SeedLike = int | np.random.Generator | np.random.RandomState | None

XYZ = ("x", "y", "z")

MOST = 1e100  # of noise and lengths: their squares are still numbers

# One argument, one meaning, in every generator.
ALLOWED: dict[str, Constraint] = {
    "bend": Real(0.0, 2.0 * np.pi),
    "hole": Boolean(),
    "n_branches": Integer(1),
    "n_clusters": Integer(1),
    "n_features": Integer(1),
    "n_persons": Integer(1),
    "n_pictures": Integer(1),
    "n_samples": Integer(1),
    "noise": Real(0.0, MOST, closed="left"),
    "pitch": Real(0.0, MOST),
    "ratio": Real(0.0, 1.0),
    "spread": Real(0.0, MOST, closed="left"),
    "tube": Real(0.0, 1.0),
    "turns": Real(0.0, MOST),
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table and, where they are known, its classes and the coordinates it was made from.

    Parameters
    ----------
    name : str
        Its name for :func:`lowland.datasets.load_dataset`.
    X : ndarray of shape (n_samples, n_features)
        The data, float64.
    y : ndarray of shape (n_samples,) or None
        The class of each row as an integer, an index into ``label_names``.
    truth : ndarray of shape (n_samples, n_coordinates) or None
        The coordinates each row was generated from, without noise, or known places.
    feature_names : tuple of str
        One name per column of ``X``.
    label_names : tuple of str or None
        One name per class; None when ``y`` is None.
    description : str
        One line.
    row_names : tuple of str or None
        One name per row, where rows have names.
    distances : bool
        Whether ``X`` holds the distances between the rows, for ``metric="precomputed"``.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> iris()
    Dataset('iris', 150 rows x 4 columns, 3 classes)
    """

    name: str
    X: np.ndarray
    y: np.ndarray | None
    truth: np.ndarray | None
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...] | None
    description: str
    row_names: tuple[str, ...] | None = None
    distances: bool = False

    @property
    def labels(self) -> np.ndarray | None:
        """The name of each row's class; None when there are no classes."""
        if self.y is None or self.label_names is None:
            return None
        return np.array(self.label_names)[self.y]

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        size = f"{rows} rows x {columns} columns"
        parts = [f"{self.name!r}", f"distances between {rows} rows" if self.distances else size]
        if self.label_names is not None:
            parts.append(f"{len(self.label_names)} classes")
        if self.truth is not None:
            parts.append(f"{self.truth.shape[1]}-D truth")
        return f"Dataset({', '.join(parts)})"


def checked(function: str, random_state: SeedLike, **arguments: Any) -> np.random.Generator:
    """The random numbers of a function; ``ParameterError`` for the first wrong argument."""
    for name, value in arguments.items():
        check_argument(f"{function}: {name}", value, ALLOWED[name])
    check_argument(f"{function}: random_state", random_state, Seed())
    return generator(random_state)


def with_noise(X: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """``X`` plus Gaussian noise; drawn last, so that it changes nothing else under a seed."""
    return X + noise * rng.standard_normal(X.shape) if noise > 0 else X


def balanced_labels(n_samples: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Labels in random order, their counts equal or one apart."""
    return rng.permutation(np.arange(n_samples, dtype=np.int64) % n_classes)


# The tables of the folder ``data``: names in the first line and column, numbers elsewhere.


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

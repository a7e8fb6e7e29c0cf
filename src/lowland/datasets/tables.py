"""Real tables, from the copies that come with scikit-learn: nothing is downloaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from lowland.datasets._base import Dataset

DIGITS = "Handwritten digits, 8 x 8 pixels."


def breast_cancer() -> Dataset:
    """Breast cancer Wisconsin (Street, Wolberg & Mangasarian 1993): 569 tumors, 30 measures.

    The measures describe the cell nuclei in an image; their scales differ by a factor of 1e5, so
    standardize them before any method that uses distances.

    Returns
    -------
    Dataset
        ``X`` (569, 30), ``y`` 0 for malignant (212 rows) and 1 for benign (357).

    Examples
    --------
    >>> from lowland.datasets import breast_cancer
    >>> breast_cancer()
    Dataset('breast_cancer', 569 rows x 30 columns, 2 classes)
    """
    from sklearn.datasets import load_breast_cancer

    description = "Cell nuclei of 569 breast tumors, benign and malignant."
    return table("breast_cancer", load_breast_cancer(), description)


def digits() -> Dataset:
    """Handwritten digits (Alpaydin & Kaynak 1998): 1797 images of 8 x 8 pixels, values 0 to 16.

    This is the test part of the UCI "optical recognition of handwritten digits" set.

    Returns
    -------
    Dataset
        ``X`` (1797, 64), ``y`` the digit.

    Examples
    --------
    >>> from lowland.datasets import digits
    >>> digits()
    Dataset('digits', 1797 rows x 64 columns, 10 classes)
    """
    numbers = _shipped_table("digits.csv.gz")
    if numbers is None or numbers.shape != (1797, 65):
        from sklearn.datasets import load_digits

        return table("digits", load_digits(), DIGITS)
    return Dataset(
        name="digits",
        X=np.ascontiguousarray(numbers[:, :-1]),
        y=numbers[:, -1].astype(np.int64),
        truth=None,
        feature_names=tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8)),
        label_names=tuple("0123456789"),
        description=DIGITS,
    )


def iris() -> Dataset:
    """Iris flowers (Fisher 1936): 150 flowers of three species, four lengths in cm.

    Returns
    -------
    Dataset
        ``X`` (150, 4), ``y`` the species, 50 rows of each.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> iris().label_names
    ('setosa', 'versicolor', 'virginica')
    """
    from sklearn.datasets import load_iris

    return table("iris", load_iris(), "Sepals and petals of 150 iris flowers, three species.")


def wine() -> Dataset:
    """Wine (Forina et al. 1991): 178 wines from three growers, 13 chemical measures.

    The scales of the measures differ by a factor of 1e3, so standardize them before any method that
    uses distances.

    Returns
    -------
    Dataset
        ``X`` (178, 13), ``y`` the grower (59, 71 and 48 rows).

    Examples
    --------
    >>> from lowland.datasets import wine
    >>> wine()
    Dataset('wine', 178 rows x 13 columns, 3 classes)
    """
    from sklearn.datasets import load_wine

    return table("wine", load_wine(), "Chemical analysis of 178 wines from three growers.")


def _shipped_table(name: str) -> np.ndarray | None:
    """A file of scikit-learn's, read without its import, which takes a second; None if missing."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "datasets" / "data" / name
    return np.loadtxt(path, delimiter=",") if path.is_file() else None


def table(name: str, bunch: Any, description: str) -> Dataset:
    """A :class:`Dataset` from what scikit-learn's loaders return."""
    return Dataset(
        name=name,
        X=np.ascontiguousarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        truth=None,
        feature_names=strings(bunch.feature_names),
        label_names=strings(bunch.target_names),
        description=description,
    )


def strings(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)

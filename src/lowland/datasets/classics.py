"""Published tables of columns, bundled with the package."""

from __future__ import annotations

import numpy as np

from lowland.datasets._base import Dataset
from lowland.datasets._files import read


def animals() -> Dataset:
    """Animals (Ritter & Kohonen 1989): 16 animals, 13 attributes that are present or not.

    The first table that a self-organizing map made a picture of meaning from: birds on one side,
    mammals on the other, hunters and grazing animals apart. Owl and hawk have the same attributes,
    and so have horse and zebra.

    Returns
    -------
    Dataset
        ``X`` (16, 13) of 0 and 1, ``y``: 7 birds and 9 mammals. ``row_names`` are the animals.

    Examples
    --------
    >>> from lowland.datasets import animals
    >>> animals()
    Dataset('animals', 16 rows x 13 columns, 2 classes)
    """
    table = read("animals")
    feathers = table.values[:, table.column_names.index("feathers")]
    return Dataset(
        name="animals",
        X=table.values,
        y=np.where(feathers == 1, 0, 1),
        truth=None,
        feature_names=table.column_names,
        label_names=("bird", "mammal"),
        description="Attributes of 7 birds and 9 mammals, present or not.",
        row_names=table.row_names,
    )


def breakfast_preferences() -> Dataset:
    """Preferences for breakfast items (Green & Rao 1972): 42 persons rank 15 items.

    The value is the rank, 1 for the item that the person likes best. The items are those of
    :func:`lowland.datasets.breakfast`.

    Returns
    -------
    Dataset
        ``X`` (42, 15): each row holds the ranks 1 to 15.

    Examples
    --------
    >>> from lowland.datasets import breakfast_preferences
    >>> breakfast_preferences()
    Dataset('breakfast_preferences', 42 rows x 15 columns)
    """
    return _plain("breakfast_preferences", "Ranks that 42 persons give to 15 breakfast items.")


def coffee() -> Dataset:
    """Coffees (Streuli 1973): 43 samples of two species, 12 chemical and physical properties.

    The scales of the properties differ by a factor of 100, so standardize them before any method
    that uses distances.

    Returns
    -------
    Dataset
        ``X`` (43, 12), ``y`` the species: 36 rows of Arabica and 7 of Robusta. ``row_names`` are
        the number and the country of origin of each sample.

    Examples
    --------
    >>> from lowland.datasets import coffee
    >>> coffee()
    Dataset('coffee', 43 rows x 12 columns, 2 classes)
    """
    table = read("coffee", text_columns=("Variety", "Country"))
    numbered = zip(table.row_names, table.text["Country"], strict=True)
    return Dataset(
        name="coffee",
        X=table.values,
        y=np.array(table.text["Variety"], dtype=np.int64) - 1,
        truth=None,
        feature_names=table.column_names,
        label_names=("Arabica", "Robusta"),
        description="Chemical properties of 43 coffees, Arabica and Robusta.",
        row_names=tuple(f"{number} {country}" for number, country in numbered),
    )


def swiss() -> Dataset:
    """Swiss provinces about 1888 (Mosteller & Tukey 1977): 47 provinces, 6 percentages.

    Fertility, men in agriculture, draftees with the best mark in the army examination, education
    beyond primary school, Catholics, and infant mortality.

    Returns
    -------
    Dataset
        ``X`` (47, 6), ``row_names`` the provinces.

    Examples
    --------
    >>> from lowland.datasets import swiss
    >>> swiss().row_names[:2]
    ('Courtelary', 'Delemont')
    """
    return _plain("swiss", "Fertility and society of 47 Swiss provinces about 1888.")


def usarrests() -> Dataset:
    """Arrests in the US states in 1973 (McNeil 1977): 50 states, 4 columns.

    Arrests for murder, assault and rape per 100 000 residents, and the percentage of the
    population that lives in cities. Assault has the largest variance by far, so standardize the
    columns.

    Returns
    -------
    Dataset
        ``X`` (50, 4), ``row_names`` the states.

    Examples
    --------
    >>> from lowland.datasets import usarrests
    >>> usarrests()
    Dataset('usarrests', 50 rows x 4 columns)
    """
    return _plain("usarrests", "Arrests per 100 000 residents of the 50 US states, 1973.")


def _plain(name: str, description: str) -> Dataset:
    """A table without classes."""
    table = read(name)
    return Dataset(
        name=name,
        X=table.values,
        y=None,
        truth=None,
        feature_names=table.column_names,
        label_names=None,
        description=description,
        row_names=table.row_names,
    )

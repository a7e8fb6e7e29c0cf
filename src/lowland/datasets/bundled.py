"""Published tables: columns, and distances for ``metric="precomputed"``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from lowland._base.constraints import Integer
from lowland._base.errors import ParameterError
from lowland.datasets._base import Dataset, NamedTable, read


def animals() -> Dataset:
    """Animals (Ritter & Kohonen 1989): 16 animals, 13 attributes that are present or not.

    A self-organizing map of this table groups animals by meaning: birds on one side, mammals on the
    other, hunters apart from grazing animals. Owl and hawk have the same attributes, and so have
    horse and zebra.

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
    description = "Attributes of 7 birds and 9 mammals, present or not."
    y = np.where(feathers == 1, 0, 1)
    return _named("animals", description, table, y=y, label_names=("bird", "mammal"))


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
    return _named("breakfast_preferences", "Ranks that 42 persons give to 15 breakfast items.")


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
    return _named(
        "coffee",
        "Chemical properties of 43 coffees, Arabica and Robusta.",
        table,
        y=np.array(table.text["Variety"], dtype=np.int64) - 1,
        label_names=("Arabica", "Robusta"),
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
    return _named("swiss", "Fertility and society of 47 Swiss provinces about 1888.")


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
    return _named("usarrests", "Arrests per 100 000 residents of the 50 US states, 1973.")


def _named(name: str, description: str, table: NamedTable | None = None, **more: Any) -> Dataset:
    """A table of the folder ``data`` with its names; ``more`` are other attributes."""
    table = read(name) if table is None else table
    attributes = {"X": table.values, "y": None, "truth": None, "label_names": None}
    attributes |= {"feature_names": table.column_names, "row_names": table.row_names}
    return Dataset(name=name, description=description, **{**attributes, **more})


# Published tables whose files scikit-learn installs: nothing is downloaded.


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
    return _bunch("breast_cancer", load_breast_cancer(), description)


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

        return _bunch("digits", load_digits(), DIGITS)
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

    return _bunch("iris", load_iris(), "Sepals and petals of 150 iris flowers, three species.")


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

    return _bunch("wine", load_wine(), "Chemical analysis of 178 wines from three growers.")


def _shipped_table(name: str) -> np.ndarray | None:
    """A file of scikit-learn's, read without its import, which takes a second; None if missing."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "datasets" / "data" / name
    return np.loadtxt(path, delimiter=",") if path.is_file() else None


def _bunch(name: str, bunch: Any, description: str) -> Dataset:
    """A :class:`Dataset` from what scikit-learn's loaders return."""
    return Dataset(
        name=name,
        X=np.ascontiguousarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        truth=None,
        feature_names=tuple(map(str, bunch.feature_names)),
        label_names=tuple(map(str, bunch.target_names)),
        description=description,
    )


# Published tables of distances and dissimilarities, for ``metric="precomputed"``.


JUDGES = (42, 71, 101, 112)


def australia() -> Dataset:
    """Road distances between 10 Australian towns, in km.

    Roads make detours, so the distances are not Euclidean; ``truth`` shows where the towns are.

    Returns
    -------
    Dataset
        ``X`` (10, 10) distances, ``truth`` (10, 2): longitude and latitude in degrees.

    Examples
    --------
    >>> from lowland.datasets import australia
    >>> australia()
    Dataset('australia', distances between 10 rows, 2-D truth)
    """
    places = read("australia_places").values
    description = "Road distances between 10 Australian towns, km."
    return _named("australia", description, truth=places, distances=True)


def breakfast(judge: int | None = None) -> Dataset:
    """Dissimilarities of 15 breakfast items as judged by four persons (Green & Rao 1972).

    The items: toast pop-up, buttered toast, English muffin and margarine, jelly donut, cinnamon
    toast, blueberry muffin and margarine, hard rolls and butter, toast and marmalade, buttered
    toast and jelly, toast and margarine, cinnamon bun, Danish pastry, glazed donut, coffee cake,
    corn muffin and butter.

    Parameters
    ----------
    judge : {42, 71, 101, 112} or None, default=None
        The number of the person; None gives the mean of the four.

    Returns
    -------
    Dataset
        ``X`` (15, 15) dissimilarities.

    Examples
    --------
    >>> from lowland.datasets import breakfast
    >>> breakfast(judge=42)
    Dataset('breakfast', distances between 15 rows)
    """
    if judge is not None and not (Integer().allows(judge) and judge in JUDGES):
        known = ", ".join(map(str, JUDGES))
        raise ParameterError(
            f"breakfast: judge={judge!r} is not allowed; expected {known} or None."
        )
    tables = [read(f"breakfast_{number}") for number in JUDGES if judge in (None, number)]
    description = "Dissimilarities of 15 breakfast items, as judged."
    D = np.mean([table.values for table in tables], axis=0)
    return _named("breakfast", description, tables[0], X=D, distances=True)


def ekman() -> Dataset:
    """Dissimilarities of 14 colors (Ekman 1954): 1 - s, s the mean similarity that was judged.

    The colors are named by their wavelengths in nm. Their map is the color circle.

    Returns
    -------
    Dataset
        ``X`` (14, 14) dissimilarities between 0 and 1.

    Examples
    --------
    >>> from lowland.datasets import ekman
    >>> ekman()
    Dataset('ekman', distances between 14 rows)
    """
    D = 1.0 - read("ekman").values
    np.fill_diagonal(D, 0.0)
    description = "Dissimilarities of 14 colors, named by wavelength."
    return _named("ekman", description, X=D, distances=True)


def eurodist() -> Dataset:
    """Road distances between 21 European cities, in km (The Cambridge Encyclopaedia).

    The classical example of multidimensional scaling: the map shows Europe.

    Returns
    -------
    Dataset
        ``X`` (21, 21) distances.

    Examples
    --------
    >>> from lowland.datasets import eurodist
    >>> eurodist().row_names[:3]
    ('Athens', 'Barcelona', 'Brussels')
    """
    description = "Road distances between 21 European cities, km."
    return _named("eurodist", description, distances=True)


def morse() -> Dataset:
    """Dissimilarities of 36 Morse signals (Rothkopf 1957): how rarely listeners confuse two.

    Returns
    -------
    Dataset
        ``X`` (36, 36) dissimilarities between 0 and 1; the names are the signals.

    Examples
    --------
    >>> from lowland.datasets import morse
    >>> morse()
    Dataset('morse', distances between 36 rows)
    """
    return _named("morse", "How rarely 36 Morse signals are confused.", distances=True)


def uscities() -> Dataset:
    """Straight-line distances between 10 cities of the US, in miles.

    Returns
    -------
    Dataset
        ``X`` (10, 10) distances.

    Examples
    --------
    >>> from lowland.datasets import uscities
    >>> uscities()
    Dataset('uscities', distances between 10 rows)
    """
    description = "Straight-line distances between 10 US cities, miles."
    return _named("uscities", description, distances=True)

"""Published tables of distances and dissimilarities, for ``metric="precomputed"``."""

from __future__ import annotations

import numpy as np

from lowland._core.constraints import Integer
from lowland._core.errors import ParameterError
from lowland.datasets._base import Dataset
from lowland.datasets._files import read

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
    return _distances("australia", "Road distances between 10 Australian towns, km.", truth=places)


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
    return Dataset(
        name="breakfast",
        X=np.mean([table.values for table in tables], axis=0),
        y=None,
        truth=None,
        feature_names=tables[0].column_names,
        label_names=None,
        description="Dissimilarities of 15 breakfast items, as judged.",
        row_names=tables[0].row_names,
        distances=True,
    )


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
    return _distances("ekman", "Dissimilarities of 14 colors, named by wavelength.", D)


def eurodist() -> Dataset:
    """Road distances between 21 European cities, in km.

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
    return _distances("eurodist", "Road distances between 21 European cities, km.")


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
    return _distances("morse", "How rarely 36 Morse signals are confused.")


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
    return _distances("uscities", "Straight-line distances between 10 US cities, miles.")


def _distances(
    name: str, description: str, D: np.ndarray | None = None, truth: np.ndarray | None = None
) -> Dataset:
    """A square table; its rows and columns have the same names."""
    table = read(name)
    return Dataset(
        name=name,
        X=table.values if D is None else D,
        y=None,
        truth=truth,
        feature_names=table.column_names,
        label_names=None,
        description=description,
        row_names=table.row_names,
        distances=True,
    )

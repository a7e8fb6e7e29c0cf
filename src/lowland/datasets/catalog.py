"""Data sets by name, for the command line and for loops over all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lowland._base.errors import ParameterError, unknown_name
from lowland.datasets import bundled, clusters, faces, surfaces
from lowland.datasets._base import Dataset

# Each public function of these modules makes the data set that has its name.
CATALOG: dict[str, Callable[..., Dataset]] = {
    name: function
    for module in (bundled, clusters, faces, surfaces)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__annotations__.get("return") == "Dataset" and not name.startswith("_")
}
# Tables of distances between rows, recognized without loading them.
DISTANCES = frozenset({"australia", "breakfast", "ekman", "eurodist", "morse", "uscities"})


def names() -> list[str]:
    """The names of all data sets, sorted.

    Examples
    --------
    >>> from lowland.datasets import names
    >>> "swiss_roll" in names()
    True
    """
    return sorted(CATALOG)


def plain(name: object) -> str:
    """A name as the catalog spells it.

    >>> plain(" Swiss-Roll")
    'swiss_roll'
    """
    return str(name).strip().lower().replace("-", "_")


def load_dataset(name: str, **arguments: Any) -> Dataset:
    """The data set called ``name``: a real table, or a generated one with ``random_state=0``.

    Parameters
    ----------
    name : str
        One of :func:`names`; upper case and hyphens (``"swiss-roll"``) are accepted.
    **arguments
        Passed to the function of that name, such as ``n_samples=5000``. Most tables take none.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from lowland.datasets import load_dataset
    >>> load_dataset("swiss-roll", n_samples=200)
    Dataset('swiss_roll', 200 rows x 3 columns, 2-D truth)
    """
    key = plain(name)
    if key not in CATALOG:
        raise ParameterError(unknown_name("data set", str(name), names()))
    known = list(inspect.signature(CATALOG[key]).parameters)
    if arguments and not known:
        raise ParameterError(
            f"{key} is a table and takes no arguments; drop {', '.join(arguments)}."
        )
    for argument in arguments:
        if argument not in known:
            raise ParameterError(unknown_name(f"argument of {key}", argument, known))
    if "random_state" in known:
        arguments.setdefault("random_state", 0)
    return CATALOG[key](**arguments)

"""How many principal components stand out from what chance alone gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._core.constraints import Boolean, Integer, OneOf, Seed
from lowland._core.errors import DataError, ParameterError
from lowland._core.random import generator
from lowland._core.validation import as_array, check_matrix
from lowland._engines.linalg.scree import broken_stick
from lowland._engines.linalg.scree import elbow as bend
from lowland.linear._component_count import chance_variances

ALLOWED = {
    "rule": OneOf("parallel", "broken_stick"),
    "scale": Boolean(),
    "n_draws": Integer(1),
    "random_state": Seed(),
}


def chance_shares(
    X: Any,
    rule: str = "parallel",
    *,
    scale: bool = False,
    n_draws: int = 20,
    random_state: Any = 0,
) -> np.ndarray:
    """The share of the variance that each principal component would have by chance.

    Components with a larger share than chance gives are worth a look; later ones cannot be told
    from noise.

    Parameters
    ----------
    X : array or data frame of shape (n_rows, n_columns)
        The table.
    rule : {"parallel", "broken_stick"}, default="parallel"
        "parallel" (Horn 1965): the 95th percentile of the shares in random tables of independent
        normal columns with the rows and the column variances of X. "broken_stick" (Frontier 1976):
        the expected lengths of a stick broken at random, which only knows the number of columns.
    scale : bool, default=False
        Whether columns count with equal variances, as in ``PCA(scale=True)``.
    n_draws : int, default=20
        Number of random tables.
    random_state : None, int, Generator or RandomState, default=0
        Seed of the random tables.

    Returns
    -------
    ndarray of shape (min(n_rows - 1, n_columns),)

    References
    ----------
    Horn (1965), A rationale and test for the number of factors, Psychometrika 30; Frontier (1976),
    J. Experimental Marine Biology and Ecology 25; Jackson (1993), Ecology 74.

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import wine
    >>> X = wine().X
    >>> own = PCA(scale=True).fit(X).explained_variance_ratio_
    >>> int((own > chance_shares(X, scale=True)).sum())
    3
    """
    given = {"rule": rule, "scale": scale, "n_draws": n_draws, "random_state": random_state}
    for name, value in given.items():
        if not ALLOWED[name].allows(value):
            raise ParameterError(
                f"chance_shares: {name}={value!r} is not allowed; expected "
                f"{ALLOWED[name].describe()}."
            )
    X = np.asarray(check_matrix(X, owner="chance_shares", min_rows=2), dtype=np.float64)
    largest = np.abs(X).max(axis=0)
    if not (X[0] != X).any():
        raise DataError("X: all rows are equal; there is no variance to divide.")
    # In units in which squares neither overflow nor vanish.
    variances = (X / np.where(largest > 0, largest, 1.0)).var(axis=0, ddof=1)
    variances = (variances > 0) * 1.0 if scale else variances * (largest / largest.max()) ** 2
    if rule == "broken_stick":
        return broken_stick(min(len(X) - 1, int((variances > 0).sum())))
    rng = generator(random_state)
    return chance_variances(variances, len(X), rng, n_draws) / variances.sum()


def elbow(values: Any) -> int:
    """The number of the entry, from 1, at which a falling curve bends most.

    For shares of the variance, or for the stress of maps of 1, 2, 3, ... dimensions. Both axes are
    scaled to [0, 1], and the entry farthest from the line between the first and the last entry is
    taken. It depends on where the curve ends, and says nothing about a curve without a bend.

    Parameters
    ----------
    values : array of shape (n,)
        The curve.

    References
    ----------
    Cattell (1966), The scree test for the number of factors, Multivariate Behavioral Research 1;
    Satopää et al. (2011), Finding a "kneedle" in a haystack, ICDCS Workshops.

    Examples
    --------
    >>> elbow([40, 22, 6, 5, 4.5, 4])
    3
    """
    curve = as_array(values, "values")
    if curve.ndim != 1 or not curve.size:
        raise DataError(f"values must hold at least one number, but has shape {curve.shape}.")
    return bend(check_matrix(curve[:, None], owner="elbow", argument="values")[:, 0])

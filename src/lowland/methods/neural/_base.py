"""The base of methods with a network: sizes of its layers, standardized rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from lowland._base.base import Reducer
from lowland._base.constraints import Boolean, Function, Integer, Null, OneOf, Real, Several
from lowland._base.errors import ParameterError
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._engines.linalg.moments import known_moments

MOST_UNITS = 100_000  # of a layer
MOST_HIDDEN = 20  # layers between the rows and the map


class NetworkReducer(Reducer):
    """A method trains a network on standardized rows.

    Parameters
    ----------
    hidden : "auto", int or list of int, default="auto"
        Numbers of units of the hidden layers between the rows and the map, from the rows to the
        map. "auto" chooses them from the size of the table.
    activation : {"tanh", "relu", "elu", "sigmoid", "linear"}, default="tanh"
        Function of the hidden units. "linear" gives a linear map.
    standardize : bool, default=True
        Whether each column is divided by its standard deviation. If not, all columns are divided by
        one number, the root of their mean variance. The result is in the units of X either way.
    weight_decay : float, default=0.00001
        Penalty on the squared weights. A larger one gives a smoother map.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Places of the fitted rows.
    mean_ : ndarray of shape (n_features,)
        Means of the columns.
    scale_ : ndarray of shape (n_features,)
        What centered columns are divided by before they enter the network.
    loss_history_ : ndarray of shape (n_losses,)
        Loss before the first step, and after each epoch or step.
    """

    hidden: str | int | Sequence[int] = param(
        OneOf("auto") | Integer(1, MOST_UNITS) | Several(Integer(1, MOST_UNITS)), default="auto"
    )
    activation: Literal["tanh", "relu", "elu", "sigmoid", "linear"] = param(
        OneOf("tanh", "relu", "elu", "sigmoid", "linear"), default="tanh"
    )
    standardize: bool = param(Boolean(), default=True)
    weight_decay: float = param(Real(0, 1e6, closed="both"), default=1e-5)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    mean_: np.ndarray = fitted("n_features")
    scale_: np.ndarray = fitted("n_features", meaning=above(0))
    loss_history_: np.ndarray = fitted("n_losses")
    n_iter_: int = fitted(type=int)

    def _given_hidden(self) -> list[int] | None:
        """``hidden`` as a list; None if it is "auto"."""
        if isinstance(self.hidden, str):
            return None
        units = [int(count) for count in np.atleast_1d(self.hidden)]
        if len(units) > MOST_HIDDEN:
            raise ParameterError(
                f"{type(self).__name__}: hidden has {len(units)} layers; give at most "
                f"{MOST_HIDDEN}, such as [256, 64]."
            )
        return units

    def _learn_scales(self, X: np.ndarray) -> None:
        """Of known values; a column that does not vary is divided by 1."""
        known, mean, squares = known_moments(X)
        deviation = np.sqrt(squares / np.maximum(1, known - 1))
        if not self.standardize:
            deviation = np.full_like(deviation, np.sqrt(np.mean(np.square(deviation))))
        self.mean_, self.scale_ = mean, np.where(deviation > 0, deviation, 1.0)

    def _standardized(self, X: np.ndarray) -> np.ndarray:
        """(X - mean) / scale in the type of X."""
        return ((X - self.mean_) / self.scale_).astype(X.dtype, copy=False)

    def _in_units_of_rows(self, Z: np.ndarray) -> np.ndarray:
        """The inverse of :meth:`_standardized`."""
        return (Z * self.scale_ + self.mean_).astype(Z.dtype, copy=False)

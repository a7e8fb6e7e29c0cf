"""The same map again, of other rows and with another seed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lowland._core.base import Reducer
from lowland.study.fitting import Fit, FitOptions, lowered
from lowland.trust import RefitPart

SKIPPED = ("callback", "n_components", "metric")  # told to the user once, or set here


class Again:
    """A function of rows, a seed and their numbers that fits the method of a run again.

    Rows of the data are given to the method as it got them in the run: with missing values, sparse,
    and as wide as they are. Data without structure come as they are.
    """

    def __init__(
        self,
        cls: type[Reducer],
        parameters: dict[str, Any],
        X: Any,
        y: Any,
        distances: bool,
        options: FitOptions,
    ) -> None:
        self.cls, self.parameters, self.X, self.y = cls, parameters, X, y
        self.distances, self.options = distances, options

    def __call__(self, X: Any, seed: int, part: RefitPart) -> np.ndarray:
        if not (part.is_null or self.distances):
            X = self.X[part.rows]
        y = None if self.y is None else self.y[part.rows]
        parameters = lowered(self.cls, X.shape[0], self.parameters)
        estimator = self.cls(
            **parameters, random_state=seed, n_jobs=self.options.n_jobs, verbose=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the map itself has told what there is to tell
            return np.asarray(estimator.fit_transform(X, y))


def make_again(
    X: Any, distances: bool, fit: Fit, given: dict[str, Any], y: Any, options: FitOptions
) -> tuple[Again | None, str]:
    """What makes the map of rows X again, as the method got them; or why it cannot be made."""
    if fit.stopped:
        return None, "the map was stopped before it was finished"
    n = len(fit.Y)
    parameters: dict[str, Any] = {}
    for name, value in given.items():
        if name in SKIPPED:
            continue
        if _is_of_rows(name, value, n):
            if name == "init":
                continue  # a start for other rows; the usual one takes its place
            return (
                None,
                f"{name} was given for all rows, and parts of them cannot be mapped with it",
            )
        parameters[name] = value
    estimator = fit.estimator
    parameters["n_components"] = fit.Y.shape[1]
    if "metric" in type(estimator).parameters():
        parameters["metric"] = estimator.metric  # type: ignore[attr-defined]
    cls = type(estimator)
    return Again(cls, parameters, X, y, distances, options), ""


def _is_of_rows(name: str, value: Any, n: int) -> bool:
    """Whether a parameter has one value for each row, or numbers of rows."""
    if name == "boundary":
        return not isinstance(value, str)
    shape: tuple[int, ...] = getattr(value, "shape", ())
    if isinstance(value, list | tuple):
        shape = np.shape(value)
    return len(shape) == 2 and shape[0] == n

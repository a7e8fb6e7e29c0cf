"""The base of every map: a method declares parameters and traits and writes ``_fit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from lowland._base.constraints import Integer
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.estimator import Estimator
from lowland._base.params import param
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import (
    USUAL,
    all_finite,
    beyond,
    check_matrix,
    is_sparse,
    largest_value,
)


class Reducer(Estimator):
    """Base of every method.

    A subclass declares its parameters (``param``) and fitted attributes (``fitted``), its traits,
    its ``card`` and its paper (``reference``), and writes ``_fit`` and ``_transform``. A method
    with an inverse also inherits from :class:`Invertible`.

    The traits below are facts about a method. The command line, the report, the documentation and
    the tests read them; they are never derived from the name of a family or by trial.
    """

    n_components: Any = param(Integer(1), default=2, kw_only=False)

    card: ClassVar[Card]
    reading: ClassVar[Reading]  # what axes, distances, gaps and sizes mean in its map
    aliases: ClassVar[tuple[str, ...]] = ()  # other names of the method, for the command line
    accepts_distances: ClassVar[bool] = False  # metric="precomputed": X holds distances
    accepts_graph: ClassVar[bool] = False  # a NeighborGraph in place of X
    accepts_missing: ClassVar[bool] = False  # unknown distances are NaN
    wants_pca: ClassVar[bool] = False  # wide tables are reduced by PCA first
    wraps: ClassVar[bool] = False  # the map is a torus: its left edge meets its right (sides_)
    components_limit: ClassVar[Literal["rows", "rank", "classes", "plane", "curve"]] = "rows"

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """Time and memory that a fit of n rows and p columns will about need, with defaults."""
        raise NotImplementedError

    @classmethod
    def most_components(cls, n: int, p: int, n_classes: int = 0) -> int:
        """The largest dimension of a map of n rows, p columns and so many classes."""
        limits = {
            "rows": max(1, n - 1),
            "rank": min(n, p),
            "classes": max(1, n_classes - 1),
            "plane": 2,
            "curve": 2 if p == 2 else 1,  # along it, and in the plane across
        }
        return limits[cls.components_limit]

    def _check_components(self, n: int, p: int, n_classes: int = 0) -> int:
        """``n_components``, if it is at most :meth:`most_components`."""
        q, most = int(self.n_components), self.most_components(n, p, n_classes)
        if q > most:
            raise ParameterError(
                f"{type(self).__name__}: n_components={q} is more than n_samples={n} and "
                f"n_features={p} allow for this method; ask for at most {most}."
            )
        return q

    def _check_not_beyond_rows(self, n: int) -> None:
        """Refuse more dimensions than rows, where fewer are not refused: memory is not endless."""
        if self.n_components > n:
            raise ParameterError(
                f"{type(self).__name__}: n_components={self.n_components} is more than "
                f"n_samples={n}; ask for at most {max(1, n - 1)}, which hold {n} points."
            )

    def _torus_sides(self) -> np.ndarray | None:
        """The sides of a fitted map that is a torus; None if the map is not a torus."""
        return self.sides_ if self.wraps else None  # type: ignore[attr-defined]

    def _place_rows(self, X: Any, run: FitContext) -> np.ndarray:
        return self._placed(X, run, self._transform)

    def _placed(self, X: Any, run: FitContext, place: Callable[..., np.ndarray]) -> np.ndarray:
        """``place(X, run)``; refuses rows whose result the data type cannot hold."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                result = self._in_fitting_type(place, X, run)
        except np.linalg.LinAlgError as error:  # of values that overflow on the way
            raise DataError(
                f"{type(self).__name__}: the rows cannot be placed, because a decomposition failed "
                f"({error}); leave out extreme rows, or fit the model again."
            ) from error
        if not all_finite(result, run.threads):
            row = int(np.argmin(np.isfinite(result).all(axis=1)))
            raise beyond(type(self).__name__, X, f"the result of row {row}", result.dtype)
        return result

    def _in_fitting_type(self, place: Callable[..., np.ndarray], X: Any, run: FitContext) -> Any:
        """``place(X, run)``; what float32 cannot square is computed in float64.

        That is decided for each row by itself, so that no row has an influence on another one.
        """
        if X.dtype != np.float32:
            return place(X, run)
        if "needs_float64_" in vars(self):
            return place(X.astype(np.float64), run).astype(X.dtype)
        if largest_value(X) <= USUAL[1]:
            return place(X, run)
        greatest = abs(X).max(axis=1)
        far = (greatest.toarray().ravel() if is_sparse(greatest) else greatest) > USUAL[1]
        result = place(X[far].astype(np.float64), run).astype(X.dtype)
        if far.all():
            return result
        both = np.empty((len(far), result.shape[1]), X.dtype)
        both[far], both[~far] = result, place(X[~far], run)
        return both

    @property
    def _n_features_out(self) -> int:
        return getattr(self, "n_components_", self.n_components)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the map's columns: ``pca0``, ``pca1``, ..."""
        self._require_fitted()
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{i}" for i in range(self._n_features_out)], dtype=object)


class Invertible(Reducer):
    """A method that can go back; it writes ``_inverse_transform``."""

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        raise NotImplementedError

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows of the original space for points X of the map."""
        Y = self._check_points(X)
        with self._running() as run:
            return self._placed(Y, run, self._inverse_transform)

    def _check_points(self, X: Any) -> np.ndarray:
        """Points of the map of a fitted model."""
        self._require_fitted()
        Y = check_matrix(X, owner=type(self).__name__, part=True)
        if Y.shape[1] != self._n_features_out:
            raise DataError(
                f"X has {Y.shape[1]} columns, but the map of this {type(self).__name__} has "
                f"{self._n_features_out} dimensions."
            )
        return Y

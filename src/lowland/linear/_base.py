"""What linear methods share: one matrix there, one matrix back, fitting in batches."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from lowland._core.base import Invertible
from lowland._core.card import Estimate
from lowland._core.context import FitContext
from lowland._core.errors import DataError
from lowland._core.params import fitted
from lowland._core.traits import Reading
from lowland._core.validation import (
    all_finite,
    check_columns,
    check_finite,
    check_matrix,
    check_same_columns,
    column_names,
    is_sparse,
)
from lowland._engines.linalg import products
from lowland._engines.linalg.magnitude import EXTREME, check_magnitude, largest, spread_of
from lowland._engines.linalg.moments import Moments, merge, moments

__all__ = ["LinearReducer"]


class LinearReducer(Invertible):
    """z = W^T (x - m): a method writes ``_fit`` and ``_finish``, from mergeable sums."""

    components_: np.ndarray = fitted(
        "n_components", "n_features", doc="axes of the map, in rows, in the (scaled) data space"
    )
    mean_: np.ndarray = fitted("n_features", doc="mean of the columns")
    scale_: np.ndarray | None = fitted(
        "n_features", doc="what the columns were divided by, or None", optional=True
    )
    n_components_: int = fitted(type=int, doc="dimension of the map")
    n_samples_seen_: int = fitted(type=int, doc="rows the fit is based on")
    scatter_: np.ndarray | None = fitted(
        "n_features",
        "n_features",
        doc="scatter matrix of the rows seen by partial_fit, which it needs to go on; else None",
        optional=True,
    )

    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="Each axis is a weighted sum of the columns, so a position along an axis has a "
        "meaning.",
        distances="Rows that are far apart in the map are far apart in the data. Rows that "
        "coincide "
        "in the map may differ in the directions that are not shown.",
        gaps="A gap in the map is a gap in the data along these axes.",
        sizes="The spread of a group is its spread in the data along these axes.",
        scale="The axes have the units of the columns, or of the scaled columns.",
    )
    fit_checks_finite = True
    transform_uses_blas = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: sums of products, then an eigenproblem."""
        size = min(n, p)
        return Estimate(0.01 + 2e-11 * n * p * size + 3e-10 * size**3, 8 * (n * p + 4 * size**2))

    def _finish(self, sums: Moments, run: FitContext) -> None:
        """Set the fitted attributes from count, mean and scatter."""
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in one more batch of rows; the result is that of one ``fit`` on all of them.

        Keeps the p x p scatter matrix of the columns in ``scatter_``. The model can be used as
        soon as there are as many rows as components (and at least two).
        """
        self.check_params()
        batch = self._check_batch(X)
        before = self._sums_so_far()
        with self._running() as run:
            sums = self._moments(batch, run)
            if before is not None:
                means = np.vstack([before.mean, sums.mean])
                sums = merge(before, sums)
                self._check_merged(sums.scatter, means)
            if sums.n_rows >= self._rows_needed(batch.shape[1]):
                self._finish(sums, run)
            self.n_samples_seen_, self.mean_, self.scatter_ = sums
        return self

    def _moments(self, X: Any, run: FitContext) -> Moments:
        """Sums of checked rows; a value that is not finite shows in them."""
        sums = moments(X, run.threads, run.monitor)
        if not np.isfinite(sums.mean).all():
            check_finite(X, getattr(self, "feature_names_in_", None), threads=run.threads)
        self._check_squares(np.diagonal(sums.scatter), X)
        return sums

    def _check_squares(self, squares: np.ndarray, X: Any) -> None:
        """Refuse rows whose variances are no numbers; looks at them only where it seems so."""
        if not EXTREME**-2 < float(squares.max()) < EXTREME**2:
            check_magnitude(spread_of(X), type(self).__name__, "difference in a column")

    def _check_merged(self, scatter: np.ndarray, means: np.ndarray) -> None:
        """Refuse batches, with these means, that are too far apart for squares."""
        if not np.isfinite(np.diagonal(scatter)).all() or spread_of(means) > EXTREME:
            check_magnitude(largest(means), type(self).__name__, "mean of a batch")

    def _rows_needed(self, n_features: int) -> int:
        """How many rows make a model; with fewer, partial_fit only keeps their sums."""
        return 2

    def _check_batch(self, X: Any) -> Any:
        owner = type(self).__name__
        batch = check_matrix(X, owner=owner, accept_sparse=self.accepts_sparse, finite=False)
        if hasattr(self, "n_features_in_"):
            names = getattr(self, "feature_names_in_", None)
            check_same_columns(column_names(X), names, owner=owner)
            check_columns(batch, self.n_features_in_, owner=owner)
        else:
            self._remember_columns(X, batch)
        return batch

    def _sums_so_far(self) -> Moments | None:
        if not self._has_sums():
            return None
        return Moments(self.n_samples_seen_, self.mean_, self.scatter_)

    def _has_sums(self) -> bool:
        """Whether there are sums to go on from."""
        if not hasattr(self, "n_samples_seen_"):
            return False
        if self.scatter_ is None:
            warnings.warn(
                f"partial_fit starts anew: the rows given to fit before are forgotten, because "
                f"{type(self).__name__}.fit keeps no sums; give all rows to partial_fit instead.",
                stacklevel=4,
            )
        return self.scatter_ is not None

    def _encoder(self) -> np.ndarray:
        """W, p x q: what centered rows are multiplied by."""
        return self.components_.T if self.scale_ is None else (self.components_ / self.scale_).T

    def _decoder(self) -> np.ndarray:
        """q x p: what points of the map are multiplied by before the mean is added."""
        return self.components_ if self.scale_ is None else self.components_ * self.scale_

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._representable(
            products.times(X, self.mean_, self._encoder(), run.threads), X, run
        )

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        X = products.times(Y, np.zeros(Y.shape[1]), self._decoder(), run.threads)
        with np.errstate(over="ignore", invalid="ignore"):
            X += self.mean_.astype(Y.dtype)
        return self._representable(X, Y, run)

    def _representable(self, found: np.ndarray, given: Any, run: FitContext) -> np.ndarray:
        """The result, if all its numbers fit into the type of the rows it was made from."""
        if not all_finite(found, run.threads):
            most = largest(given.data if is_sparse(given) else given)
            raise DataError(
                f"{type(self).__name__}: the largest value of X is {most:g}, and the result is "
                f"beyond what {given.dtype} can hold; divide X by {most:.0e} before fitting"
                + (", or give it as float64." if given.dtype == np.float32 else ".")
            )
        return found

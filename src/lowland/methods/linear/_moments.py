"""The base of linear maps that are computed from mergeable sums, so that rows come in batches."""

from __future__ import annotations

import copy
import warnings
from typing import Any, ClassVar, Self

import numpy as np

from lowland._base import validation
from lowland._base.base import Invertible
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import count
from lowland._base.params import fitted
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import as_rows, checked_rows
from lowland._base.rows.table import Rows
from lowland._base.traits import Estimate, Reading
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_pairs_cost
from lowland._engines.linalg.moments import Moments, largest_square, merge, moments, moments_cost
from lowland._engines.linalg.products import gram_cost, times_cost

# The base of linear maps: transform, inverse transform, and the check for overflow.


SMALL = 1e-120  # mean square of a table without extreme values: at least that
START = Estimate(0.005, 0)  # checks, threads and modules, whatever the size


class LinearMap(Invertible):
    """The map z = W^T (x - m). A method writes ``_fit``, which calls ``_keep_map``.

    A method whose fit needs sums over the rows only, and can take rows in batches, inherits from
    :class:`lowland.methods.linear._moments.MomentsReducer` instead.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Axes of the map, one in each row.
    mean_ : ndarray of shape (n_features,)
        What is subtracted from each row: the mean of the columns.
    """

    components_: np.ndarray = fitted("n_components", "n_features")
    mean_: np.ndarray = fitted("n_features")
    n_components_: int = fitted(type=int, meaning=count(1))

    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="Each axis is a weighted sum of the columns, so a position along an axis has a "
        "meaning.",
        distances="Rows that are far apart in the map are far apart in the data. Rows that "
        "coincide in the map may differ in the directions that are not shown.",
        gaps="A gap in the map is a gap in the data along these axes.",
        sizes="The spread of a group is its spread in the data along these axes.",
        scale="The axes have the units of the columns, or of the scaled columns.",
    )
    transform_uses_blas = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: sums of products, then an eigenproblem."""
        size = min(n, p)
        sums = moments_cost(n, p) if p <= n else gram_cost(n, p) + times_cost(n, p, n)
        return (START + sums + all_pairs_cost(size).holding(8 * size * size)).holding(8 * n * p)

    def _keep_map(self, components: np.ndarray, mean: np.ndarray) -> None:
        """Set the fitted attributes that define the map; the axes are rows of ``components``."""
        self.components_ = np.ascontiguousarray(components)
        self.mean_, self.n_components_ = mean, len(components)

    def _encoder(self) -> np.ndarray:
        """W (p, q), by which centered rows are multiplied."""
        return self.components_.T

    def _decoder(self) -> np.ndarray:
        """The matrix (q, p) by which points of the map are multiplied before the mean is added."""
        return self.components_

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return products.times(X, self.mean_, self._encoder(), run.threads)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        X = products.times(Y, np.zeros(Y.shape[1]), self._decoder(), run.threads)
        return X + self.mean_.astype(Y.dtype)


class MomentsReducer(LinearMap):
    """A linear map whose fit needs only sums over the rows; the sums of two batches can be merged.

    A method writes ``_fit``, for all rows at once, and ``_finish``, which computes the map from
    the sums. The sums are count, mean and scatter matrix. A method with other sums also writes
    ``_sums``, ``_merged``, ``_stored_sums`` and ``_store_sums``.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows that the fit is based on.
    scatter_ : ndarray of shape (n_features, n_features) or None
        Scatter matrix of the rows given to ``partial_fit``, which the next batch is added to. None
        after ``fit``.
    """

    n_samples_seen_: int = fitted(type=int, meaning=count(1))
    scatter_: np.ndarray | None = fitted("n_features", "n_features", optional=True)

    narrower: ClassVar[str] = "reduce the columns first, for example with PCA(n_components=1000)"
    fit_checks_finite = True  # a value that is not finite shows in the sums

    # --- what a method writes -----------------------------------------------------------------

    def _finish(self, sums: Any, run: FitContext) -> None:
        """Set the fitted attributes from the sums."""
        raise NotImplementedError

    def _is_enough(self, sums: Any) -> bool:
        """Whether a model can be computed from the sums."""
        return sums.n_rows >= 2

    def _sums(self, X: Any, target: Any, run: FitContext) -> Any:
        """Sums of the checked rows of X; ``target`` is what ``_target`` gives."""
        sums = moments(X, run.threads, run.monitor)
        if not SMALL < largest_square(sums) < 1 / SMALL:  # else no value is extreme
            names = getattr(self, "feature_names_in_", None)
            validation.check_finite(X, names, threads=run.threads, part=True)
        return sums

    def _target(self, y: Any, named: Any) -> Any:
        """What ``_sums`` needs besides the rows; ``named`` lists all classes that may come."""
        return y

    def _merged(self, before: Any, batch: Any) -> Any:
        """Sums of the rows of both."""
        return merge(before, batch)

    def _stored_sums(self) -> Any:
        """The sums that ``_store_sums`` kept."""
        return Moments(self.n_samples_seen_, self.mean_, self.scatter_)

    def _store_sums(self, sums: Any) -> None:
        self.n_samples_seen_, self.mean_, self.scatter_ = sums

    # --- what it inherits ---------------------------------------------------------------------

    fits_rows = True

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        self._finish(self._total(rows, run), run)

    def _total(self, rows: Rows, run: FitContext, named: Any = None) -> Any:
        """Sums of a table in chunks, in one pass; ``named`` lists all classes that may come."""
        p = rows.shape[1]
        require_memory(
            8 * 5 * p * p,  # of two parts, their sum, and the solver's copies
            task=f"{type(self).__name__} with sums of {p} x {p} products of columns",
            alternative=self.narrower,
        )
        chunk = ChunkSums(self, named)
        return rows.total(chunk, chunk.method._merged, run.monitor, "covariance")

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add one more batch of rows; the result is that of one ``fit`` on all batches together.

        Keeps the p x p scatter matrix of the columns in ``scatter_``. The model can be used as
        soon as there are as many rows as components (and at least two).
        """
        return self._add_batch(X, y)

    def _add_batch(self, X: Any, y: Any, named: Any = None) -> Self:
        self.check_params()
        rows, owner = as_rows(X), type(self).__name__
        if rows is None:
            sparse, finite = self.accepts_sparse, not self.fit_checks_finite
            batch = validation.check_matrix(X, owner=owner, accept_sparse=sparse, finite=finite)
            self._check_columns_of(X, batch)
        else:
            self._check_columns_of(rows, rows)
            batch = checked_rows(rows, y, self)
        seen = hasattr(self, "n_samples_seen_")
        if seen and self.scatter_ is None:
            warnings.warn(
                f"partial_fit starts anew and ignores the rows given to fit before, because "
                f"{owner}.fit keeps no sums; give all rows to partial_fit instead.",
                stacklevel=3,
            )
        with self._running() as run:
            if rows is None:
                sums = self._sums(batch, self._target(y, named), run)
            else:
                sums = self._total(batch, run, named)
            if seen and self.scatter_ is not None:
                sums = self._merged(self._stored_sums(), sums)
            if self._is_enough(sums):
                self._finish(sums, run)
            else:
                self._forget_model()
            self._store_sums(sums)
        return self

    def _check_columns_of(self, X: Any, batch: Any) -> None:
        """The columns of a batch must be those of the batches before it."""
        owner, names = type(self).__name__, getattr(self, "feature_names_in_", None)
        if hasattr(self, "n_features_in_"):
            validation.check_same_columns(validation.column_names(X), names, owner=owner)
            validation.check_columns(batch, self.n_features_in_, owner=owner)
        else:
            self._remember_columns(X, batch)

    def _forget_model(self) -> None:
        """Remove all fitted attributes except what is known of the columns."""
        columns = {name: value for name, value in vars(self).items() if name.endswith("_in_")}
        self._forget()
        vars(self).update(columns)


class ChunkSums:
    """The sums of one block of rows, by a method without what it has learned before."""

    def __init__(self, method: MomentsReducer, named: Any) -> None:
        self.method, self.named = copy.copy(method), named
        self.method._forget_model()
        self.method.verbose = False  # the table shows its own progress

    def __call__(self, block: Block) -> Any:
        with self.method._running() as run:
            return self.method._sums(block.X, self.method._target(block.y, self.named), run)

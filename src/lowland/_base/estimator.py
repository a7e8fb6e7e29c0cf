"""What every estimator inherits: it declares its parameters and writes ``_fit``, no more.

``fit``, ``fit_transform`` and ``transform`` are written once, here: they check parameters and
data, bound the threads, seed the generator, drive the monitor, name the output columns and keep
the data type. The class follows scikit-learn's protocol without importing scikit-learn, whose
import alone costs over a second; it is loaded only when scikit-learn itself asks for tags, or an
error needs its ``NotFittedError``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from lowland._base import validation
from lowland._base.constraints import Boolean, Integer, Null, Seed
from lowland._base.context import FitContext, Prepared, SharedWork, generator
from lowland._base.errors import ParameterError
from lowland._base.monitor import Monitor
from lowland._base.params import Declared, param
from lowland._base.rows.fitting import as_rows, checked_rows, needs_memory, placed_table
from lowland._base.rows.table import Rows
from lowland._base.targets import require_target
from lowland._base.threads import limit_blas, resolve_n_jobs


class Estimator(Declared):
    """What maps (:class:`lowland._base.base.Reducer`) and selectors of columns have in common.

    A subclass declares its parameters (``param``) and fitted attributes (``fitted``), names its
    paper (``reference``), and writes ``_fit``, ``_transform`` and ``get_feature_names_out``.
    """

    random_state: Any = param(Seed(), default=None)
    n_jobs: int | None = param(Null() | Integer(), default=None)
    verbose: bool = param(Boolean(), default=False)

    # What belongs to calls that are under way or saves later calls work, and is not part of the
    # model: slots are neither seen as attributes by scikit-learn nor copied, pickled or saved.
    __slots__ = ("_once", "_runs", "_shared")

    reference: ClassVar[str] = ""
    accepts_sparse: ClassVar[bool] = False
    allows_nan: ClassVar[bool] = False  # NaN is a missing value; the others are used
    needs_target: ClassVar[bool] = False  # fit(X, y): it learns from labels
    uses_target: ClassVar[bool] = False  # fit(X, y): it learns from a target if one is given
    fits_rows: ClassVar[bool] = False  # fit(rows) of a table that need not fit in memory
    min_rows: ClassVar[int] = 2
    fit_checks_finite: ClassVar[bool] = False  # _fit finds NaN by itself, and saves a pass
    transform_uses_blas: ClassVar[bool] = True  # bounding BLAS costs a millisecond per call

    def __post_init__(self) -> None:
        self._runs: set[Monitor] = set()
        self._shared: SharedWork | None = None
        self._once = Prepared()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        Estimator.__post_init__(self)

    # --- what a method writes ---------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray | None:
        """Set the fitted attributes; return the map of X, or None to have it transformed."""
        raise NotImplementedError

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        """Place rows; each row's place must not depend on the other rows."""
        raise NotImplementedError

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        """Set the fitted attributes from a table that is read in chunks (``fits_rows``).

        ``rows.total(f, merge, run.monitor)`` goes through its checked blocks; with
        ``needs_target`` each block has its labels in ``y``.
        """
        raise NotImplementedError

    # --- what it inherits -------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from X; ``y`` is ignored unless the method uses targets."""
        rows = as_rows(X)
        if rows is None:
            self._fit_checked(X, y)
        else:
            self._fit_chunks(rows, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from X and return its map: the same as ``fit(X).transform(X)``."""
        rows = as_rows(X)
        if rows is not None:
            self._fit_chunks(rows, y)
            return self.transform(X)
        checked, embedding = self._fit_checked(X, y)
        if embedding is None:
            with self._running(bound_blas=self.transform_uses_blas) as run:
                embedding = self._place_rows(checked, run)
        return self._in_container(embedding, X)

    def transform(self, X: Any) -> Any:
        """Place rows in the fitted map, each as if it came alone. Changes nothing.

        Of a table that is read in chunks (``lowland.chunks.open_rows``) the result is such
        a table, and of a collection of Dask it is an array of Dask (with ``set_output``, a data
        frame of Dask): both are computed when they are used.
        """
        placed = placed_table(self, X)
        if placed is not None:
            return placed
        checked = self._check_new_rows(X)
        if "column_ranges_" in vars(self):
            checked = validation.in_ranges(checked, self.column_ranges_)
        with self._running(bound_blas=self.transform_uses_blas) as run:
            return self._in_container(self._place_rows(checked, run), X)

    def _place_rows(self, X: Any, run: FitContext) -> np.ndarray:
        return self._transform(X, run)

    def _fit_chunks(self, rows: Rows, y: Any) -> None:
        """Fit to a table that is read in chunks."""
        self.check_params()
        if not self.fits_rows:
            raise needs_memory(type(self).__name__)
        rows = checked_rows(rows, y, self)
        self._forget()
        self._remember_columns(rows, rows)
        with self._running() as run:
            self._fit_rows(rows, run)

    def _fit_checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray | None]:
        self.check_params()
        if self.needs_target:
            require_target(y, owner=type(self).__name__)
        checked = self._check_training_rows(X)
        self._forget()
        self._remember_columns(X, checked)
        if validation.needs_ranges(checked, getattr(self, "metric", None)):
            self.column_ranges_ = validation.column_ranges(checked)
            checked = validation.in_ranges(checked, self.column_ranges_)
        with self._running() as run:
            embedding = self._fitted_map(checked, y, run)
        return checked, embedding

    def _fitted_map(self, X: Any, y: Any, run: FitContext) -> np.ndarray | None:
        """``_fit``, of float32 rows of unusual size in float64; a map that is finite, or None."""
        if self.fit_checks_finite or validation.is_usual(validation.largest_value(X)):
            Y = self._fit(X, y, run)
        else:
            self.needs_float64_ = True
            Y = self._fit(validation.in_float64(X), y, run)
        if Y is None:
            return None
        if Y.dtype != (dtype := validation.values_of(X).dtype) and "needs_float64_" in vars(self):
            with np.errstate(over="ignore"):  # what overflows is refused below
                Y = self.embedding_ = Y.astype(dtype)
        if not validation.all_finite(np.delete(Y, getattr(self, "excluded_", []), axis=0)):
            self._forget()
            raise validation.beyond(type(self).__name__, X, "the map", Y.dtype)
        return Y

    def _with_room(self, rows: Rows, greatest: float) -> Rows:
        """Rows in chunks; those of unusual size, with this largest value, in float64."""
        if validation.is_usual(greatest):
            return rows
        self.needs_float64_ = True
        return rows.map(validation.in_float64, dtype=np.dtype(np.float64))

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: Gower's distance needs ranges of columns."""
        gower = getattr(self, "metric", None) == validation.GOWER
        has_rows = vars(self).get("fitted_rows_") is not None
        if gower and has_rows and "column_ranges_" not in vars(self):
            return "no 'column_ranges_' with metric='gower'"
        return super().inconsistency()

    def _rows_flaw(self, n: int, given: bool) -> str | None:
        """Why rows cannot be compared with n fitted ones; ``given``: they come as distances."""
        if given != (self.fitted_rows_ is None):  # type: ignore[attr-defined]
            return f"{'' if given else 'no '}'fitted_rows_' to compare new rows with"
        if given and n != self.n_features_in_:
            return f"{n} fitted rows, but distances to {self.n_features_in_}"
        return None

    def _check_training_rows(self, X: Any) -> Any:
        checked = validation.check_matrix(
            X,
            owner=type(self).__name__,
            accept_sparse=self.accepts_sparse,
            min_rows=self.min_rows,
            finite=not self.fit_checks_finite,
            allow_nan=self.allows_nan,
            threads=resolve_n_jobs(self.n_jobs),
        )
        if self.allows_nan:
            validation.check_columns_have_values(checked, validation.column_names(X))
        return checked

    def _check_new_rows(self, X: Any) -> Any:
        self._require_fitted()
        names = getattr(self, "feature_names_in_", None)
        return self._check_rows(X, type(self).__name__, names, self.n_features_in_)

    def _check_rows(self, X: Any, owner: str, names: Any, n_columns: int) -> Any:
        """New rows, whose columns must be those with these names, and so many."""
        validation.check_same_columns(validation.column_names(X), names, owner=owner)
        checked = validation.check_matrix(
            X,
            owner=owner,
            accept_sparse=self.accepts_sparse,
            allow_nan=self.allows_nan,
            threads=resolve_n_jobs(self.n_jobs),
            part=True,
        )
        validation.check_columns(checked, n_columns, owner=owner)
        return checked

    def _forget(self) -> None:
        self._once = Prepared()
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _remember_columns(self, X: Any, checked: Any) -> None:
        self.n_features_in_ = checked.shape[1]
        names = validation.column_names(X)
        if names is not None:
            self.feature_names_in_ = names

    @contextlib.contextmanager
    def _running(self, *, bound_blas: bool = True) -> Iterator[FitContext]:
        threads = resolve_n_jobs(self.n_jobs)
        monitor = Monitor(
            label=type(self).__name__,
            verbose=bool(self.verbose),
            callback=getattr(self, "callback", None),
        )
        with limit_blas(threads) if bound_blas else contextlib.nullcontext(), monitor:
            self._runs.add(monitor)
            try:
                kept = self._shared, self._once
                yield FitContext(generator(self.random_state), threads, monitor, *kept)
            finally:
                self._runs.discard(monitor)

    @contextlib.contextmanager
    def sharing(self) -> Iterator[SharedWork]:
        """Within this context, ``fit`` hands out intermediate results that others can use.

        >>> from lowland import TSNE
        >>> from lowland.datasets import iris
        >>> method = TSNE(max_iter=10, random_state=0)
        >>> with method.sharing() as shared:
        ...     Y = method.fit_transform(iris().X)
        >>> shared.graph
        NeighborGraph(150 rows x 90 neighbors, exact)
        """
        self._shared = SharedWork()
        try:
            yield self._shared
        finally:
            self._shared = None

    def cancel(self) -> bool:
        """Stop what is running as soon as it can; callable from a signal handler or a thread.

        An optimization that has begun keeps the map it has and ``fit`` returns as usual; before
        that, ``fit`` raises ``StoppedError``. Of several calls in several threads, all stop.
        Returns whether anything was running.
        """
        running = list(self._runs)
        for monitor in running:
            monitor.cancel()
        return bool(running)

    # --- scikit-learn's protocol ------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return all(name in vars(self) for name in self.fitted_attributes)

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call 'fit' first."
            )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that ``transform`` gives."""
        raise NotImplementedError

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the container of ``transform``: "default", "pandas" or "polars"."""
        if transform is not None:
            if transform not in ("default", "pandas", "polars"):
                raise ParameterError(
                    f"set_output: transform={transform!r} is not allowed; "
                    "expected 'default' | 'pandas' | 'polars' or None."
                )
            self._sklearn_output_config = {"transform": transform}
        return self

    def _output(self) -> str | None:
        """The container that ``set_output`` or the configuration of scikit-learn asks for."""
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform")
        if chosen is None and "sklearn" in sys.modules:
            chosen = sys.modules["sklearn"].get_config()["transform_output"]
        return chosen

    def _in_container(self, Y: np.ndarray, X: Any) -> Any:
        chosen = self._output()
        if chosen == "pandas":
            import pandas

            index = X.index if isinstance(X, pandas.DataFrame) else None
            return pandas.DataFrame(Y, index=index, columns=self.get_feature_names_out())
        if chosen == "polars":
            import polars

            names = list(self.get_feature_names_out())
            if len({*names}) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ParameterError(
                    f"set_output: the name {twice!r} occurs twice, which a data frame of polars "
                    "does not allow; rename the columns, or choose transform='pandas'."
                )
            return polars.DataFrame(Y, schema=names, orient="row")
        return Y

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=self.needs_target),
            transformer_tags=TransformerTags(preserves_dtype=["float64", "float32"]),
            input_tags=InputTags(sparse=self.accepts_sparse, allow_nan=self.allows_nan),
        )

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return estimator_html_repr(self)

    # --- registry and documentation ---------------------------------------------------------

    @classmethod
    def family(cls) -> str:
        """The folder the method lives in: ``linear``, ``spectral``, ..."""
        return cls.__module__.split(".")[-2]

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]

    # --- model files ------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted model to ``path``: a zip of JSON and plain arrays, without pickle.

        Everything that ``transform`` needs is saved. A ``callback`` and a generator given as
        ``random_state`` are not; they come back as None. Read it with ``lowland.load``.
        """
        from lowland._base.models.codec import save

        self._require_fitted()
        save(self, path)

"""A method fitted to all rows leaf by leaf, or to a sample of them."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from lowland._core.base import Reducer
from lowland._core.chain import Chain
from lowland._core.errors import NeedsMemoryError
from lowland._core.rows.sampling import sampled_rows
from lowland._core.rows.table import Rows
from lowland.linear.pca import PCA
from lowland.study._interrupt import stopped_by_interrupt
from lowland.study._peak import peak_memory
from lowland.study.fitting import FitOptions, make_estimator, pca_columns, pca_log
from lowland.study.streaming.options import StreamOptions, grouped
from lowland.study.streaming.sampling import fitted_rows
from lowland.study.tables.preparing import Prepared
from lowland.study.targets import Target


class FittedModel(NamedTuple):
    """What a fit made, and what is known about it."""

    model: Any  # the estimator, or a chain that ends with it
    n_fitted: int
    log: list[str]
    seconds: float
    peak_bytes: int | None
    stopped: bool

    def facts(self) -> dict[str, Any]:
        """All but the model, in plain values."""
        found = self._asdict()
        del found["model"]
        return found


class Shape(NamedTuple):
    """Rows and columns that a method will be fitted to."""

    shape: tuple[int, int]


def fit_rows(
    ready: Rows,
    prepared: Prepared,
    cls: type[Reducer],
    given: dict[str, Any],
    target: Target,
    options: FitOptions,
    stream: StreamOptions,
) -> FittedModel:
    """Fit a method to prepared rows, after PCA of all rows where the method wants that.

    All rows are fitted if the method goes through them leaf by leaf and no sample was asked for;
    else a sample is, which depends on the seed and the number of rows only.
    """
    log: list[str] = []
    n = len(ready)
    start = time.perf_counter()
    with peak_memory() as peak:
        rows, pca = _reduced(ready, prepared, cls, given, options, log)
        p = rows.shape[1]
        y, column = target.values, target.column
        notes: list[str] = []
        estimator = make_estimator(prepared, cls, Shape((n, p)), y, given, options, notes)
        whole = estimator.fits_rows and (stream.sample is None or stream.sample >= n)
        if whole:
            with stopped_by_interrupt(estimator) as stop:
                whole = _fits(estimator, rows, column)
        m = min(n, stream.sample or (n if whole else fitted_rows(cls, n, p)))
        if whole:
            log += notes
        else:
            estimator = make_estimator(prepared, cls, Shape((m, p)), y, given, options, log)
            with stopped_by_interrupt(estimator) as stop:
                block = rows.take(sampled_rows(n, m, options.seed))
                X = block.X if rows.names else np.ascontiguousarray(block.X)
                estimator.fit(X, None if column is None else block.beside[column].to_numpy())
    log += target.log
    log.append(_about_rows(m, n))
    steps = [step for step in (prepared.preparation, pca, estimator) if step is not None]
    for step in steps:
        if "verbose" in step.parameters():
            step.set_params(verbose=False)
    model = steps[0] if len(steps) == 1 else Chain(steps)
    seconds = time.perf_counter() - start
    return FittedModel(model, m, log, seconds, peak.n_bytes, stop.asked)


def _fits(estimator: Reducer, rows: Rows, target: str | None) -> bool:
    """Fit to all rows; False if a parameter of the method does not allow that."""
    try:
        estimator.fit(rows, target)
    except NeedsMemoryError:
        return False
    return True


def _reduced(
    ready: Rows,
    prepared: Prepared,
    cls: type[Reducer],
    given: dict[str, Any],
    options: FitOptions,
    log: list[str],
) -> tuple[Rows, PCA | None]:
    """The rows in fewer columns and the PCA that makes them, or the rows as they are and None."""
    n_columns = pca_columns(prepared, cls, given, options)
    if n_columns is None:
        return ready, None
    pca = PCA(
        n_columns, random_state=options.seed, n_jobs=options.n_jobs, verbose=options.verbose
    ).fit(ready)
    log.append(pca_log(pca, options.spelling))
    reduced = pca.transform(ready)
    reduced.names = None  # as in memory, where a method gets an array after PCA
    return reduced, pca


def _about_rows(fitted: int, n: int) -> str:
    if fitted == n:
        return f"fitted on all {grouped(n)} rows, which were read leaf by leaf"
    return (
        f"fitted on {grouped(fitted)} of {grouped(n)} rows; the others are placed in the map of "
        "these"
    )

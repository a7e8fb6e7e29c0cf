"""A method fitted to all rows in chunks, or to a sample of them."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base.base import Reducer
from lowland._base.chain import Chain
from lowland._base.errors import PYTHON, NeedsMemoryError, ParameterError, Spelling
from lowland._base.interrupts import stopped_by_interrupt
from lowland._base.memory import available_memory
from lowland._base.monitor import Monitor
from lowland._base.rows.folding import sampled_rows
from lowland._base.rows.parts import MANIFEST, Parts
from lowland._base.rows.table import Rows
from lowland.chunks.refining import refined
from lowland.methods.linear.pca import PCA
from lowland.tables.preparing import Prepared
from lowland.workflow._stages import peak_memory
from lowland.workflow.fitting import FitOptions, make_estimator, pca_columns, pca_log
from lowland.workflow.streaming.choosing import StreamOptions, grouped
from lowland.workflow.targets import Target

# How many rows a method is fitted to that needs its rows in memory.


MOST_ROWS, FEWEST_ROWS = 500_000, 1000
SECONDS = 300.0  # of a fit, about


def fitted_rows(cls: type[Reducer], n_rows: int, n_columns: int) -> int:
    """The largest of 1000, 2000, 4000, ... rows, at most 500 000, that the method fits in about
    five minutes and in half of the memory; all rows if there are no more.
    """
    room = available_memory() / 2
    sizes = [1000 << k for k in range(9)] + [MOST_ROWS]
    found = FEWEST_ROWS
    for m in sizes:
        need = cls.estimate(m, n_columns)
        if need.seconds > SECONDS or need.n_bytes + 16 * m * n_columns > room:
            break
        found = m
        if m >= n_rows:
            break
    return min(n_rows, found)


# Steps that move all rows of a map after they are placed.


REFINABLE = ("TSNE",)


class RefinedParts(NamedTuple):
    """The parts of a map whose rows were moved, and what the steps achieved, in words."""

    parts: Parts
    log: str


def check_refinable(method: type, spelling: Spelling = PYTHON) -> None:
    """Refuse methods whose maps cannot be refined, before the fit, which may take long."""
    if method.__name__ not in REFINABLE:
        raise ParameterError(
            f"{spelling.option('refine')}: not available for {method.__name__}; it is for "
            f"{', '.join(REFINABLE)}."
        )


def refine(
    model: Any,
    ready: Rows,
    placed: Parts,
    coordinates: Rows,
    folder: Path,
    steps: int,
    fit: FitOptions,
) -> RefinedParts:
    """Write the parts of the map after ``steps`` steps on all rows to ``folder``.

    ``ready`` are the prepared rows, ``placed`` the parts of the map as the model placed them, and
    ``coordinates`` their coordinates. The placed parts are removed at the end: until then, a run
    that is stopped goes on from them.
    """
    steps_before = [step for step in getattr(model, "steps", ()) if isinstance(step, PCA)]
    for step in steps_before:
        ready = step.transform(ready)
    estimator = model.last if isinstance(model, Chain) else model
    with Monitor("refinement", verbose=fit.verbose) as monitor:
        found = refined(
            *(estimator, ready, coordinates.to_numpy(), steps),
            seed=fit.seed,
            n_jobs=fit.n_jobs,
            monitor=monitor,
        )
    names = list(coordinates.names or ())
    recall = "" if found.recall is None else f"; {found.recall:.1%} of the neighbors were found"
    log = (
        f"moved by {found.n_iter} steps of t-SNE on all rows: the divergence fell from "
        f"{found.kl_before:.2f} to {found.kl_after:.2f}{recall}; the model places new rows in the "
        "map of the sample, before these steps"
    )
    return RefinedParts(_moved(placed, found.Y, folder, names), log)


def _moved(placed: Parts, Y: np.ndarray, folder: Path, names: list[str]) -> Parts:
    """The parts with other coordinates, in another folder; the old ones are removed."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    start, files = 0, []
    for path in placed.files:
        frame = pl.read_parquet(path)
        places = pl.from_numpy(Y[start : start + frame.height], schema=names, orient="row")
        start += frame.height
        unfinished = folder / f".{path.name}-{uuid.uuid4().hex[:12]}.part"
        try:
            frame.with_columns(places.get_columns()).write_parquet(unfinished)
            os.replace(unfinished, folder / path.name)
        finally:
            unfinished.unlink(missing_ok=True)
        files.append(folder / path.name)
    shutil.copyfile(placed.folder / MANIFEST, folder / MANIFEST)
    shutil.rmtree(placed.folder)
    return placed._replace(folder=folder, files=tuple(files))


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

    All rows are fitted if the method goes through them in chunks and no sample was asked for;
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
        return f"fitted on all {grouped(n)} rows, which were read in chunks"
    return (
        f"fitted on {grouped(fitted)} of {grouped(n)} rows; the others are placed in the map of "
        "these"
    )

"""Steps that move all rows of a map after they are placed."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._core.chain import Chain
from lowland._core.errors import ParameterError
from lowland._core.monitor import Monitor
from lowland._core.rows.parts import MANIFEST, Parts
from lowland._core.rows.table import Rows
from lowland._core.wording import PYTHON, Spelling
from lowland.distributed.refining import refined
from lowland.linear.pca import PCA
from lowland.study.fitting import FitOptions

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

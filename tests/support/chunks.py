"""Irregular tables that are read in chunks, and an engine whose jobs travel as on a cluster."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import scipy.sparse

from lowland._base.rows.arrays import array_rows
from lowland._base.rows.engines import Stream, run_task, using
from lowland._base.rows.table import Rows
from support.states import assert_same_state, fitted_state


class Travelling(Stream):
    """Work, steps, arguments and results go through pickle; the last task is computed first."""

    def run(self, job, monitor):
        results = {}
        for place in reversed(range(len(job.tasks))):
            sent = pickle.dumps((job.tasks[place], job.work, job.argument(place), *job.steps))
            results[place] = pickle.dumps(run_task(*pickle.loads(sent)))
        yield from (pickle.loads(results[place]) for place in sorted(results))


def chunks(X: Any, task_rows: int = 64) -> Rows:
    """A table in several tasks of one chunk each."""
    return array_rows(X, task_rows=task_rows)


def irregular(kind: str, n: int = 403) -> Any:
    """A table with a constant column and copies of a row, in several forms."""
    rng = np.random.default_rng(11)
    X = rng.gamma(2.0, size=(n, 6)) @ rng.standard_normal((6, 6)) * [9, 4, 2, 1, 0.5, 0.2]
    X[:, 3] = 5.0
    X[100:150] = X[7]
    if kind == "float32":
        return X.astype(np.float32)
    if kind == "offset":
        return X + 1e6
    if kind == "wide":  # more columns than rows in a chunk
        return np.hstack([X, rng.standard_normal((n, 80)) * 0.3])
    if kind == "sparse":
        return scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.6, X, 0.0))
    if kind == "huge":
        return X * 1e20
    assert kind == "float64"
    return X


def with_gaps(X: np.ndarray, share: float = 0.1) -> np.ndarray:
    """The table with missing values, but none in the constant column."""
    gaps = np.random.default_rng(3).random(X.shape) < share
    gaps[:, 3] = False
    return np.where(gaps, np.nan, X).astype(X.dtype)


def relative_gap(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest expected value."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / (np.abs(expected).max() or 1.0))


def assert_same_bytes_everywhere(method: type, params: dict[str, Any], X: np.ndarray) -> None:
    """The fit to chunks has the same bytes for 1 and 2 threads, and when its jobs travel."""
    one = method(n_jobs=1, **params).fit(chunks(X))
    two = method(n_jobs=2, **params).fit(chunks(X))
    assert_same_state(fitted_state(one), fitted_state(two))
    with using(Travelling()):
        far = method(n_jobs=2, **params).fit(chunks(X))
    assert_same_state(fitted_state(one), fitted_state(far))

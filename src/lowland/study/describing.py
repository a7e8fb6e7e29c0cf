"""What a table is like, before anything is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowland._core import registry
from lowland._core.memory import available_memory
from lowland._core.validation import is_sparse
from lowland.io import Table
from lowland.linear.pca import PCA
from lowland.metrics import distance_concentration, intrinsic_dimension
from lowland.preparation.preparation import Preparation
from lowland.report.measures import FEWEST_ROWS, NEIGHBORHOOD
from lowland.study.preparing import TableOptions, read
from lowland.study.summary import table_facts

__all__ = ["describe_table", "description_of"]

SHARES = (0.9, 0.95, 0.99)
ROWS_MEASURED = 5_000  # a sample of this size tells intrinsic dimension and concentration


def describe_table(
    data: Any,
    *,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    labels: Sequence[str] = (),
    id_column: str | None = None,
    part: str | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Size, missing values, dimensions of a table, and which methods fit and how long they take.

    Times and memory are estimates from the cost model of each method, for two cores. Parameters
    are those of :func:`make_map`.

    Examples
    --------
    >>> found = describe_table("iris")
    >>> found["rows"], found["components"]
    (150, {'90%': 1, '95%': 2, '99%': 3})
    """
    options = TableOptions(
        columns=tuple(columns),
        drop=tuple(drop),
        labels=tuple(labels),
        id_column=id_column,
        part=part,
    )
    return description_of(read(data, options), seed, n_jobs)


def description_of(table: Table, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """The description of a table that has been read, as plain values."""
    features = table.features
    sparse = is_sparse(features)
    names = table.feature_names
    missing = np.zeros(table.shape[1], int)
    if not sparse:
        missing = np.isnan(np.asarray(features)).sum(axis=0)
    named = names or [f"column {i}" for i in range(table.shape[1])]
    preparation = Preparation(impute="mean" if missing.any() else None).fit(features)
    X = preparation.transform(features)
    return {
        **table_facts(table),
        "sparse": sparse,
        "missing": {str(named[i]): int(missing[i]) for i in np.flatnonzero(missing)},
        "constant": _constant_columns(X, named),
        "scale": preparation.chosen_,
        "scale_reason": preparation.reason_,
        **_dimensions(X, seed, n_jobs),
        "methods": _estimates(*X.shape),
    }


def _constant_columns(X: Any, names: Sequence[str]) -> list[str]:
    if is_sparse(X):
        spread = (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    else:
        spread = X.max(axis=0) - X.min(axis=0)
    return [str(names[i]) for i in np.flatnonzero(spread == 0)]


def _dimensions(X: Any, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """Intrinsic dimension, concentration of distances, components for shares of the variance."""
    if X.shape[0] < FEWEST_ROWS or X.shape[1] < 2:
        return {"intrinsic_dimension": None, "concentration": None, "components": {}}
    rows = np.arange(X.shape[0])
    if len(rows) > ROWS_MEASURED:
        chosen = np.random.default_rng(seed).choice(rows, ROWS_MEASURED, replace=False)
        rows = np.sort(chosen)
    some = X[rows]
    dimension = intrinsic_dimension(some, n_jobs=n_jobs)
    k = min(NEIGHBORHOOD, len(some) - 1)
    concentration = distance_concentration(some, k, n_jobs=n_jobs)
    pca = PCA(None, n_jobs=n_jobs, random_state=seed).fit(some)
    shares = np.cumsum(pca.explained_variance_ratio_)
    return {
        "intrinsic_dimension": float(dimension),
        "concentration": float(concentration.relative_contrast),
        "components": {
            f"{share:.0%}": int(np.searchsorted(shares, share - 1e-12) + 1) for share in SHARES
        },
        "rows_measured": len(rows),
    }


def _estimates(n: int, p: int) -> list[dict[str, Any]]:
    """Time and memory that each method would need."""
    free = available_memory()
    found = []
    for cls in registry.all_methods():
        need = cls.estimate(n, p)
        found.append(
            {
                "method": registry.snake_case(cls.__name__),
                "estimated_seconds": float(f"{need.seconds:.2g}"),
                "estimated_bytes": int(need.n_bytes),
                "fits": need.n_bytes <= free,
            }
        )
    return found

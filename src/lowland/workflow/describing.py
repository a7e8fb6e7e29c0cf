"""What a table is like, before anything is made of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from lowland._base import registry
from lowland._base.errors import DataError, ParameterError, count
from lowland._base.memory import available_memory
from lowland._base.options import takes_options
from lowland._base.validation import is_sparse
from lowland.methods.linear.pca import PCA
from lowland.metrics import distance_concentration, intrinsic_dimension
from lowland.metrics.quality_table import FEWEST_ROWS, NEIGHBORHOOD
from lowland.preparation.preparation import Preparation
from lowland.tables import Table
from lowland.tables.columns.categories import frame_of, take_part, why_refused
from lowland.tables.options import DESCRIBING, TableOptions
from lowland.tables.preparing import read
from lowland.workflow.options import FITTING, RunSettings
from lowland.workflow.summary import table_facts

# Which perplexities of t-SNE show the same of a table, as plain values.


def perplexities_of(X: Any, filled: bool, settings: RunSettings) -> dict[str, Any]:
    """The plateau of the perplexity on prepared rows; only a sentence if there are too few.

    ``filled`` states that missing values were filled with the means of columns; the result reports
    it.
    """
    # here: it needs t-SNE and the measures, which a description alone does not
    from lowland.trust.plateau import FEWEST_ROWS, perplexity_plateau

    if X.shape[0] < FEWEST_ROWS:
        return without_perplexities(
            f"Perplexities cannot be compared on {count(X.shape[0], 'row')}: two halves of fewer "
            f"than {FEWEST_ROWS} rows have too little in common."
        )
    how = {"seed": settings.seed, "n_jobs": settings.n_jobs, "verbose": settings.verbose}
    try:
        found = perplexity_plateau(X, **how)
    except (DataError, ParameterError) as error:  # such as rows that are all equal
        return without_perplexities(f"Perplexities cannot be compared: {error}")
    keys = ("perplexity", "excess", "overlap", "on_plateau")
    tried = zip(found.values, found.excess, found.overlap, found.on_plateau, strict=True)
    means = " Missing values were filled with the means of their columns." if filled else ""
    return {
        "values": [dict(zip(keys, each, strict=True)) for each in tried],
        "rows_mapped": len(found.maps[0].rows),
        "default": found.default,
        "recommended": found.recommended,
        "sentence": found.sentence + means,
    }


def without_perplexities(why: str) -> dict[str, Any]:
    """The same for a table that perplexities cannot be compared on."""
    return {"values": [], "rows_mapped": 0, "default": None, "recommended": None, "sentence": why}


SHARES = (0.9, 0.95, 0.99)
UNKNOWN: dict[str, Any] = {"intrinsic_dimension": None, "concentration": None, "components": {}}
TIED = 4  # times the number of columns: an estimate beyond it comes from tied distances
ROWS_MEASURED = 5_000  # a sample of this size tells intrinsic dimension and concentration


@takes_options(table=(TableOptions, DESCRIBING), settings=(RunSettings, FITTING))
def describe_table(
    data: Any, *, table: TableOptions, settings: RunSettings, perplexity: bool = False
) -> dict[str, Any]:
    """Size, missing values, dimensions of a table, and which methods fit and how long they take.

    Times and memory are estimates from the cost model of each method, for two cores. Methods that
    do not take sparse data or distances are left out for such data. A matrix of distances has no
    columns: their number is None.

    Parameters
    ----------
    data : path, data frame, array, sparse matrix or Dataset
        The table, as in :func:`make_map`.
    perplexity : bool, default=False
        Compare perplexities of t-SNE on at most 5 000 rows, by
        :func:`lowland.trust.perplexity_plateau`; takes about 20 times as long as one such map. The
        result has the key ``perplexity``: for each value how many neighbors are kept beyond chance
        (``excess``) and how well maps of two halves agree (``overlap``), and a ``sentence``.

    Examples
    --------
    >>> found = describe_table("iris")
    >>> found["rows"], found["components"]
    (150, {'90%': 1, '95%': 2, '99%': 3})
    """
    options = dataclasses.replace(table, missing_distances=True).for_data(data)
    found = read(data, options)
    return description_of(found, options, settings, perplexity=perplexity)


def description_of(
    table: Table, options: TableOptions, settings: RunSettings, *, perplexity: bool = False
) -> dict[str, Any]:
    """The description of a table that has been read, as plain values."""
    features, names = table.features, table.feature_names
    sparse = is_sparse(features)
    facts = {
        **table_facts(table),
        "roles": _roles(table),
        "notes": list(table.notes),
        "distances": options.distances,
        "sparse": sparse,
    }
    if options.distances:
        if perplexity:
            facts["perplexity"] = without_perplexities(
                "Perplexities are not compared on distances: data without structure, which they "
                "are compared with, are made from the columns of a table."
            )
        return {**facts, **_of_distances(features, settings)}
    part = take_part(table, options)
    facts["refused"] = why_refused(table, options, part.names)
    missing = np.zeros(table.shape[1], int)
    if not sparse:
        missing = np.isnan(np.asarray(features)).sum(axis=0)
    named = names or [f"column {i}" for i in range(table.shape[1])]
    empty = [named[i] for i in np.flatnonzero(missing == table.shape[0])]
    if empty and names:  # a column without any value is left out
        part = part._replace(table=dataclasses.replace(table, features=features.drop(empty)))
    holes = bool(missing.any())
    preparation = Preparation(missing="mean" if holes else "refuse", dates=part.dates or None)
    X = preparation.fit_transform(frame_of(part.table, part.names, part.dates))
    if perplexity:
        facts["perplexity"] = perplexities_of(X, holes, settings)
    spread = X.max(axis=0) - X.min(axis=0)
    spread = spread.toarray().ravel() if is_sparse(X) else spread
    columns = preparation.column_names_out() or named
    return {
        **facts,
        "labels": [name for name in part.table.labels.columns if name not in part.names],
        "taking_part": part.names,
        "choices": part.log,
        "missing": {str(named[i]): int(missing[i]) for i in np.flatnonzero(missing)},
        "constant": [str(columns[i]) for i in np.flatnonzero(spread == 0)],
        "scale": preparation.chosen_,
        "scale_reason": preparation.reason_,
        **_dimensions(X, settings),
        "methods": _estimates(*X.shape, "sparse" if is_sparse(X) else ""),
    }


def _roles(table: Table) -> dict[str, Any]:
    """What every column is taken for; ``set_aside`` are those that only look like that."""
    apart = [{"column": g.name, "role": g.role, "reason": g.reason} for g in table.guesses]
    return {
        "features": None if table.feature_names is None else list(table.feature_names),
        "labels": table.labels.columns,
        "id": table.ids.name if table.has_ids else None,
        "set_aside": apart,
        "not_used": list(table.unused),
        "left_out": list(table.left_out),
    }


def _of_distances(D: Any, settings: RunSettings) -> dict[str, Any]:
    """The description of a matrix of distances, which has no columns to choose or scale."""
    stored = D.nnz if is_sparse(D) else D.size - int(np.isnan(D).sum())
    # Pairs that are not known have no neighbors to measure.
    complete = not is_sparse(D) and stored == D.size
    return {
        "columns": None,
        "taking_part": [],
        "choices": [],
        "refused": None,
        "constant": [],
        "missing": {} if complete else {"distances": (D.shape[0] ** 2 - stored) // 2},
        "scale": "none",
        "scale_reason": "distances have one unit",
        **(_dimensions(D, settings, "precomputed") if complete else UNKNOWN),
        "methods": _estimates(D.shape[0], 1, "distances"),
    }


def _dimensions(X: Any, settings: RunSettings, metric: str = "euclidean") -> dict[str, Any]:
    """Intrinsic dimension, concentration of distances, components for shares of the variance."""
    if X.shape[0] < FEWEST_ROWS or X.shape[1] < 2:
        return UNKNOWN
    rows = np.arange(X.shape[0])
    if len(rows) > ROWS_MEASURED:
        chosen = np.random.default_rng(settings.seed).choice(rows, ROWS_MEASURED, replace=False)
        rows = np.sort(chosen)
    some = X[np.ix_(rows, rows)] if metric == "precomputed" else X[rows]
    k, how = min(NEIGHBORHOOD, len(rows) - 1), {"metric": metric, "n_jobs": settings.n_jobs}
    try:
        dimension = intrinsic_dimension(some, **how)
        concentration = distance_concentration(some, k, **how)
    except DataError:  # all rows are equal, or so many that no neighbors are left
        return UNKNOWN
    components = {}
    if metric != "precomputed":
        pca = PCA(None, n_jobs=settings.n_jobs, random_state=settings.seed).fit(some)
        shares = np.cumsum(pca.explained_variance_ratio_)
        needed = np.searchsorted(shares, np.array(SHARES) - 1e-12) + 1
        components = {f"{share:.0%}": int(n) for share, n in zip(SHARES, needed, strict=True)}
    return {
        "intrinsic_dimension": float(dimension) if dimension <= TIED * X.shape[1] else None,
        "concentration": float(concentration.relative_contrast),
        "components": components,
        "rows_measured": len(rows),
    }


def _estimates(n: int, p: int, kind: str) -> list[dict[str, Any]]:
    """Time and memory that each method would need that takes this kind of data."""
    free, found = available_memory(), []
    for cls in registry.all_methods():
        if kind and not getattr(cls, f"accepts_{kind}"):
            continue
        need, name = cls.estimate(n, p), registry.snake_case(cls.__name__)
        seconds, n_bytes = float(f"{need.seconds:.2g}"), int(need.n_bytes)
        costs = {"estimated_seconds": seconds, "estimated_bytes": n_bytes, "fits": n_bytes <= free}
        found.append({"method": name, **costs})
    return found

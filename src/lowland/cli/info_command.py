"""``lowland info``: what a table is like, before anything is made of it."""

from __future__ import annotations

from typing import Any

from lowland.cli import options
from lowland.cli.console import Console, aligned, count, listing
from lowland.cli.preparing import Choices, read
from lowland.cli.study import FEWEST_ROWS, NEIGHBORHOOD

__all__ = ["info_command"]

SHARES = (0.9, 0.95, 0.99)
FLAT = 1.5  # mean distance over the nearest below which neighbors hardly stand out
ROWS_MEASURED = 5_000  # a sample of so many rows tells intrinsic dimension and concentration


def info_command(
    source: options.Input,
    columns: options.Columns = None,
    drop: options.Drop = None,
    labels: options.Labels = None,
    id_column: options.Id = None,
    part: options.Part = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Tell rows, columns, missing values, dimensions, and which methods fit and how long they take.

    Times are estimates from each method's cost model, for two cores.
    """
    console = Console(quiet=quiet, as_json=as_json)
    choices = Choices(source, columns, drop, labels, None, id_column, part=part)
    with console.warnings_as_notes():
        table = read(choices)
        for note in table.notes:
            console.note(note)
        found = describe(table, seed, jobs)
    console.result(lines(found), found)


def describe(table: Any, seed: int, jobs: int | None) -> dict[str, Any]:
    """All that is told, as plain values."""
    import numpy as np

    from lowland._core.validation import is_sparse
    from lowland.preparation.preparation import Preparation

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
        "command": "info",
        "input": table.source,
        "rows": table.shape[0],
        "columns": table.shape[1],
        "features": None if names is None else list(names),
        "labels": table.labels.columns,
        "id": table.ids.name,
        "sparse": sparse,
        "missing": {str(named[i]): int(missing[i]) for i in np.flatnonzero(missing)},
        "constant": _constant(X, named),
        "scale": preparation.chosen_,
        "scale_reason": preparation.reason_,
        **_dimensions(X, seed, jobs),
        "methods": _methods(*X.shape),
    }


def _constant(X: Any, names: Any) -> list[str]:
    import numpy as np

    from lowland._core.validation import is_sparse

    if is_sparse(X):
        spread = (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    else:
        spread = X.max(axis=0) - X.min(axis=0)
    return [str(names[i]) for i in np.flatnonzero(spread == 0)]


def _dimensions(X: Any, seed: int, jobs: int | None) -> dict[str, Any]:
    """Intrinsic dimension, concentration of distances, components for shares of the variance."""
    import numpy as np

    from lowland.linear.pca import PCA
    from lowland.metrics import distance_concentration, intrinsic_dimension

    if X.shape[0] < FEWEST_ROWS or X.shape[1] < 2:
        return {"intrinsic_dimension": None, "concentration": None, "components": {}}
    rows = np.arange(X.shape[0])
    if len(rows) > ROWS_MEASURED:
        chosen = np.random.default_rng(seed).choice(rows, ROWS_MEASURED, replace=False)
        rows = np.sort(chosen)
    some = X[rows]
    dimension = intrinsic_dimension(some, n_jobs=jobs)
    k = min(NEIGHBORHOOD, len(some) - 1)
    concentration = distance_concentration(some, k, n_jobs=jobs)
    pca = PCA(None, n_jobs=jobs, random_state=seed).fit(some)
    shares = np.cumsum(pca.explained_variance_ratio_)
    return {
        "intrinsic_dimension": float(dimension),
        "concentration": float(concentration.relative_contrast),
        "components": {
            f"{share:.0%}": int(np.searchsorted(shares, share - 1e-12) + 1) for share in SHARES
        },
        "rows_measured": len(rows),
    }


def _methods(n: int, p: int) -> list[dict[str, Any]]:
    from lowland._core import registry
    from lowland._core.memory import available_memory

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


def lines(found: dict[str, Any]) -> list[str]:
    """The same for a person."""
    from lowland._core.memory import format_bytes

    names = f" ({listing(found['features'])})" if found["features"] else ""
    kind = "sparse columns" if found["sparse"] else "columns of numbers"
    told = [f"{found['input']}: {count(found['rows'], 'row')}, {found['columns']} {kind}{names}"]
    if found["labels"]:
        told.append(f"  labels: {listing(found['labels'])}")
    holes = [f"{name} ({number})" for name, number in found["missing"].items()]
    told.append(f"  missing values: {listing(holes) if holes else 'none'}")
    if found["constant"]:
        told.append(f"  constant columns, which tell nothing: {listing(found['constant'])}")
    scale = "not scaled" if found["scale"] == "none" else f"scaled: {found['scale']}"
    told.append(f"  would be {scale} ({found['scale_reason']})")
    if found["intrinsic_dimension"] is not None:
        told += _dimension_lines(found)
    cells = [["method", "about", "memory", ""]]
    for method in found["methods"]:
        cells.append(
            [
                method["method"],
                duration(method["estimated_seconds"]),
                format_bytes(method["estimated_bytes"]),
                "" if method["fits"] else "more than there is",
            ]
        )
    return [*told, "estimates, right within a factor of about 3:", *aligned(cells)]


def _dimension_lines(found: dict[str, Any]) -> list[str]:
    sampled = found["rows_measured"] < found["rows"]
    where = f" (of {found['rows_measured']} sampled rows)" if sampled else ""
    needed = ", ".join(f"{number} for {share}" for share, number in found["components"].items())
    return [
        f"  intrinsic dimension about {found['intrinsic_dimension']:.1f}{where}",
        f"  principal components needed: {needed} of the variance",
        f"  other rows are on average {found['concentration']:.1f} times as far as the nearest one"
        + ("; such flat distances say little" if found["concentration"] < FLAT else ""),
    ]


def duration(seconds: float) -> str:
    """A time for people: ``0.2 s``, ``3 min``, ``5 h``."""
    for limit, unit, size in ((120, "s", 1.0), (7200, "min", 60.0), (172_800, "h", 3600.0)):
        if seconds < limit:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds / 86_400:.2g} days"

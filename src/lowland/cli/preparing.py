"""From a file to the numbers that a method gets, every decision written down."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland.cli.console import count
from lowland.cli.options import Imputing, Scaling, split

if TYPE_CHECKING:
    import polars as pl

    from lowland.io import Table
    from lowland.preparation.preparation import Preparation

__all__ = ["Choices", "Ready", "make_ready", "read"]


@dataclasses.dataclass(frozen=True)
class Choices:
    """What the user said about the table."""

    source: str
    columns: list[str] | None = None
    drop: list[str] | None = None
    labels: list[str] | None = None
    one_hot: list[str] | None = None
    id_column: str | None = None
    target: str | None = None
    scale: Scaling = Scaling.AUTO
    impute: Imputing | None = None
    distances: bool = False
    part: str | None = None
    unknown_distances: bool = False  # whether the method can do without some

    @property
    def hold_distances(self) -> bool:
        """Whether the user says that the source holds distances, or it is bundled and known to."""
        from lowland.io import holds_distances

        return self.distances or holds_distances(self.source)


class Ready(NamedTuple):
    """The rows that are kept, their numbers made ready, and the log of how that was done."""

    table: Table
    X: Any
    preparation: Preparation | None  # None: nothing was changed
    log: list[str]
    dropped: list[Any]
    rows_read: int
    distances: bool

    @property
    def metric(self) -> str:
        """How the numbers are to be compared."""
        return "precomputed" if self.distances else "euclidean"


def make_ready(choices: Choices) -> Ready:
    """Read the table, drop rows, fill holes, scale."""
    from lowland._core.errors import DataError

    table = read(choices)
    rows_read = table.shape[0]
    if choices.hold_distances:
        given = [choices.columns, choices.drop, choices.one_hot, choices.impute]
        if any(given) or choices.scale not in (Scaling.AUTO, Scaling.NONE):
            raise DataError(
                "--distances: a matrix of distances has no columns to choose, fill or scale; "
                "leave --columns, --drop, --one-hot, --impute and --scale out."
            )
        log = [f"distances between {rows_read} rows, as they are{_unknown(table.features)}"]
        return Ready(table, table.features, None, log, [], rows_read, True)
    log = [_columns_used(table)]
    table, dropped = _without_holes(table, choices, log)
    features = _with_categories(table, split(choices.one_hot))
    ready, preparation = _prepared(features, choices, log)
    if preparation is None and not split(choices.one_hot):
        ready = table.features
    return Ready(table, ready, preparation, log, dropped, rows_read, False)


def _unknown(D: Any) -> str:
    """How many distances of an array are not known, if any."""
    import numpy as np

    missing = int(np.isnan(D).sum()) // 2 if isinstance(D, np.ndarray) else 0
    return f"; {missing} of them not known" if missing else ""


def read(choices: Choices) -> Table:
    """The table with the columns that were asked for; missing values are still in it."""
    from lowland.io import read_distances, read_table

    if choices.hold_distances:
        return read_distances(
            choices.source, part=choices.part, allow_missing=choices.unknown_distances
        )
    labels = [*split(choices.labels), *([choices.target] if choices.target else [])]
    one_hot, drop = split(choices.one_hot), split(choices.drop)
    columns = [name for name in split(choices.columns) if name not in one_hot]
    table = read_table(
        choices.source,
        columns=columns or None,
        labels=[name for name in dict.fromkeys(labels) if name not in drop],
        id_column=choices.id_column,
        part=choices.part,
        allow_missing=True,
    )
    return _without_columns(table, drop) if drop else table


def _without_columns(table: Table, drop: list[str]) -> Table:
    """The table without some columns, features or labels."""
    import numpy as np

    from lowland._core.errors import DataError, unknown_name

    names = table.feature_names
    known = [*(names or ()), *table.labels.columns, *table.unused]
    for name in drop:
        if name not in known:
            raise DataError(f"{table.source}: --drop: {unknown_name('column', name, known)}")
    kept = [] if names is None else [name for name in names if name not in drop]
    if names is not None and not kept:
        raise DataError(f"{table.source}: --drop leaves no column of numbers.")
    labels = table.labels.drop(drop, strict=False)
    if names is None or len(kept) == len(names):
        return dataclasses.replace(table, labels=labels)
    if table.sparse_names is not None:
        places = np.flatnonzero([name in kept for name in names])
        features = table.features[:, places]
        return dataclasses.replace(
            table, features=features, labels=labels, sparse_names=tuple(kept)
        )
    return dataclasses.replace(
        table, features=table.features.select(kept), labels=labels, image_shape=None
    )


def _columns_used(table: Table) -> str:
    from lowland.cli.console import listing

    rows, columns = table.shape
    names = table.feature_names
    parts = [f"{count(rows, 'row')}, {count(columns, 'column')} of numbers"]
    parts[0] += f" ({listing(names)})" if names else ""
    if table.labels.width:
        parts.append(f"kept as labels: {listing(table.labels.columns)}")
    if table.unused:
        parts.append(f"not used: {listing(table.unused)}")
    return "; ".join(parts)


def _without_holes(table: Table, choices: Choices, log: list[str]) -> tuple[Table, list[Any]]:
    """The table once rows with missing values are dropped, or a refusal that lists the columns."""
    import numpy as np

    from lowland._core.errors import DataError
    from lowland._core.validation import all_finite, is_sparse
    from lowland._core.wording import listing

    if is_sparse(table.features) or all_finite(np.asarray(table.features)):
        return table, []
    missing = np.isnan(np.asarray(table.features))
    if choices.impute is None:
        names = table.feature_names or [f"column {i}" for i in range(table.shape[1])]
        counts = missing.sum(axis=0)
        shown = [f"{names[i]!r} ({counts[i]})" for i in np.flatnonzero(counts)]
        raise DataError(
            f"{table.source}: missing values in {count(len(shown), 'column')}: "
            f"{listing(shown, quote=False)}; choose --impute mean, --impute median or "
            "--impute drop-rows, or leave columns out with --drop."
        )
    if choices.impute is not Imputing.DROP_ROWS:
        return table, []
    bad = missing.any(axis=1)
    if bad.all():
        raise DataError(
            f"{table.source}: every row has a missing value, so --impute drop-rows leaves none; "
            "use --impute mean or --impute median, or --drop the emptiest columns."
        )
    dropped = table.ids.filter(bad).to_list()
    log.append(
        f"dropped {count(len(dropped), 'row')} with missing values: "
        f"{listing([str(row) for row in dropped], quote=False)}"
    )
    kept = ~bad
    features = table.features[np.flatnonzero(kept)]
    return (
        dataclasses.replace(
            table,
            features=features,
            labels=table.labels.filter(kept),
            ids=table.ids.filter(kept),
        ),
        dropped,
    )


def _with_categories(table: Table, one_hot: list[str]) -> Any:
    """The features, and the columns of text that become 0 and 1."""
    import polars as pl

    from lowland._core.errors import DataError, unknown_name

    if not one_hot:
        return table.features
    for name in one_hot:
        if name not in table.labels.columns:
            known = list(table.labels.columns)
            raise DataError(
                f"{table.source}: --one-hot: {unknown_name('column of text', name, known)}"
            )
    if not isinstance(table.features, pl.DataFrame):
        raise DataError(f"{table.source}: --one-hot needs a table whose columns have names.")
    texts = table.labels.select(pl.col(one_hot).cast(pl.String))
    return table.features.hstack(texts)


def _prepared(
    features: pl.DataFrame | Any, choices: Choices, log: list[str]
) -> tuple[Any, Preparation | None]:
    """Filled and scaled numbers; None as preparation when they came out as they were."""
    from lowland.preparation.preparation import Preparation

    fills = choices.impute in (Imputing.MEAN, Imputing.MEDIAN)
    preparation = Preparation(
        scale=choices.scale.value, impute=choices.impute.value if fills and choices.impute else None
    ).fit(features)
    if len(preparation.levels_):
        columns = list(dict.fromkeys(preparation.level_columns_))
        log.append(
            f"turned {', '.join(columns)} into {len(preparation.levels_)} columns of 0 and 1"
        )
    if preparation.n_filled_:
        which = choices.impute.value if choices.impute else ""
        filled = count(preparation.n_filled_, "missing value")
        log.append(f"filled {filled} with the column's {which}")
    verb = "not scaled" if preparation.chosen_ == "none" else f"scaled: {preparation.chosen_}"
    log.append(f"{verb} ({preparation.reason_})")
    changed = len(preparation.levels_) or preparation.n_filled_ or preparation.spread_ is not None
    if not changed:
        return features, None
    return preparation.transform(features), preparation

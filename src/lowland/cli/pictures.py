"""The picture of a map, by its dimension and what is known about its axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowland.cli.study import Study
from lowland.cli.summary import variance_shares

if TYPE_CHECKING:
    from lowland.io import Table

__all__ = ["picture_of"]

NAMED_ROWS = 60


def picture_of(table: Table, study: Study, color: str | None) -> Any:
    """A matplotlib figure."""
    from lowland.io import coordinate_names
    from lowland.plot import scatter_map, scatter_map_3d

    Y = study.Y
    shares = variance_shares(study.estimator)
    axes = coordinate_names(Y.shape[1])
    if shares is not None and len(shares) == len(axes):
        axes = [f"{axis} ({share:.1%})" for axis, share in zip(axes, shares, strict=True)]
    method = type(study.estimator).__name__
    early = ", stopped early" if study.stopped else ""
    said = {
        "title": f"{Path(table.source).name}: {method} of {table.shape[0]} rows{early}",
        "label_name": color,
        "axis_names": axes,
    }
    labels = None if color is None else table.column(color).to_numpy()
    if Y.shape[1] == 3:
        return scatter_map_3d(Y, labels, **said)
    return scatter_map(Y, labels, names=_row_names(table), **said)


def _row_names(table: Table) -> list[str] | None:
    """What the rows are called, if they have names and are few enough to write them all."""
    import polars as pl

    if table.ids.dtype != pl.String or len(table.ids) > NAMED_ROWS:
        return None
    return [name or "" for name in table.ids.to_list()]

"""The picture of a map, chosen by its dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland.tables import Table, coordinate_names
from lowland.tables.preparing import Prepared
from lowland.workflow._own_units import places_of_method
from lowland.workflow.fitting import Fit
from lowland.workflow.summary import axis_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What pictures of a method are drawn of, what they are, and when a method has one.


class Scene(NamedTuple):
    """What a picture is drawn of."""

    prepared: Prepared
    fit: Fit
    color: str | None

    @property
    def source(self) -> str:
        return Path(self.prepared.table.source).name

    @property
    def maker(self) -> str:
        """What makes rows of places, for captions."""
        return "model" if hasattr(self.fit.estimator, "uncertainty") else "network"

    @property
    def estimator(self) -> Any:
        return self.fit.estimator

    @property
    def places(self) -> np.ndarray:
        """Places of the units of a grid."""
        return np.asarray(self.estimator.unit_places_)

    @property
    def cells(self) -> str:
        """The shape of the cells of a grid."""
        return getattr(self.estimator, "grid", "rectangle")

    def labels(self) -> np.ndarray | None:
        """The label of each row that colors the map."""
        return None if self.color is None else self.prepared.table.column(self.color).to_numpy()


class Drawn(NamedTuple):
    """A picture, and how to read it in one or two sentences."""

    figure: Figure
    caption: str


class Kind(NamedTuple):
    """A kind of picture: its name, what a method must have for it, and how it is drawn.

    ``needs`` are alternatives: all attributes of one of them are enough. ``draw`` may find that
    there is nothing to draw, such as labels of a table without labels. Without ``own_file`` it is
    in the report only.
    """

    name: str  # of the file, without its suffix
    needs: tuple[tuple[str, ...], ...]
    draw: Callable[[Scene], Drawn | None]
    own_file: bool = True


NAMED_ROWS = 60  # with more rows, their names would cover the map


def picture_of(table: Table, fit: Fit, color: str | None, rows: str | None = None) -> Figure:
    """A matplotlib figure of the map, colored by a column of the table.

    ``rows`` has the rows that it shows, if they are not all rows of the data. Every picture of a
    map that a run makes is drawn here, with the look that the user asked for.
    """
    from lowland.plot._points import asked_look

    Y, estimator = fit.Y, fit.estimator
    shares = None if fit.is_turned else axis_shares(estimator)
    axes = coordinate_names(Y.shape[1])
    if shares is not None and len(shares) == len(axes):
        axes = [f"{axis} ({share:.1%})" for axis, share in zip(axes, shares, strict=True)]
    early = ", stopped early" if fit.stopped else ""
    shown = f"{type(estimator).__name__} of {rows or f'{table.shape[0]} rows'}{early}"
    title = f"{Path(table.source).name}: {shown}"
    with asked_look(fit.look):
        return picture_of_map(table, Y, color, title, axes, fit)


def picture_of_map(
    table: Table,
    Y: np.ndarray,
    color: str | None,
    title: str,
    axes: Sequence[str],
    fit: Fit | None = None,
) -> Figure:
    """A matplotlib figure of any coordinates of the rows of a table.

    Of a ``fit`` it also shows the edges of a torus and the uncertainty, if the method has them.
    """
    from lowland.plot import scatter_map, scatter_map_3d, tiled_map

    labels = None if color is None else table.column(color).to_numpy()
    said: dict[str, Any] = {"title": title, "label_name": color, "axis_names": axes}
    if Y.shape[1] == 3:
        return scatter_map_3d(Y, labels, **said)
    said["names"] = _row_names(table)
    if fit is not None and fit.sides is not None and len(fit.sides) == 2:
        return tiled_map(Y, fit.sides, labels, **said)
    if fit is not None and hasattr(fit.estimator, "uncertainty"):
        uncertainty = fit.estimator.uncertainty
        said["background"] = lambda places: uncertainty(places_of_method(places, fit))
    return scatter_map(Y, labels, **said, background_name="standard deviation of a row there")


def _row_names(table: Table) -> list[str] | None:
    """The names of the rows, if they have names and are few enough to write them all."""
    import polars as pl

    if table.ids.dtype != pl.String or len(table.ids) > NAMED_ROWS:
        return None
    return [name or "" for name in table.ids.to_list()]

"""Pictures of a method in addition to the map, and which fitted attributes allow which picture.

A method that declares the attributes of a row of ``PICTURES`` gets its picture in the folder of the
run and in the report. A new kind of picture is a new row.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base.base import Reducer
from lowland._engines.grids.lattice import Net
from lowland.report.wording import percent
from lowland.tables.preparing import Prepared
from lowland.workflow._own_units import as_array, in_own_units, rows_of_method
from lowland.workflow._stages import OptionalStages
from lowland.workflow.fitting import Fit
from lowland.workflow.pictures.maps import Drawn, Kind, Scene, picture_of
from lowland.workflow.pictures.networks import (
    draw_decoded_places,
    draw_losses,
    draw_reconstructions,
    sampled_rows,
)

REPORT_DPI = 90  # dots per inch in the report, where a picture is about 500 dots wide
LEAST_ROWS, MOST_ROWS = 200, 10_000  # that are drawn around a curve or grid
MOST_VALUES = 20_000_000  # of these rows, which are dense


def _u_matrix(scene: Scene) -> Drawn:
    from lowland.plot import u_matrix

    title = f"{scene.source}: U-matrix"
    figure = u_matrix(scene.places, scene.estimator.u_matrix_, scene.cells, title=title)
    caption = (
        "U-matrix: each cell is a unit of the grid. Dark cells are far from their neighbors and "
        "form borders between groups; light regions hold rows that are alike."
    )
    return Drawn(figure, caption)


def _labeled_units(scene: Scene) -> Drawn | None:
    from lowland.plot import labeled_units
    from lowland.plot.colors import Categories, encode_labels

    labels, name = scene.labels(), scene.color
    if labels is None or not isinstance(encode_labels(labels, len(labels)), Categories):
        return None
    known = np.flatnonzero([value is not None and value == value for value in labels])
    if not len(known):
        return None
    rows = rows_of_method(scene.prepared, scene.fit, known)
    found = scene.estimator.label_units(rows, labels[known])
    figure = labeled_units(
        scene.places,
        found.labels,
        found.shares,
        scene.cells,
        classes=labels,
        title=f"{scene.source}: most frequent {name} in each unit",
        label_name=name,
    )
    caption = (
        f"Labels: each unit has the color of the {name} that most of its rows have. Pale "
        "cells hold rows of several labels, and blank cells hold no rows."
    )
    return Drawn(figure, caption)


def _hits(scene: Scene) -> Drawn:
    from lowland.plot import hits

    title = f"{scene.source}: rows in each unit"
    figure = hits(scene.places, scene.estimator.hits_, scene.cells, title=title)
    caption = (
        "Hits: the filled part of a cell is proportional to the number of rows nearest to its "
        "unit. Empty cells bridge gaps between groups, or the grid has more units than it needs."
    )
    return Drawn(figure, caption)


def _component_planes(scene: Scene) -> Drawn:
    from lowland.plot import component_planes

    codebook = np.asarray(scene.estimator.codebook_)
    found = in_own_units(codebook, scene.prepared, scene.fit)
    spread = None
    if codebook.shape == found.values.shape:  # the units of the method compare columns fairly
        spread = np.std(codebook / (np.abs(codebook).max() or 1.0), axis=0)
    title = f"{scene.source}: columns, {found.units}"
    shown = (scene.places, found.values, found.names, scene.cells)
    figure = component_planes(*shown, variation=spread, title=title)
    caption = (
        f"Component planes: the values of each column in all units, {found.units}, from the lowest "
        "(dark) to the highest (light). Columns whose pictures look alike vary together."
    )
    return Drawn(figure, caption)


def _through_data(scene: Scene) -> Drawn | None:
    from lowland.plot import curve_through_data, grid_through_data

    estimator, labels = scene.estimator, scene.labels()
    net = estimator.net()
    if net.nodes.shape[1] < 2:
        return None
    n, p = scene.prepared.X.shape
    chosen = sampled_rows(n, max(LEAST_ROWS, min(MOST_ROWS, MOST_VALUES // p)))
    given = rows_of_method(scene.prepared, scene.fit, chosen)
    projections = None
    if hasattr(estimator, "inverse_transform"):
        projections = as_array(estimator.inverse_transform(estimator.transform(given)))
    plane = _Plane.through(as_array(given), projections, net)
    if plane is None:
        return None
    what = "curve" if net.edges is None else "grid"
    said: dict[str, Any] = {
        "labels": None if labels is None else labels[chosen],
        "title": f"{scene.source}: the {what} through the data",
        "label_name": scene.color,
        "axis_names": plane.axes,
    }
    rows, nodes, flat = plane[:3]
    if net.edges is None:
        figure = curve_through_data(rows, nodes, flat, closed=net.closed, **said)
    else:
        figure = grid_through_data(rows, nodes, net.edges, flat, **said)
    caption = f"The {what} through the data, in {plane.what}."
    if projections is not None:
        caption += (
            f" Thin lines lead from rows to their places on the {what}; long ones are rows that "
            "it does not explain."
        )
    return Drawn(figure, caption)


def _uncertainty(scene: Scene) -> Drawn | None:
    if scene.fit.Y.shape[1] != 2:
        return None
    caption = (
        "Uncertainty: the darker the background, the less certain the model is about a row at this "
        "place. Gray gaps between groups hold no rows; places in them, and new rows placed there, "
        "are guesses. The numbers are standard deviations of a value, as the method saw the table."
    )
    return Drawn(picture_of(scene.prepared.table, scene.fit, scene.color), caption)


class _Plane(NamedTuple):
    """Rows, nodes and projections in two coordinates, and what these are."""

    rows: np.ndarray
    nodes: np.ndarray
    projections: np.ndarray | None
    axes: list[str]
    what: str

    @classmethod
    def through(cls, rows: np.ndarray, projections: np.ndarray | None, net: Net) -> _Plane | None:
        """The plane of the first two principal axes of the rows; None if there is none.

        Missing values are taken from the projection.
        """
        from lowland.methods.linear.pca import PCA

        if projections is not None:
            rows = np.where(np.isnan(rows), projections, rows)
        if np.isnan(rows).any() or len(rows) < 3:
            return None
        pca = PCA(2, random_state=0).fit(rows)
        shares = pca.explained_variance_ratio_
        axes = [f"principal axis {i + 1} ({share:.1%})" for i, share in enumerate(shares)]
        seen = percent(float(shares.sum()))
        what = f"the plane of the first two principal axes ({seen} of the variance)"
        flat = None if projections is None else pca.transform(projections)
        return cls(pca.transform(rows), pca.transform(as_array(net.nodes)), flat, axes, what)


# A method whose map is a network has activations; losses of others are a line in the report.
NETWORK = ("activation", "loss_history_")
DECODERS = ((*NETWORK, "inverse_transform"), ("uncertainty", "inverse_transform"))
PICTURES = (
    Kind("u_matrix", (("unit_places_", "u_matrix_"),), _u_matrix),
    Kind("labeled_units", (("unit_places_", "label_units"),), _labeled_units),
    Kind("hits", (("unit_places_", "hits_"),), _hits),
    Kind("component_planes", (("unit_places_", "codebook_"),), _component_planes),
    Kind("through_data", (("net",),), _through_data),
    Kind("reconstructions", DECODERS, draw_reconstructions),
    Kind("decoded_places", DECODERS, draw_decoded_places),
    Kind("losses", (NETWORK,), draw_losses),
    Kind("uncertainty", (("uncertainty",),), _uncertainty, own_file=False),  # it is the map's own
)


def picture_names(cls: type[Reducer]) -> tuple[str, ...]:
    """Names of the files with pictures that a fitted method of this class may have."""
    return tuple(kind.name for kind in _kinds_of(cls) if kind.own_file)


def _kinds_of(cls: type[Reducer]) -> list[Kind]:
    def has(name: str) -> bool:
        return name in cls.fitted_attributes or hasattr(cls, name)

    return [kind for kind in PICTURES if any(all(map(has, n)) for n in kind.needs)]


class MethodPictures:
    """The pictures of one run, each drawn when it is first needed; one that fails is left out."""

    def __init__(
        self, prepared: Prepared, fit: Fit, color: str | None, keeper: OptionalStages
    ) -> None:
        self._scene, self._keeper = Scene(prepared, fit, color), keeper
        self._kinds = {kind.name: kind for kind in _kinds_of(type(fit.estimator))}
        self._drawn: dict[str, Drawn | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of those that are files."""
        return tuple(name for name, kind in self._kinds.items() if kind.own_file)

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def write(self, name: str, path: Path) -> None:
        """Write a picture to a file, unless there is nothing to draw or it fails."""
        self._keeper.lost.pop(_lack(name), None)  # of an earlier attempt
        work = functools.partial(self._save, name, path)
        self._keeper.attempt(_lack(name), work, None, path=path)

    def for_report(self) -> dict[str, bytes]:
        """All pictures as PNG files, by their captions."""
        found: dict[str, bytes] = {}
        for name in self._kinds:
            if _lack(name) not in self._keeper.lost:
                found |= self._keeper.attempt(_lack(name), functools.partial(self._png, name), {})
        return found

    def _save(self, name: str, path: Path) -> None:
        from lowland.plot import save_figure

        drawn = self._draw(name)
        if drawn is not None:
            save_figure(drawn.figure, path)
            drawn.figure.set_layout_engine("none")  # the report finds all parts in place

    def _png(self, name: str) -> dict[str, bytes]:
        from lowland.plot._figure import png_bytes

        drawn = self._draw(name)
        return {} if drawn is None else {drawn.caption: png_bytes(drawn.figure, dpi=REPORT_DPI)}

    def _draw(self, name: str) -> Drawn | None:
        if name not in self._drawn:
            self._drawn[name] = self._kinds[name].draw(self._scene)
        return self._drawn[name]


def _lack(name: str) -> str:
    return f"the picture {name}.png was not drawn"

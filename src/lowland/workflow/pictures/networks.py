"""Pictures of methods that make rows of places: reconstructions, decoded places, losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland.workflow._own_units import InOwnUnits, decoded, table_rows
from lowland.workflow.pictures.maps import Drawn, Scene
from lowland.workflow.summary import Pixels, pixels_of

# Which rows a picture shows of a table, if it can show some dozen.


class Shown(NamedTuple):
    """A row, and a word on why it is shown; empty if it is one of many."""

    row: int
    word: str


def sampled_rows(n: int, most: int) -> np.ndarray:
    """All rows, or so many of them at random, in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False, shuffle=False))


def one_per_class(labels: Any, errors: np.ndarray, most: int) -> list[Shown]:
    """The row with the median error of each class; nothing if there are no classes or too many."""
    from lowland.plot.colors import Categories, encode_labels

    coloring = None if labels is None else encode_labels(labels, len(labels))
    if not isinstance(coloring, Categories) or coloring.n_others:
        return []
    if not 2 <= len(coloring.names) <= most:
        return []
    found = []
    for code, name in enumerate(coloring.names):
        rows = np.flatnonzero(coloring.codes == code)
        if rows.size:
            rows = rows[np.argsort(errors[rows], kind="stable")]
            found.append(Shown(int(rows[(len(rows) - 1) // 2]), name))
    return found


def spread_out(Y: np.ndarray, n: int) -> list[Shown]:
    """About n rows in all parts of a map: it is cut into strips with equally many rows, these into
    pieces, and the row nearest to the mean of each piece is taken.
    """
    strips = n if Y.shape[1] == 1 else max(1, n // 2)
    found = []
    for strip in np.array_split(np.argsort(Y[:, 0], kind="stable"), strips):
        across = strip[np.argsort(Y[strip, -1], kind="stable")]
        for piece in np.array_split(across, max(1, n // strips)):
            if piece.size:
                distances = ((Y[piece] - Y[piece].mean(axis=0)) ** 2).sum(axis=1)
                found.append(Shown(int(piece[np.argmin(distances)]), ""))
    return found


def extremes(errors: np.ndarray, counts: Sequence[int]) -> list[Shown]:
    """Rows with the lowest errors, errors around the median, and the highest, so many of each."""
    order = np.argsort(errors, kind="stable")
    best, middle, worst = counts
    start = (len(order) - middle) // 2
    parts = {
        "best": order[:best],
        "median": order[start : start + middle],
        "worst": order[len(order) - worst :],
    }
    return [Shown(int(row), word) for word, rows in parts.items() for row in rows]


MOST_VALUES = 20_000_000  # of rows or places that are decoded
MOST_ROWS = 3000  # whose reconstructions are compared
IN_BAND = 10  # images side by side
BEST, MIDDLE = 3, 3  # of the second band; the others are the worst
IMAGES_ALONG, CELLS_ALONG, FEWEST_ALONG = 13, 24, 3  # places along the longer side of the map


def draw_losses(scene: Scene) -> Drawn | None:
    """The loss by epoch or step, and that of held-out rows."""
    from lowland.plot import loss_plot

    losses = np.asarray(scene.estimator.loss_history_, dtype=np.float64)
    if losses.size < 2 or not np.isfinite(losses).all():
        return None
    held_out = getattr(scene.estimator, "held_out_loss_", None)
    known = held_out is not None and held_out.shape == losses.shape
    if not known or not np.isfinite(held_out).all():
        held_out = None
    figure = loss_plot(
        losses,
        np.arange(losses.size),
        held_out=held_out,
        step_name="epoch or step",
        title=f"{scene.source}: loss of the network",
    )
    caption = "Loss: what the network still gets wrong, from the first weights to the last step."
    if held_out is None:
        return Drawn(figure, f"{caption} A curve that still falls at its end calls for more steps.")
    caption += (
        " If the loss of held-out rows rises while that of the training falls, the network "
        "learns single rows by heart; the weights with the lowest held-out loss are kept."
    )
    return Drawn(figure, caption)


# --- decoded places -------------------------------------------------------------------------------


def draw_decoded_places(scene: Scene) -> Drawn | None:
    """A regular grid of places in the map, and what the method makes of them."""
    from lowland.plot.decoding import grid_over

    pixels = pixels_of(scene.prepared)
    Y = np.asarray(scene.fit.Y, dtype=np.float64)
    rows, n_axes = Y[:, :2], Y.shape[1]
    along = IMAGES_ALONG if pixels is not None else CELLS_ALONG
    along = min(along, int(np.sqrt(MOST_VALUES / scene.prepared.X.shape[1])))
    if along < FEWEST_ALONG or not np.ptp(rows):
        return None
    aspect = 1.0 if pixels is None else pixels.shape[0] / pixels.shape[1]
    places = grid_over(rows, along, aspect=float(np.clip(aspect, 0.25, 4.0))).places
    full = np.repeat(np.median(Y, axis=0)[None], len(places), axis=0)
    full[:, :2] = places
    found = decoded(full, scene.prepared, scene.fit)
    finite = np.isfinite(found.values).all(axis=1)
    if not finite.any():
        return None
    places, found = places[finite], found._replace(values=found.values[finite])
    if pixels is None:
        drawn = _as_planes(scene, rows, places, found)
    else:
        drawn = _as_images(scene, rows, places, found.values, pixels)
    if drawn is None or n_axes == places.shape[1]:
        return drawn
    others = f" Of {n_axes} axes the first two are drawn; the others are at their medians."
    return drawn._replace(caption=drawn.caption + others)


def _as_images(
    scene: Scene, rows: np.ndarray, places: np.ndarray, values: np.ndarray, pixels: Pixels
) -> Drawn:
    from lowland.plot import decoded_images

    labels = scene.labels()
    table = table_rows(scene.prepared, _some_rows(scene))
    figure = decoded_images(
        rows,
        places,
        pixels.images(values, float(values.min())),
        pixels.shape,
        labels,
        limits=(float(np.nanmin(table)), float(np.nanmax(table))),
        title=f"{scene.source}: decoded places of the map",
        label_name=scene.color,
    )
    frames = "" if labels is None else f" A frame has the color of the nearest {scene.color}."
    caption = (
        f"Decoded places: each image is what the {scene.maker} makes of its place in the map; "
        f"places far from all rows are left out.{frames} Blurred images lie between groups, or "
        "many kinds of rows share their place."
    )
    return Drawn(figure, caption)


def _some_rows(scene: Scene) -> np.ndarray:
    """Numbers of rows from all parts of the table, so many that they may be dense."""
    n, p = scene.prepared.X.shape
    most = max(1, min(n, MOST_ROWS, MOST_VALUES // p))
    return np.unique(np.linspace(0, n - 1, most).astype(np.int64))


def _as_planes(
    scene: Scene, rows: np.ndarray, places: np.ndarray, found: InOwnUnits
) -> Drawn | None:
    from lowland.plot import component_planes

    if len(places) < 2:
        return None
    figure = component_planes(
        places,
        found.values,
        found.names,
        "rectangle",
        variation=_shares(found.values, scene),
        rows=rows,
        title=f"{scene.source}: decoded places of the map, {found.units}",
    )
    caption = (
        f"Decoded places: the values of each column, {found.units}, that the {scene.maker} gives "
        "to places in the map, from the lowest (dark) to the highest (light), with the rows as "
        "points. Columns whose pictures look alike vary together in the map; places far from all "
        "rows are left out."
    )
    return Drawn(figure, caption)


def _shares(values: np.ndarray, scene: Scene) -> np.ndarray | None:
    """How much each column varies over the places, relative to its deviation in the table."""
    given = table_rows(scene.prepared, _some_rows(scene))
    if given.shape[1] != values.shape[1]:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.nanstd(given, axis=0)
        shares = np.std(values, axis=0) / np.where(deviation > 0, deviation, np.inf)
    return np.nan_to_num(shares, posinf=0.0)


# --- reconstructions ------------------------------------------------------------------------------


def draw_reconstructions(scene: Scene) -> Drawn | None:
    """Images of some rows, and below each what the method rebuilds of its place in the map."""
    from lowland.plot import reconstruction_pairs

    pixels = pixels_of(scene.prepared)
    n, p = scene.prepared.X.shape
    most = min(MOST_ROWS, MOST_VALUES // p)
    if pixels is None or most < 1:
        return None
    compared = sampled_rows(n, most)
    Y = np.asarray(scene.fit.Y, dtype=np.float64)[compared]
    originals = table_rows(scene.prepared, compared)
    rebuilt = decoded(Y, scene.prepared, scene.fit).values
    with np.errstate(over="ignore"):
        squares = np.where(np.isnan(originals), np.nan, (originals - rebuilt) ** 2)
        errors = np.sqrt(np.nanmean(squares, axis=1))
    shown, what = _first_band(scene, Y, errors, compared)
    if len(compared) > IN_BAND:
        shown = [*shown, *extremes(errors, (BEST, MIDDLE, IN_BAND - BEST - MIDDLE))]
    rows = np.array([entry.row for entry in shown])
    ids = [str(scene.prepared.table.ids[int(compared[row])]) for row in rows]
    fill = float(np.nanmin(originals[rows]))
    figure = reconstruction_pairs(
        pixels.images(originals[rows], fill),
        pixels.images(rebuilt[rows], fill),
        pixels.shape,
        names=[entry.word or name for entry, name in zip(shown, ids, strict=True)],
        notes=[f"{error:.3g}" for error in errors[rows]],
        per_band=IN_BAND,
        title=f"{scene.source}: images, and what the {scene.maker} rebuilds of their places",
    )
    caption = (
        f"Reconstructions: originals above, and below them what the {scene.maker} makes of their "
        f"places in the map, with the root mean squared error of a pixel. {what}"
    )
    if len(compared) > IN_BAND:
        sample = "a sample of " * (n > most)
        caption += (
            f" Then the best, the median and the worst of {sample}{len(compared):,} rows; the "
            f"worst is row {ids[-1]}."
        )
    return Drawn(figure, caption)


def _first_band(
    scene: Scene, Y: np.ndarray, errors: np.ndarray, compared: np.ndarray
) -> tuple[list[Shown], str]:
    """Rows of all kinds, and what they are in a sentence."""
    if len(Y) <= IN_BAND:
        return [Shown(int(row), "") for row in np.argsort(errors)], "All rows, best first."
    labels = scene.labels()
    classes = one_per_class(None if labels is None else labels[compared], errors, IN_BAND)
    if classes:
        return classes, f"First a row of each {scene.color}, with its median error."
    return spread_out(Y, IN_BAND), "First rows from all parts of the map."

"""Checks of a summary: the first key that is missing or does not fit is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland.report.summary import (
    AlignedSet,
    Alignment,
    Card,
    HeldOut,
    Images,
    Input,
    Map,
    Measure,
    Streamed,
    Summary,
    Values,
)
from lowland.trust.result import OtherMap, Plateau, Trust


def check_summary(summary: Mapping[str, Any]) -> None:
    """Raise for the first key that is missing or does not fit."""
    _require(summary, Summary, "the summary")
    _require(summary["input"], Input, "the summary's 'input'")
    if not len(summary["maps"]):
        raise DataError("the summary's 'maps' is empty; a report needs at least one map.")
    n = len(summary["ids"])
    for name, values in summary["labels"].items():
        _check_length(values, n, f"labels[{name!r}]")
    for number, entry in enumerate(summary["maps"]):
        _check_map(entry, n, f"maps[{number}]")
    if summary.get("alignment") is not None:
        _check_alignment(summary["alignment"], n)
    if summary.get("streamed") is not None:
        _require(summary["streamed"], Streamed, "the summary's 'streamed'")
    if summary.get("values") is not None:
        _check_values(summary["values"], n)
    if summary.get("neighbors") is not None:
        _check_neighbors(np.asarray(summary["neighbors"]), n)
    if summary.get("images") is not None:
        _check_images(summary["images"], n)
    color = summary.get("color")
    if color is not None and color not in summary["labels"]:
        known = ", ".join(map(repr, summary["labels"])) or "none"
        raise DataError(f"the summary's 'color' is {color!r}, but the labels are: {known}.")


def _check_map(entry: Mapping[str, Any], n: int, place: str) -> None:
    _require(entry, Map, place)
    _require(entry["card"], Card, f"{place}['card']")
    for name, measure in entry["quality"].items():
        _require(measure, Measure, f"{place}['quality'][{name!r}]")
    for name, values in entry["per_point"].items():
        _check_length(values, n, f"{place}['per_point'][{name!r}]")
    Y = np.asarray(entry["coordinates"])
    if Y.ndim != 2 or Y.shape[0] != n or 0 in Y.shape:
        raise DataError(
            f"{place}['coordinates'] has shape {Y.shape}, but there are {n} ids: "
            "give one row of coordinates for each id."
        )
    sides = entry.get("sides")
    if sides is not None and (len(sides) != Y.shape[1] or not all(0 < s < np.inf for s in sides)):
        raise DataError(
            f"{place}['sides'] is {sides}, but the map has {Y.shape[1]} dimensions: give a length "
            "after which each coordinate begins anew, or None."
        )
    if not np.isfinite(Y).all():
        row = int(np.flatnonzero(~np.isfinite(Y).all(axis=1))[0])
        raise DataError(f"{place}['coordinates'] holds NaN or infinity, first in row {row}.")
    if entry.get("trust") is not None:
        _check_trust(entry["trust"], Y, f"{place}['trust']")
    if entry.get("plateau") is not None:
        _check_plateau(entry["plateau"], n, f"{place}['plateau']")


def _check_trust(trust: Trust, Y: np.ndarray, place: str) -> None:
    """Homes and centers are drawn in the map, so that they have to be about this very map."""
    n = len(Y)
    for name in ("missing", "strangers", "home", "kind"):
        _check_length(getattr(trust.points, name), n, f"{place}.points.{name}")
    _check_length(trust.island_of, n, f"{place}.island_of")
    made = np.asarray(trust.coordinates)
    width = float(np.ptp(Y, axis=0).max())
    if made.shape != Y.shape or not np.allclose(made, Y, rtol=0.0, atol=1e-4 * width):
        raise DataError(
            f"{place}.coordinates differ from the coordinates of the map: check the map after it "
            "was turned or scaled, or turn both alike."
        )
    others: list[OtherMap] = []
    if trust.stability is not None:
        _check_length(trust.stability.points, n, f"{place}.stability.points")
        others += trust.stability.refits
    if trust.chance is not None:
        others.append(trust.chance.null)
    _check_others(others, n, place)


def _check_plateau(plateau: Plateau, n: int, place: str) -> None:
    for name in ("excess", "overlap", "on_plateau"):
        if len(getattr(plateau, name)) != len(plateau.values):
            raise DataError(
                f"{place}.{name} has {len(getattr(plateau, name))} entries, but there are "
                f"{len(plateau.values)} values."
            )
    _check_others(plateau.maps, n, place)


def _check_others(others: Sequence[OtherMap], n: int, place: str) -> None:
    for other in others:
        rows = np.asarray(other.rows)
        if len(rows) != len(other.coordinates):
            raise DataError(
                f"the map {other.title!r} of {place} has {len(rows)} rows, but coordinates of "
                f"{len(other.coordinates)}."
            )
        if len(rows) and not 0 <= rows.min() <= rows.max() < n:
            raise DataError(
                f"the map {other.title!r} of {place} has rows from {rows.min()} to {rows.max()}, "
                f"but there are {n} ids."
            )


def _check_alignment(alignment: Mapping[str, Any], n: int) -> None:
    place = "the summary's 'alignment'"
    _require(alignment, Alignment, place)
    for number, one in enumerate(alignment["sets"]):
        _require(one, AlignedSet, f"{place}['sets'][{number}]")
        for name, measure in one["quality"].items():
            _require(measure, Measure, f"{place}['sets'][{number}]['quality'][{name!r}]")
    if alignment["held_out"] is not None:
        _require(alignment["held_out"], HeldOut, f"{place}['held_out']")
    rows = sum(one["rows"] for one in alignment["sets"])
    if rows != n:
        raise DataError(f"{place} has sets of {rows} rows together, but there are {n} ids.")


def _check_values(values: Mapping[str, Any], n: int) -> None:
    place = "the summary's 'values'"
    _require(values, Values, place)
    shape = tuple(values["numbers"].shape)
    if shape != (n, len(values["names"])):
        raise DataError(
            f"{place} has numbers of shape {shape}, but there are {n} ids and "
            f"{len(values['names'])} names: give one row for each id, one column for each name."
        )
    kind = getattr(getattr(values["numbers"], "dtype", None), "kind", "f")
    if kind not in "biuf":
        raise DataError(f"{place} has numbers of type {values['numbers'].dtype}: give numbers.")


def _check_neighbors(neighbors: np.ndarray, n: int) -> None:
    place = "the summary's 'neighbors'"
    if neighbors.ndim != 2 or len(neighbors) != n or neighbors.dtype.kind not in "iu":
        raise DataError(
            f"{place} has shape {neighbors.shape} and type {neighbors.dtype}, but there are {n} "
            "ids: give whole numbers, one row of nearest rows for each id."
        )
    wrong = (neighbors < -1) | (neighbors >= n)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise DataError(
            f"{place} names row {neighbors[row, column]} in row {row}, but rows are from 0 to "
            f"{n - 1}; -1 stands for none."
        )


def _check_images(images: Mapping[str, Any], n: int) -> None:
    place = "the summary's 'images'"
    _require(images, Images, place)
    pixels, rows = np.asarray(images["pixels"]), images.get("rows")
    is_image = pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] == 3)
    if pixels.dtype != np.uint8 or not is_image or 0 in pixels.shape[1:]:
        raise DataError(
            f"{place} has pixels of shape {pixels.shape} and type {pixels.dtype}: give uint8 of "
            "shape (rows, height, width), or (rows, height, width, 3) for colors."
        )
    if rows is None:
        _check_length(pixels, n, f"{place}['pixels']")
        return
    rows = np.asarray(rows)
    if rows.shape != pixels.shape[:1] or rows.dtype.kind not in "iu":
        raise DataError(
            f"{place} has rows of shape {rows.shape} and type {rows.dtype}, but {len(pixels)} "
            "images: give the row of each image."
        )
    if rows.size and (rows[0] < 0 or rows[-1] >= n or (np.diff(rows) <= 0).any()):
        raise DataError(f"{place}['rows'] must be ascending numbers from 0 to {n - 1}.")


def _require(part: Mapping[str, Any], kind: Any, place: str) -> None:
    for key in sorted(kind.__required_keys__):
        if key not in part:
            raise DataError(
                f"{place} lacks {key!r}; it needs {', '.join(sorted(kind.__required_keys__))}."
            )


def _check_length(values: Sequence[Any] | np.ndarray, n: int, place: str) -> None:
    if len(values) != n:
        raise DataError(f"{place} has {len(values)} values, but there are {n} ids.")

"""The summary of a run, of which a report is written: plain values and arrays.

Every key is required unless it is NotRequired. An unknown value is None or empty.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np

from lowland._base.errors import DataError
from lowland.trust.result import OtherMap, Plateau, Trust

# No postponed annotations in this file: as text, NotRequired would not be recognized.


class Input(TypedDict):
    """The table that was read."""

    source: str  # the file or data set
    rows: int  # before any was dropped
    columns: int  # that were reduced
    features: Sequence[str] | None  # their names
    dominant: NotRequired[Sequence[tuple[str, str, float]]]  # kind, name, share of the variance


class Card(TypedDict):
    """The description of a method; any text may be empty."""

    summary: str
    keeps: str
    use: str
    avoid: str
    cost: str
    reference: str


class Measure(TypedDict):
    """One line of ``lowland.metrics.quality(...).to_dict()``."""

    value: float
    standard_error: float  # 0 when every row was measured
    sample_size: int
    pca: float | None
    random: float | None
    better: str  # "higher" or "lower"
    meaning: str


class Map(TypedDict):
    """One map of the n rows, and what is known about it."""

    name: str  # the method as the registry spells it, or any other name
    title: str
    coordinates: np.ndarray  # (n, d)
    seconds: float | None  # None: made elsewhere
    peak_bytes: int | None
    stopped_early: bool
    card: Card
    parameters: Mapping[str, Any]
    seed: int | None
    quality: Mapping[str, Measure]
    per_point: Mapping[str, np.ndarray]  # n values each, 1 is best, NaN where not measured
    loss_history: Sequence[float] | None
    facts: Mapping[str, Any]  # n_connected_components, explained_variance_ratio, ...
    pictures: Mapping[str, bytes]  # PNG by caption
    sides: NotRequired[Sequence[float] | None]  # of a map that is a torus, from 0 to each side
    trust: NotRequired[Trust | None]  # where the map can be believed
    plateau: NotRequired[Plateau | None]  # maps for several values of one parameter
    learned_from: NotRequired[str | None]  # the column that the method was given beside the rows


class Values(TypedDict):
    """Numbers of the table, for comparing selected rows with the rest."""

    names: Sequence[str]
    numbers: Any  # (n, p) array, data frame or sparse matrix, NaN where missing; it is not copied


class Images(TypedDict):
    """What the rows look like, where they are images."""

    pixels: np.ndarray  # uint8, (m, height, width) or (m, height, width, 3)
    rows: NotRequired[np.ndarray | None]  # (m,) rows they are of, ascending; None: all rows


class AlignedSet(TypedDict):
    """One of several tables that share a map; its rows follow those of the set before."""

    name: str
    rows: int
    columns: int
    partners: int  # rows that have a partner in another set
    quality: Mapping[str, Measure]  # of its part of the map


class PartnerScores(TypedDict):
    """How near the partners of some rows are in a map."""

    nearest: float  # share of rows whose nearest row of the other set is the partner
    rank: float  # mean share of the rows of the other set that are nearer than the partner


class HeldOut(PartnerScores):
    """Pairs that a trial fit was not given, and how well its map finds them."""

    objects: int
    share: float
    chance: PartnerScores
    pca_procrustes: PartnerScores | None


class Alignment(TypedDict):
    """Measures of several sets in one map."""

    sets: Sequence[AlignedSet]
    how: str  # rows were matched, in words
    objects: int  # that at least two sets have
    held_out: HeldOut | None
    reason: str  # why no pairs were held out


class Streamed(TypedDict):
    """How a table larger than memory was processed; the page shows a sample."""

    engine: str  # "stream" or "dask"
    rows: int  # read and placed
    fitted: int  # rows that the method was fitted to
    shown: int  # rows of the summary
    parts: int  # files of the map


class Summary(TypedDict):
    """One run: one table, one or more maps of it; or several tables in one map."""

    title: str
    version: str
    created: str  # ISO 8601
    command: str  # reproduces the run
    input: Input
    preparation: Sequence[str]
    dropped_rows: Sequence[Any]  # their ids
    ids: Sequence[Any] | np.ndarray
    labels: Mapping[str, Sequence[Any] | np.ndarray]
    maps: Sequence[Map]
    color: NotRequired[str | None]  # the label that colors the map when the page opens
    alignment: NotRequired[Alignment | None]  # if the rows come from several tables
    streamed: NotRequired[Streamed | None]  # if the table was read in chunks
    values: NotRequired[Values | None]
    neighbors: NotRequired[np.ndarray | None]  # (n, k) nearest rows in the data, -1 for none
    images: NotRequired[Images | None]


# Checks of a summary: the first key that is missing or does not fit is named.


def check_summary(summary: Mapping[str, Any]) -> None:
    """Raise for the first key that is missing or does not fit."""
    _require(summary, Summary, "the summary")
    for kind in (Input, Alignment, Streamed, Values, Images):
        name = kind.__name__.lower()
        if summary.get(name) is not None:
            _require(summary[name], kind, f"the summary's {name!r}")
    if not len(summary["maps"]):
        raise DataError("the summary's 'maps' is empty; a report needs at least one map.")
    n = len(summary["ids"])
    for name, values in summary["labels"].items():
        _check_length(values, n, f"labels[{name!r}]")
    for number, entry in enumerate(summary["maps"]):
        _check_map(entry, n, f"maps[{number}]")
    checks: dict[str, Any] = {
        "alignment": _check_alignment,
        "values": _check_values,
        "neighbors": _check_neighbors,
        "images": _check_images,
    }
    for name, check in checks.items():
        if summary.get(name) is not None:
            check(summary[name], n, f"the summary's {name!r}")
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
        expected = f"there are {n} ids: give one row of coordinates for each id"
        raise DataError(f"{place}['coordinates'] has shape {Y.shape}, but {expected}.")
    sides = entry.get("sides")
    if sides is not None and (len(sides) != Y.shape[1] or not all(0 < s < np.inf for s in sides)):
        raise DataError(
            f"{place}['sides'] is {sides}, but the map has {Y.shape[1]} dimensions: give a length "
            "after which each coordinate begins anew, or None."
        )
    finite = np.isfinite(Y).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(f"{place}['coordinates'] holds NaN or infinity, first in row {row}.")
    trust, plateau = entry.get("trust"), entry.get("plateau")
    if trust is not None:
        _check_trust(trust, Y, f"{place}['trust']")
    if plateau is not None:
        of_values = f"but there are {len(plateau.values)} values"
        for name in ("excess", "overlap", "on_plateau"):
            found = len(getattr(plateau, name))
            if found != len(plateau.values):
                raise DataError(f"{place}['plateau'].{name} has {found} entries, {of_values}.")
        _check_others(plateau.maps, n, f"{place}['plateau']")


def _check_trust(trust: Trust, Y: np.ndarray, place: str) -> None:
    """Homes and centers are drawn in the map, so that they have to be about this very map."""
    of_points, others = ("missing", "strangers", "home", "kind"), []
    lengths = {f"points.{name}": getattr(trust.points, name) for name in of_points}
    lengths["island_of"] = trust.island_of
    if trust.stability is not None:
        lengths["stability.points"] = trust.stability.points
        others += trust.stability.refits
    if trust.chance is not None:
        others.append(trust.chance.null)
    for name, values in lengths.items():
        _check_length(values, len(Y), f"{place}.{name}")
    made = np.asarray(trust.coordinates)
    width = float(np.ptp(Y, axis=0).max())
    if made.shape != Y.shape or not np.allclose(made, Y, rtol=0.0, atol=1e-4 * width):
        raise DataError(
            f"{place}.coordinates differ from the coordinates of the map: check the map after it "
            "was turned or scaled, or turn both alike."
        )
    _check_others(others, len(Y), place)


def _check_others(others: Sequence[OtherMap], n: int, place: str) -> None:
    for other in others:
        rows, found = np.asarray(other.rows), f"the map {other.title!r} of {place} has"
        if len(rows) != len(other.coordinates):
            length = len(other.coordinates)
            raise DataError(f"{found} {len(rows)} rows, but coordinates of {length}.")
        if len(rows) and not 0 <= rows.min() <= rows.max() < n:
            ends = f"rows from {rows.min()} to {rows.max()}"
            raise DataError(f"{found} {ends}, but there are {n} ids.")


def _check_alignment(alignment: Mapping[str, Any], n: int, place: str) -> None:
    for number, one in enumerate(alignment["sets"]):
        _require(one, AlignedSet, f"{place}['sets'][{number}]")
        for name, measure in one["quality"].items():
            _require(measure, Measure, f"{place}['sets'][{number}]['quality'][{name!r}]")
    if alignment["held_out"] is not None:
        _require(alignment["held_out"], HeldOut, f"{place}['held_out']")
    rows = sum(one["rows"] for one in alignment["sets"])
    if rows != n:
        raise DataError(f"{place} has sets of {rows} rows together, but there are {n} ids.")


def _check_values(values: Mapping[str, Any], n: int, place: str) -> None:
    shape, p = tuple(values["numbers"].shape), len(values["names"])
    if shape != (n, p):
        wanted = "give one row for each id, one column for each name"
        found = f"{place} has numbers of shape {shape}"
        raise DataError(f"{found}, but there are {n} ids and {p} names: {wanted}.")
    if getattr(getattr(values["numbers"], "dtype", None), "kind", "f") not in "biuf":
        raise DataError(f"{place} has numbers of type {values['numbers'].dtype}: give numbers.")


def _check_neighbors(neighbors: np.ndarray, n: int, place: str) -> None:
    neighbors = np.asarray(neighbors)
    if neighbors.ndim != 2 or len(neighbors) != n or neighbors.dtype.kind not in "iu":
        raise DataError(
            f"{place} has shape {neighbors.shape} and type {neighbors.dtype}, but there are {n} "
            "ids: give whole numbers, one row of nearest rows for each id."
        )
    wrong = (neighbors < -1) | (neighbors >= n)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        found = f"{place} names row {neighbors[row, column]} in row {row}"
        raise DataError(f"{found}, but rows are from 0 to {n - 1}; -1 stands for none.")


def _check_images(images: Mapping[str, Any], n: int, place: str) -> None:
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
        found = f"{place} has rows of shape {rows.shape} and type {rows.dtype}"
        raise DataError(f"{found}, but {len(pixels)} images: give the row of each image.")
    if rows.size and (rows[0] < 0 or rows[-1] >= n or (np.diff(rows) <= 0).any()):
        raise DataError(f"{place}['rows'] must be ascending numbers from 0 to {n - 1}.")


def _require(part: Mapping[str, Any], kind: Any, place: str) -> None:
    wanted = sorted(kind.__required_keys__)
    for key in wanted:
        if key not in part:
            raise DataError(f"{place} lacks {key!r}; it needs {', '.join(wanted)}.")


def _check_length(values: Sequence[Any] | np.ndarray, n: int, place: str) -> None:
    if len(values) != n:
        raise DataError(f"{place} has {len(values)} values, but there are {n} ids.")

"""The orientation of a map: by rows that lie in a direction, or by known places."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from lowland._base.chain import Chain
from lowland._base.errors import (
    PYTHON,
    DataError,
    LowlandError,
    ParameterError,
    Spelling,
    count,
    listing,
    shown,
    unknown_name,
)
from lowland.preparation.orientation import Orientation
from lowland.tables import Table, as_table, read_table
from lowland.workflow.fitting import Fit

DIRECTIONS = {
    "north": (0.0, 1.0),
    "east": (1.0, 0.0),
    "south": (0.0, -1.0),
    "west": (-1.0, 0.0),
    "top": (0.0, 1.0),
    "right": (1.0, 0.0),
    "bottom": (0.0, -1.0),
    "left": (-1.0, 0.0),
}
ENTRY = re.compile(r"(?:^|,)\s*(\w+)\s*=")
# Names of the coordinates of a file, to the right and upward; the last two pairs are degrees.
NAMED = (("x", "y"), ("easting", "northing"), ("lon", "lat"), ("lng", "lat"))
DEGREES = ("lon", "lng")
CENTRAL = 1e-6  # of the radius of the map; a row nearer to the center has no direction


class Goal(NamedTuple):
    """Rows of the table, and the direction or the place that each should have.

    ``kind`` is "directions" (unit vectors in the plane) or "places" (coordinates).
    """

    kind: str
    rows: np.ndarray
    targets: np.ndarray
    names: tuple[str, ...]
    text: str
    option: str

    def check(self, dimensions: int) -> None:
        """Refuse a map of so many dimensions that the goal cannot turn."""
        if self.kind == "places":
            if self.targets.shape[1] != dimensions:
                raise DataError(
                    f"{self.option}: the places have "
                    f"{count(self.targets.shape[1], 'coordinate')}, but the map has "
                    f"{count(dimensions, 'dimension')}."
                )
        elif dimensions > 2:
            raise ParameterError(
                f"{self.option}: directions turn a map of one or two dimensions, not of "
                f"{dimensions}; give a file with {dimensions} coordinates of some rows."
            )
        elif dimensions == 1 and self.targets[:, 1].any():
            raise ParameterError(
                f"{self.option}: a map of one dimension has only an east and a west."
            )

    def orientation(self, Y: np.ndarray) -> Orientation:
        """The turn of a map of all rows."""
        self.check(Y.shape[1])
        Y = np.asarray(Y, dtype=np.float64)
        if self.kind == "places":
            return Orientation().fit(Y[self.rows], self.targets)
        offsets = Y - Y.mean(axis=0)
        radius = np.sqrt((offsets**2).sum(axis=1))
        central = radius[self.rows] <= CENTRAL * radius.max()
        if central.any():
            raise DataError(
                f"{self.option}: {self.names[int(central.argmax())]!r} lies in the middle of the "
                "map and so in no direction; name a row at the edge."
            )
        return Orientation().fit_directions(offsets[self.rows], self.targets[:, : Y.shape[1]])


def turned(fit: Fit, goal: Goal, note: Callable[[str], None]) -> Fit:
    """The fit with its map turned, and a model that places new rows in the turned map.

    A finished map is never lost: if it cannot be turned, it stays as it is, and the log and a note
    state why.
    """
    try:
        orientation = goal.orientation(fit.Y)
    except LowlandError as error:
        note(f"not turned: {error}")
        return fit._replace(log=[*fit.log, f"not turned: {error}"])
    model = Chain([*fit.steps, orientation])
    mirrored = bool(np.linalg.det(orientation.rotation_) < 0)
    log = [*fit.log, f"turned{' and mirrored' * mirrored}: {goal.text}"]
    return fit._replace(model=model, Y=orientation.transform(fit.Y), log=log, is_turned=True)


def orientation_goal(orient: Any, table: Table, spelling: Spelling = PYTHON) -> Goal:
    """What ``orient`` asks for, checked against the rows of a table.

    ``orient`` is text such as "north=Stockholm,west=Lisbon", a mapping of directions to rows, a
    file or data frame of coordinates that is joined by id, or an array of one place per row.
    """
    option = spelling.option("orient")
    if isinstance(orient, str) and not os.path.exists(orient) and ENTRY.match(orient):
        return _directions(_entries(orient, option), table, option)
    if isinstance(orient, Mapping):
        pairs = []
        for direction, names in orient.items():
            named = [names] if isinstance(names, str | int) else names
            if not isinstance(named, list | tuple):
                raise ParameterError(
                    f"{option}: {direction!r} has {shown(names)}; expected the name of a row, or "
                    "a list of names."
                )
            pairs += [(str(direction), str(name)) for name in named]
        return _directions(pairs, table, option)
    return _places(orient, table, option)


def _entries(text: str, option: str) -> list[tuple[str, str]]:
    """ "north=A,west=B" as pairs; a comma inside of a name belongs to the name."""
    _, *parts = ENTRY.split(text)
    pairs = list(zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
    for direction, name in pairs:
        if not name:
            raise ParameterError(f"{option}: {direction}= names no row; write north=NAME.")
    return pairs


def _directions(pairs: list[tuple[str, str]], table: Table, option: str) -> Goal:
    if not pairs:
        raise ParameterError(f"{option}: it is empty; write north=NAME.")
    rows, targets = [], []
    for direction, name in pairs:
        if direction.lower() not in DIRECTIONS:
            known = unknown_name("direction", direction, list(DIRECTIONS))
            raise ParameterError(f"{option}: {known}")
        rows.append(_row_called(name, table, option))
        targets.append(DIRECTIONS[direction.lower()])
    names = tuple(name for _, name in pairs)
    said = listing([f"{name} to the {direction.lower()}" for direction, name in pairs], quote=False)
    return Goal("directions", np.array(rows), np.array(targets), names, said, option)


def _row_called(name: str, table: Table, option: str) -> int:
    """The row with this id, or with this value in the first label column that has it."""
    for column in (table.ids, *table.labels.get_columns()):
        found = [row for row, value in enumerate(column.to_list()) if str(value) == name]
        if len(found) > 1:
            raise DataError(
                f"{option}: {len(found)} rows have {name!r} in {column.name!r}; name another row."
            )
        if found:
            return found[0]
    raise DataError(f"{option}: {unknown_name('row', name, _names_of_rows(table))}")


def _names_of_rows(table: Table) -> list[str]:
    """The ids, or the text that distinguishes most rows if rows are only numbered."""
    texts = [column for column in table.labels.get_columns() if not column.dtype.is_numeric()]
    numbered = table.ids.name == "row" and texts
    ids = max(texts, key=lambda column: column.n_unique()) if numbered else table.ids
    return sorted({str(value) for value in ids.to_list()})


def _places(orient: Any, table: Table, option: str) -> Goal:
    """Places of rows that are found by id, or of all rows in order for a bare array."""
    is_file = isinstance(orient, str | os.PathLike)
    known = read_table(orient) if is_file else as_table(orient, name=option)
    places = _coordinates(known, option)
    if known.feature_names is None and known.ids.name == "row":
        if len(places) != table.shape[0]:
            raise DataError(
                f"{option}: the array has {count(len(places), 'row')}, but the map has "
                f"{count(table.shape[0], 'row')}; give a data frame with a column of ids."
            )
        rows, own = np.arange(len(places)), np.arange(len(places))
    else:
        rows, own = _joined(known, table, option)
    needed = places.shape[1] + 1
    if len(rows) < needed:
        raise DataError(
            f"{option}: {known.source} has places of {count(len(rows), 'row')} of the map; "
            f"{needed} are needed to turn a map of {count(places.shape[1], 'dimension')}."
        )
    text = f"toward the places of {count(len(rows), 'row')} in {known.source}"
    return Goal("places", rows, places[own], (), text, option)


def _joined(known: Table, table: Table, option: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the table, and rows of the known places, that have the same id."""
    ids = [str(value) for value in table.ids.to_list()]
    once = {value for value, times in Counter(ids).items() if times == 1}
    row_of = {value: row for row, value in enumerate(ids) if value in once}
    best: list[tuple[int, int]] = []
    for column in (known.ids, *known.labels.get_columns()):
        values = map(str, column.to_list())
        found = {row_of[value]: own for own, value in enumerate(values) if value in row_of}
        if len(found) > len(best):
            best = sorted(found.items())
    if not best:
        some = listing(ids, 3)
        raise DataError(
            f"{option}: no column of {known.source} has the ids of the map, such as {some}."
        )
    rows, own = zip(*best, strict=True)
    return np.array(rows), np.array(own)


def _coordinates(known: Table, option: str) -> np.ndarray:
    """The coordinates of a table: columns with the usual names, or all columns of numbers."""
    values = np.asarray(known.features, dtype=np.float64)
    names = [name.strip().lower() for name in known.feature_names or ()]
    for pair in NAMED:
        places = [_begins(names, wanted) for wanted in pair]
        if None not in places:
            found = values[:, places]  # type: ignore[index]
            if pair == ("x", "y") and "z" in names:
                found = np.column_stack([found, values[:, names.index("z")]])
            if pair[0] in DEGREES:  # a degree of longitude is shorter far from the equator
                found = found * [np.cos(np.radians(found[:, 1].mean())), 1.0]
            return found
    if values.shape[1] > 3:
        raise DataError(
            f"{option}: {known.source} has {values.shape[1]} columns of numbers; keep the "
            "coordinates, or call them x and y, or longitude and latitude."
        )
    return values


def _begins(names: list[str], wanted: str) -> int | None:
    """The column of this name; "lon" and "lat" are beginnings of longer names."""
    for place, name in enumerate(names):
        if name == wanted or (len(wanted) == 3 and name.startswith(wanted)):
            return place
    return None

"""What the viewer of the page can show beyond the points: values, neighbors, pictures, names.

Each part has a budget, so that a page of any table stays a file that a browser opens. What was left
out is said on the page (:func:`viewer_notes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lowland.report import wording
from lowland.report.island_names import island_names
from lowland.report.payload import (
    color_range,
    display_rows,
    pack,
    pack_array,
    pack_numbers,
    unpack_codes,
)
from lowland.report.summary import Summary, Values
from lowland.report.table_numbers import TableNumbers, group_sums
from lowland.report.thumbnails import pack_images

MOST_NEIGHBOR_POINTS = 30_000
MOST_NEIGHBORS = 15
REACH = 75  # a data neighbor is near in the map if it is among so many nearest
MOST_COLUMNS = 200
MOST_VALUE_BYTES = 8_000_000
LEVELS = 256  # different values of a column that one byte per point can hold
MOST_NAMES = 3  # candidates for each island
SAMPLED_ROWS, SAMPLED_VALUES = 5000, 50_000_000  # for the choice of columns
CELLS_ALONG = {1: 32, 2: 8, 3: 4}  # parts of the map, by its dimensions


def pack_page(summary: Summary) -> dict[str, Any]:
    """Everything that the script on the page reads."""
    packed = pack(summary)
    rows = display_rows(len(summary["ids"]))
    chosen = chosen_values(summary, rows)
    packed["values"] = None
    if chosen is not None:
        packed["values"] = {**pack_values(chosen.values), "given": chosen.given}
    packed["neighbors"] = pack_neighbors(summary, rows)
    packed["images"] = pack_images(summary.get("images"), rows, len(summary["ids"]))
    # That a pixel is high in an island tells a reader nothing.
    numbers = None if chosen is None or summary.get("images") is not None else chosen.values
    labels = {name: _shown(given, rows) for name, given in summary["labels"].items()}
    for entry in packed["maps"]:
        found = island_names(unpack_codes(entry["clusters"]), labels, numbers)
        entry["names"] = [[*names[:-1][: MOST_NAMES - 1], names[-1]] for names in found]
        entry["clusters"]["names"] = [
            f"{cluster}: {names[0]}" if len(names) > 1 else cluster
            for cluster, names in zip(entry["clusters"]["names"], found, strict=True)
        ]
    return packed


def viewer_notes(packed: Mapping[str, Any]) -> list[str]:
    """What a reader of the page has to know about what is in it and what is not."""
    notes = []
    values, images = packed["values"], packed["images"]
    if values is not None:
        shown, given = len(values["columns"]), values["given"]
        if shown < given:
            notes.append(
                f"Of {wording.count(given)} columns the page has the {wording.count(shown)} whose "
                "values differ most between the parts of the map."
            )
        if values["rounded"]:
            notes.append(f"Values are rounded to {LEVELS} levels in each column.")
    if images is not None and images["pictured"] < packed["points"]:
        notes.append(f"{wording.count(images['pictured'])} points have a picture, drawn at random.")
    return notes


def _shown(values: Any, rows: np.ndarray) -> Any:
    if len(rows) == len(values):
        return values
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]


# --- neighbors ------------------------------------------------------------------------------------


def pack_neighbors(summary: Summary, rows: np.ndarray) -> dict[str, Any] | None:
    """For each shown point the shown ones among its nearest rows in the data.

    A place holds the rank: the neighbor at place 0 is the nearest. The largest code is none.
    """
    given = summary.get("neighbors")
    if given is None or len(rows) > MOST_NEIGHBOR_POINTS:
        return None
    lists = np.asarray(given)[rows, :MOST_NEIGHBORS]
    place = np.full(len(summary["ids"]) + 1, -1)  # the last one is that of row -1
    place[rows] = np.arange(len(rows))
    found = place[lists]
    found[found == np.arange(len(rows))[:, None]] = -1
    size = 2 if len(rows) < 2**16 else 4
    none = 2 ** (8 * size) - 1
    return {
        "k": int(found.shape[1]),
        "reach": min(_reach(summary), max(len(rows) - 1, 1)),
        "bytes": size,
        "lists": pack_array(np.where(found < 0, none, found), f"<u{size}"),
    }


def _reach(summary: Summary) -> int:
    """The same reach as that of the share of missing neighbors, where this was measured."""
    trusts = (entry.get("trust") for entry in summary["maps"])
    return next((trust.points.reach for trust in trusts if trust is not None), REACH)


# --- values ---------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """The columns of numbers that fit into the page, and how many there are."""

    values: Values
    given: int


def chosen_values(summary: Summary, rows: np.ndarray) -> Chosen | None:
    """The shown rows of the columns that fit into the page; None if there are none.

    If not all columns fit, those are taken whose values differ most between the parts of the
    first map: with c the cells of a coarse grid, the largest share of variance between cells,
    sum_c n_c (mean_c - mean)^2 / sum_i (x_i - mean)^2. It has no units, and a column that takes
    part in what the map shows has a large one.
    """
    given = summary.get("values")
    if given is None:
        return None
    table = TableNumbers(given["numbers"], given["names"])
    fresh = [place for place, name in enumerate(table.names) if name not in summary["labels"]]
    columns = np.array(fresh, dtype=np.intp)
    most = min(MOST_COLUMNS, max(1, MOST_VALUE_BYTES // len(rows)))
    if len(columns) > most:
        shares = _shares_between_cells(table, summary["maps"][0]["coordinates"])[columns]
        columns = np.sort(columns[np.argsort(-shares, kind="stable")[:most]])
    if not columns.size:
        return None
    names = [table.names[place] for place in columns]
    return Chosen({"names": names, "numbers": table.block(rows, columns)}, len(fresh))


def _shares_between_cells(table: TableNumbers, coordinates: np.ndarray) -> np.ndarray:
    n, p = table.shape
    most = min(n, SAMPLED_ROWS, max(100, SAMPLED_VALUES // p))
    rows = np.unique(np.linspace(0, n - 1, most).astype(np.intp))
    Y = np.asarray(coordinates)[rows, : max(CELLS_ALONG)]
    along = CELLS_ALONG[Y.shape[1]]
    cell = np.zeros(len(rows), dtype=np.intp)
    for axis in Y.T:
        inner = np.quantile(axis, np.linspace(0, 1, along + 1)[1:-1])
        cell = cell * along + np.searchsorted(inner, axis)
    counts, sums, squares = group_sums(table, rows, cell, along ** Y.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.where(counts > 0, sums**2 / counts, 0.0).sum(axis=0)
        common = sums.sum(axis=0) ** 2 / counts.sum(axis=0)
        shares = (between - common) / (squares.sum(axis=0) - common)
    return np.where(np.isfinite(shares), shares, 0.0)


def pack_values(values: Values) -> dict[str, Any]:
    """Columns as numbers; as codes of at most 256 levels where that is exact, or has to be.

    A rounded column has levels at equal distances over its range and at equal shares of its
    values, so that neither outliers nor dense regions lose their differences.
    """
    numbers = values["numbers"]
    levels = [_exact_levels(column) for column in numbers.T]
    n_codes = sum(found is not None for found in levels)
    size = len(numbers) * (n_codes + 4 * (len(levels) - n_codes))
    is_tight = size > MOST_VALUE_BYTES
    columns = []
    for name, column, exact in zip(values["names"], numbers.T, levels, strict=True):
        found = exact if exact is not None or not is_tight else _rounded_levels(column)
        columns.append(
            pack_numbers(name, column) if found is None else _pack_levels(name, column, found)
        )
    return {"columns": columns, "rounded": is_tight and n_codes < len(levels)}


def _pack_levels(name: str, column: np.ndarray, levels: np.ndarray) -> dict[str, Any]:
    """A code for each point, of the nearest level; the last level is missing."""
    between = levels[:-1] / 2 + levels[1:] / 2
    is_missing = np.isnan(column)
    codes = np.where(is_missing, len(levels), np.searchsorted(between, column))
    low, high = color_range(column[~is_missing])
    return {
        "name": name,
        "kind": "number",
        "levels": pack_array(np.append(levels, np.nan), "<f8"),
        "codes": pack_array(codes, "<u1"),
        "low": low,
        "high": high,
    }


def _exact_levels(column: np.ndarray) -> np.ndarray | None:
    """The values that occur, ascending; None if there are too many."""
    most = LEVELS - int(np.isnan(column).any())  # one code is for missing values
    for some in (column[: 4 * LEVELS], column):  # the first rows nearly always tell
        found = np.unique(some[~np.isnan(some)])
        if found.size > most:
            return None
    return found


def _rounded_levels(column: np.ndarray) -> np.ndarray:
    known = column[~np.isnan(column)]
    unit = float(np.abs(known).max()) or 1.0  # differences of huge numbers overflow
    half = LEVELS // 2
    regular = np.linspace(known.min() / unit, known.max() / unit, half)
    shares = np.quantile(known / unit, np.linspace(0, 1, half - 1))
    return unit * np.unique(np.concatenate([regular, shares]))

"""What the viewer of the page can show beyond the points: values, neighbors, pictures, names.

Each part has a budget, so that the page of any table is small enough for a browser. The page states
what was left out (:func:`viewer_notes`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland._base.validation import is_sparse
from lowland.report import payload, wording
from lowland.report.summary import Summary, Values
from lowland.report.thumbnails import pack_images

# The numbers of a table in an array, a data frame or a sparse matrix.
#
# Only the rows and columns that are asked for are copied, so that a table of any size can stand
# in a summary. Infinite values count as missing.


BLOCK_VALUES = 4_000_000  # that are dense at a time


class TableNumbers:
    """Columns of numbers by name; columns of other kinds are left out.

    Parameters
    ----------
    numbers : array, polars or pandas data frame, or sparse matrix of shape (n, p)
    names : sequence of p texts

    Examples
    --------
    >>> table = TableNumbers(np.arange(6.0).reshape(3, 2), ["a", "b"])
    >>> table.block(np.array([0, 2]), np.array([1]))
    array([[1.], [5.]])
    """

    def __init__(self, numbers: Any, names: Any) -> None:
        self._numbers = numbers.tocsr() if is_sparse(numbers) else numbers
        self._is_frame = hasattr(numbers, "columns")
        given = [str(name) for name in names]
        self._places = np.arange(len(given))
        if self._is_frame:
            self._places = np.array(
                [place for place in self._places if _is_numeric(numbers, int(place))], dtype=np.intp
            )
        self.names = [given[place] for place in self._places]

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Some rows of some columns as float64, in Fortran order; NaN where missing."""
        found = np.empty((len(rows), len(columns)), order="F")
        places = self._places[columns]
        if self._is_frame:
            for number, place in enumerate(places):
                found[:, number] = _frame_column(self._numbers, int(place))[rows]
        elif is_sparse(self._numbers):
            picked = _indicator(places, self._numbers.shape[1])
            if 2 * len(rows) < self._numbers.shape[0]:
                found[:] = (self._numbers[rows] @ picked).toarray()
            else:  # all rows of a few columns: first the columns, lest the matrix be copied
                found[:] = (self._numbers @ picked)[rows].toarray()
        else:
            values = np.asarray(self._numbers)
            step = max(1, BLOCK_VALUES // max(1, values.shape[1]))
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                found[start : start + step] = values[some[:, None], places[None, :]]
        found[~np.isfinite(found)] = np.nan
        return found


class GroupSums(NamedTuple):
    """Sums over the rows of each group: values counted, their sum and the sum of squares.

    Of each column in units of its own: a value v counts as v / scale - shift, so that neither
    huge numbers nor a large mean spoil differences. All have the shape (groups, columns).
    """

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray


def group_sums(
    table: TableNumbers, rows: np.ndarray, group: np.ndarray, n_groups: int
) -> GroupSums:
    """Sums of all columns over the given rows; ``group`` has the group of each of these rows."""
    p = len(table.names)
    found = GroupSums(*(np.zeros((n_groups, p)) for _ in range(3)))
    member = _indicator(group, n_groups)
    step = max(1, BLOCK_VALUES // max(1, len(rows)))
    for start in range(0, p, step):
        columns = np.arange(start, min(start + step, p))
        values = table.block(rows, columns)
        known = ~np.isnan(values)
        values[~known] = 0.0
        largest = np.abs(values).max(axis=0, initial=0.0)
        values /= np.where(largest > 0, largest, 1.0)
        values -= values.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        values[~known] = 0.0
        found.counts[:, columns] = member @ known
        found.sums[:, columns] = member @ values
        found.squares[:, columns] = member @ values**2
    return found


def _indicator(group: np.ndarray, n_groups: int) -> Any:
    """The matrix (groups, rows) that has 1 where a row is in a group."""
    from scipy.sparse import csr_array

    n = len(group)
    return csr_array((np.ones(n), (group, np.arange(n))), shape=(n_groups, n))


def _is_numeric(frame: Any, place: int) -> bool:
    if hasattr(frame, "iloc"):
        return getattr(frame.dtypes.iloc[place], "kind", "O") in "biuf"
    dtype = frame.dtypes[place]
    return bool(dtype.is_numeric() or str(dtype) == "Boolean")


def _frame_column(frame: Any, place: int) -> np.ndarray:
    if hasattr(frame, "iloc"):  # pandas
        found = frame.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        import polars as pl

        found = frame.to_series(place).cast(pl.Float64).to_numpy()
    return np.asarray(found)


# Names for the islands of a map: what their rows have in common and the others have not.


LEAST_SHARE = 0.5  # of an island's rows: a category has to have more to name it
LEAST_LIFT = 2.0  # times its share among the other rows
LEAST_DIFFERENCE = 0.8  # standardized: what Cohen calls large
MOST_CATEGORIES = 1000  # a label with more is a text
MOST_NUMBERS = 2  # candidates from columns of numbers
MOST_ROWS = 20_000  # that names are computed of,
MOST_PER_ISLAND, FEWEST_PER_ISLAND = 500, 20  # of each island so many
MOST_VALUES = 50_000_000
LONGEST = 40  # characters
Found = list[list[tuple[float, str]]]  # scores and texts, for each island


def island_names(
    clusters: np.ndarray,
    labels: Mapping[str, Sequence[Any] | np.ndarray],
    values: Values | None = None,
) -> list[list[str]]:
    """Candidates for the name of each island, best first; the last is always its number.

    A category of a label is a candidate if more than half of the island's rows have it, and its
    share is at least twice that among all other rows; the largest difference of shares comes
    first. Then come columns of numbers whose standardized difference (mean of the island minus
    mean of the others, in pooled standard deviations) is at least 0.8: "high petal length". Labels
    whose values are nearly all different, such as ids and free text, name nothing. At most 500 rows
    of an island are looked at, spread evenly over the table.

    Parameters
    ----------
    clusters : array of shape (n,)
        The island of each row: 1, 2, ...; 0 for rows outside of all, as from
        :func:`lowland.metrics.islands`.
    labels : mapping of str to n values
    values : dict with ``names`` and ``numbers``, optional
        Columns of numbers; see :class:`lowland.report.Summary`.

    Returns
    -------
    list of list of str
        For island 1, 2, ...

    Examples
    --------
    >>> clusters = np.repeat([1, 2, 3], 40)
    >>> kind = ["cat"] * 40 + ["dog", "hen"] * 40
    >>> weight = np.concatenate([np.linspace(3, 5, 80), np.linspace(20, 40, 40)])
    >>> island_names(clusters, {"kind": kind, "weight": weight})
    [['cat', 'low weight', 'island 1'], ['low weight', 'island 2'], ['high weight', 'island 3']]
    """
    clusters = np.asarray(clusters)
    n_islands = int(clusters.max(initial=0))
    if not n_islands:
        return []
    p = 0 if values is None else len(values["names"])
    rows, weight = _sample(clusters, n_islands, p)
    group = clusters[rows]
    from_labels: Found = [[] for _ in range(n_islands)]
    from_numbers: Found = [[] for _ in range(n_islands)]
    for name, given in labels.items():
        if len(given) != len(clusters):
            length = f"labels[{name!r}] has {len(given)} values"
            raise DataError(f"{length}, but there are {len(clusters)} clusters.")
        chosen = payload.pick(given, rows)
        numbers = payload.as_numbers(chosen)
        if numbers is not None and payload.is_continuum(numbers):
            table = TableNumbers(numbers[:, None], [name])
            sums = group_sums(table, np.arange(len(rows)), group, n_islands + 1)
            _add_numbers(from_numbers, [name], sums, weight)
        else:
            _add_categories(from_labels, name, chosen, group, weight)
    if values is not None:
        table = TableNumbers(values["numbers"], values["names"])
        sums = group_sums(table, rows, group, n_islands + 1)
        _add_numbers(from_numbers, table.names, sums, weight)
    names = []
    for island, (by_label, by_number) in enumerate(zip(from_labels, from_numbers, strict=True)):
        for found in (by_label, by_number):  # the first of equal scores stays first
            found.sort(key=lambda pair: -pair[0])
        best = [text for _, text in [*by_label, *by_number[:MOST_NUMBERS]]]
        names.append([*best, f"island {island + 1}"])
    return names


def _sample(clusters: np.ndarray, n_islands: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of every island, and how many rows of its island each stands for, by island."""
    most = MOST_ROWS // (n_islands + 1)
    if p:
        most = min(most, MOST_VALUES // (p * (n_islands + 1)))
    most = min(max(most, FEWEST_PER_ISLAND), MOST_PER_ISLAND)
    order = np.argsort(clusters, kind="stable")
    bounds = np.searchsorted(clusters[order], np.arange(n_islands + 2))
    rows, weight = [], np.zeros(n_islands + 1)
    for island, (start, stop) in enumerate(itertools.pairwise(bounds)):
        if stop > start:
            kept = np.unique(np.linspace(start, stop - 1, min(stop - start, most)).astype(np.intp))
            rows.append(order[kept])
            weight[island] = (stop - start) / len(kept)
    return np.concatenate(rows), weight


def _add_categories(
    found: Found, name: str, chosen: Any, group: np.ndarray, weight: np.ndarray
) -> None:
    """Categories that many rows of an island have and few others."""
    texts = [payload.label_text(value) or "" for value in chosen]
    known = np.array([bool(text.strip()) for text in texts])
    names = sorted({text for text in texts if text.strip()})
    if not 2 <= len(names) <= min(MOST_CATEGORIES, known.sum() / 2):
        return
    code = {text: number for number, text in enumerate(names)}
    codes = np.array([code[text] for text, fine in zip(texts, known, strict=True) if fine])
    counts = np.zeros((len(weight), len(names)))
    np.add.at(counts, (group[known], codes), 1.0)
    counts *= weight[:, None]
    whole = counts.sum(axis=0)
    for island in range(1, len(weight)):
        rest = whole - counts[island]
        if not counts[island].any() or not rest.any():
            continue
        inside, outside = counts[island] / counts[island].sum(), rest / rest.sum()
        best = int(np.argmax(inside - outside))
        if inside[best] > LEAST_SHARE and inside[best] >= LEAST_LIFT * outside[best]:
            text = _category_name(name, names[best])
            found[island - 1].append((float(inside[best] - outside[best]), text))


def _add_numbers(found: Found, names: list[str], sums: GroupSums, weight: np.ndarray) -> None:
    """Columns whose values in an island are high or low."""
    counts, totals, squares = (part * weight[:, None] for part in sums)
    for island in range(1, len(weight)):
        n, others = counts[island], counts.sum(axis=0) - counts[island]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = totals[island] / n
            rest = (totals.sum(axis=0) - totals[island]) / others
            within = squares.sum(axis=0) - n * mean**2 - others * rest**2
            deviation = np.sqrt(np.maximum(within, 0.0) / (n + others))
            difference = (mean - rest) / np.maximum(deviation, 1e-9)
        # Two values of different islands differ by chance: there is no deviation to compare with.
        few = (sums.counts[island] < 2) | (sums.counts.sum(axis=0) - sums.counts[island] < 2)
        size = np.where(few | np.isnan(difference), 0.0, np.abs(difference))
        for column in np.argsort(-size, kind="stable")[:MOST_NUMBERS]:
            if size[column] >= LEAST_DIFFERENCE:
                word = "high" if difference[column] > 0 else "low"
                text = _shortened(f"{word} {_without_unit(names[column])}")
                found[island - 1].append((float(size[column]), text))


def _category_name(label: str, text: str) -> str:
    """A number or a truth value means nothing without the name of its label."""
    try:
        float(text)
    except ValueError:
        if text not in ("True", "False"):
            return _shortened(text)
    return _shortened(f"{label.replace('_', ' ')} {text}")


def _without_unit(name: str) -> str:
    """The name of a column without what stands in brackets at its end: "petal length (cm)"."""
    bare = re.sub(r"\s*(\([^()]*\)|\[[^][]*\])\s*$", "", name).replace("_", " ")
    return bare if bare.strip() else name


def _shortened(text: str) -> str:
    """One line, and not too long for a map."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


MOST_NEIGHBOR_POINTS = 30_000
MOST_NEIGHBORS = 15
NO_RANK = 2**16 - 1  # no point, as there are fewer
REACH = 75  # a data neighbor is near in the map if it is among so many nearest
MOST_COLUMNS = 200
MOST_VALUE_BYTES = 8_000_000
LEVELS = 256  # different values of a column that one byte per point can hold
MOST_NAMES = 3  # candidates for each island
SAMPLED_ROWS, SAMPLED_VALUES = 5000, 50_000_000  # for the choice of columns
CELLS_ALONG = {1: 32, 2: 8, 3: 4}  # parts of the map, by its dimensions


def pack_page(summary: Summary) -> dict[str, Any]:
    """Everything that the script on the page reads."""
    packed = payload.pack(summary)
    rows = payload.display_rows(len(summary["ids"]))
    chosen = chosen_values(summary, rows)
    packed["values"] = None
    if chosen is not None:
        packed["values"] = {**pack_values(chosen.values), "given": chosen.given}
    packed["neighbors"] = pack_neighbors(summary, rows)
    packed["images"] = pack_images(summary.get("images"), rows, len(summary["ids"]))
    # A high pixel does not describe an island for a reader.
    numbers = None if chosen is None or summary.get("images") is not None else chosen.values
    labels = {name: payload.pick(given, rows) for name, given in summary["labels"].items()}
    for entry in packed["maps"]:
        found = island_names(payload.unpack_codes(entry["clusters"]), labels, numbers)
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


# --- neighbors ------------------------------------------------------------------------------------


def pack_neighbors(summary: Summary, rows: np.ndarray) -> dict[str, Any] | None:
    """For each shown point the shown ones among its nearest rows in the data.

    A place holds the rank: the neighbor at place 0 is the nearest. The largest code: no rank.
    """
    given = summary.get("neighbors")
    if given is None or len(rows) > MOST_NEIGHBOR_POINTS:
        return None
    lists = np.asarray(given)[rows, :MOST_NEIGHBORS]
    place = np.full(len(summary["ids"]) + 1, -1)  # the last one is that of row -1
    place[rows] = np.arange(len(rows))
    found = place[lists]
    found[found == np.arange(len(rows))[:, None]] = -1
    # The same reach as that of the share of missing neighbors, where this was measured.
    trusts = (entry.get("trust") for entry in summary["maps"])
    reach = next((trust.points.reach for trust in trusts if trust is not None), REACH)
    return {
        "k": int(found.shape[1]),
        "reach": min(reach, max(len(rows) - 1, 1)),
        "bytes": 2,
        "lists": payload.pack_array(np.where(found < 0, NO_RANK, found), "<u2"),
    }


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
    n = len(coordinates)
    most = min(n, SAMPLED_ROWS, max(100, SAMPLED_VALUES // len(table.names)))
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
        if found is None:
            columns.append(payload.pack_numbers(name, column))
            continue
        # A code for each point, of the nearest level; the last level is missing.
        missing, between = np.isnan(column), found[:-1] / 2 + found[1:] / 2
        codes = np.where(missing, len(found), np.searchsorted(between, column))
        low, high = payload.color_range(column[~missing])
        packed = {"levels": payload.pack_array(np.append(found, np.nan), "<f8")}
        packed["codes"] = payload.pack_array(codes, "<u1")
        columns.append({"name": name, "kind": "number", **packed, "low": low, "high": high})
    return {"columns": columns, "rounded": is_tight and n_codes < len(levels)}


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

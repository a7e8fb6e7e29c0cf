"""Names for the islands of a map: what their rows have in common and the others have not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowland._core.errors import DataError
from lowland.report.payload import as_numbers, is_continuum, label_text
from lowland.report.summary import Values
from lowland.report.table_numbers import GroupSums, TableNumbers, group_sums

LEAST_SHARE = 0.5  # of an island's rows: a category has to have more to name it
LEAST_LIFT = 2.0  # times its share among the other rows
LEAST_DIFFERENCE = 0.8  # standardized: what Cohen calls large
MOST_CATEGORIES = 1000  # a label with more is a text
MOST_NUMBERS = 2  # candidates from columns of numbers
MOST_ROWS = 20_000  # that names are computed of,
MOST_PER_ISLAND, FEWEST_PER_ISLAND = 500, 20  # of each island so many
MOST_VALUES = 50_000_000
LONGEST = 40  # characters


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
    from_labels: list[list[tuple[float, str]]] = [[] for _ in range(n_islands)]
    from_numbers: list[list[tuple[float, str]]] = [[] for _ in range(n_islands)]
    for name, given in labels.items():
        if len(given) != len(clusters):
            raise DataError(
                f"labels[{name!r}] has {len(given)} values, but there are {len(clusters)} clusters."
            )
        chosen = given[rows] if isinstance(given, np.ndarray) else [given[row] for row in rows]
        numbers = as_numbers(chosen)
        if numbers is not None and is_continuum(numbers):
            table = TableNumbers(numbers[:, None], [name])
            sums = group_sums(table, np.arange(len(rows)), group, n_islands + 1)
            _add_numbers(from_numbers, [name], sums, weight)
        else:
            _add_categories(from_labels, name, chosen, group, weight)
    if values is not None:
        table = TableNumbers(values["numbers"], values["names"])
        sums = group_sums(table, rows, group, n_islands + 1)
        _add_numbers(from_numbers, table.names, sums, weight)
    return [
        [*_best(by_label, None), *_best(by_number, MOST_NUMBERS), f"island {number}"]
        for number, (by_label, by_number) in enumerate(
            zip(from_labels, from_numbers, strict=True), start=1
        )
    ]


def _best(found: list[tuple[float, str]], most: int | None) -> list[str]:
    """Texts by falling score; the first of equal scores stays first."""
    return [text for _, text in sorted(found, key=lambda pair: -pair[0])][:most]


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
    found: list[list[tuple[float, str]]],
    name: str,
    chosen: Any,
    group: np.ndarray,
    weight: np.ndarray,
) -> None:
    texts = [label_text(value) or "" for value in chosen]
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


def _add_numbers(
    found: list[list[tuple[float, str]]], names: list[str], sums: GroupSums, weight: np.ndarray
) -> None:
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
    """A number or a truth value tells nothing without the name of its label."""
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

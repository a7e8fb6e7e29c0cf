"""Which rows of several tables are the same object."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError, Spelling, count, listing
from lowland.methods.linear.pca import PCA
from lowland.metrics.procrustes import match_ranks, procrustes
from lowland.tables.several import as_names, examples, same_objects
from lowland.workflow.aligning.sets import TableSet

FEWEST_DIFFERENT = 0.9  # share of different values in a column that may be ids
SHARED = 0.5  # share of the rows of the smallest table that such a column matches


class Pairs(NamedTuple):
    """The rows of each object in each set, -1 where a set lacks it, and how they were found."""

    rows: np.ndarray | None  # None: nothing is known
    how: str  # in words
    notes: list[str]

    @property
    def n_objects(self) -> int:
        """Objects that at least two sets have."""
        return 0 if self.rows is None else len(self.rows)

    def partners(self, place: int) -> int:
        """Rows of a set that have a partner in another one."""
        return 0 if self.rows is None else int((self.rows[:, place] >= 0).sum())


def match_columns(match: str | Sequence[str] | None, n_sets: int, option: str) -> list[str] | None:
    """The column of ids of each set: one name for all, ``left=right``, or a list of names."""
    if match is None:
        return None
    names = [match] if isinstance(match, str) else [str(name) for name in match]
    if isinstance(match, str) and match.count("=") == n_sets - 1:
        names = [name.strip() for name in match.split("=")]
    names = names * n_sets if len(names) == 1 else names
    if len(names) != n_sets or not all(names):
        raise ParameterError(
            f"{option}: {match!r} is not allowed; expected the name of a column, or one name for "
            f"each of the {n_sets} tables."
        )
    return names


def paired_rows(
    sets: Sequence[TableSet], match: Sequence[str] | None, same_order: bool, spelling: Spelling
) -> Pairs:
    """The pairs that ids or the order of the rows give; none if neither was asked for."""
    if same_order:
        return _by_order(sets, spelling)
    if match is not None:
        return _by_ids(sets, match, spelling)
    return Pairs(None, "no pairs are known; local patterns decide", _hints(sets, spelling))


def _by_order(sets: Sequence[TableSet], spelling: Spelling) -> Pairs:
    read = {one.name: one.prepared.rows_read for one in sets}
    if len({*read.values()}) > 1:
        sizes = ", ".join(f"{name} has {count(rows, 'row')}" for name, rows in read.items())
        raise DataError(
            f"{spelling.option('same_order')}: the tables differ in length: {sizes}; match rows by "
            f"a column of ids with {spelling.option('match')}."
        )
    n = next(iter(read.values()))
    rows = np.full((n, len(sets)), -1, dtype=np.int64)
    for place, one in enumerate(sets):
        kept = one.table.source_rows  # rows with missing values may have been dropped
        rows[np.arange(n) if kept is None else kept, place] = np.arange(one.table.shape[0])
    rows = rows[(rows >= 0).sum(axis=1) >= 2]
    return Pairs(rows, "rows in the same order", [])


def _by_ids(sets: Sequence[TableSet], match: Sequence[str], spelling: Spelling) -> Pairs:
    found = same_objects([one.table.ids for one in sets])
    notes = []
    for place, one in enumerate(sets):
        twice, unnamed, alone = found.twice[place], found.unnamed[place], found.alone[place]
        if twice:
            named = "id names" if len(twice) == 1 else "ids name"
            notes.append(
                f"{one.name}: {len(twice)} {named} several rows, such as {examples(twice[:1])}; "
                "these rows take part without a partner"
            )
        if unnamed:
            have = "row has" if unnamed == 1 else "rows have"
            notes.append(f"{one.name}: {unnamed} {have} no id, and so no partner")
        if alone:
            occur = "id occurs" if alone == 1 else "ids occur"
            notes.append(f"{one.name}: {alone} {occur} in no other table")
    for place, (one, column) in enumerate(zip(sets, match, strict=True)):
        if not (found.rows[:, place] >= 0).any():
            others = [other for other in sets if other is not one][:2]
            there = "; ".join(f"{other.name} has {_some(other)}" for other in others)
            raise DataError(
                f"{spelling.option('match')}: no id of {one.name} (column {column!r}) occurs in "
                f"another table: it has {_some(one)}; {there}."
            )
    columns = listing(list(dict.fromkeys(match)), quote=False)
    return Pairs(found.rows, f"rows with the same {columns}", notes)


def _some(one: TableSet) -> str:
    return examples(as_names(one.table.ids).drop_nulls()[:3].to_list())


def _hints(sets: Sequence[TableSet], spelling: Spelling) -> list[str]:
    """A word to the user whose tables have a column of ids in common."""
    known = []
    for one in sets:
        ids = [one.table.ids.name] if one.table.has_ids else []
        known.append([*ids, *one.table.labels.columns, *(one.table.feature_names or ())])
    for column in known[0]:
        if not all(column in names for names in known[1:]):
            continue
        values = [_column(one, column) for one in sets]
        if any(ids.n_unique() < FEWEST_DIFFERENT * len(ids) for ids in values):
            continue
        found = len(same_objects(values).rows)
        if found >= SHARED * min(len(ids) for ids in values):
            return [
                f"{count(found, 'value')} of column {column!r} are in several tables, but rows are "
                f"not matched; if they are ids, match rows with {spelling.option('match', column)}"
            ]
    return []


def _column(one: TableSet, name: str) -> Any:
    """A column as ids; numbers with fractions name nothing."""
    table = one.table
    ids = table.ids if table.has_ids and name == table.ids.name else table.column(name)
    if ids.dtype.is_float() and not (ids.drop_nulls().round() == ids.drop_nulls()).all():
        return ids.clear()
    return ids


# How well an alignment finds partners that it was not given: pairs held out of a trial fit.


FEWEST = 10  # objects; with fewer, none are held out
MOST = 2000  # objects are held out; more would not tell more


class Match(NamedTuple):
    """How near the partners of some rows are in a map."""

    nearest: float  # share of rows whose nearest row of the other set is the partner
    rank: float  # mean share of the rows of the other set that are nearer than the partner


class HeldOut(NamedTuple):
    """Pairs that were held out, found in a map that was made without them."""

    objects: int
    share: float  # of all objects that are known
    found: Match
    chance: Match
    simple: Match | None  # each set's PCA map, turned by the other pairs (Procrustes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        simple = None if self.simple is None else self.simple._asdict()
        told = {"chance": self.chance._asdict(), "pca_procrustes": simple}
        return {"objects": self.objects, "share": self.share, **self.found._asdict(), **told}


def held_out_rows(n: int, share: float, seed: int) -> np.ndarray:
    """Which of n objects are held out: none if there are few, and at most 2000."""
    wanted = min(round(share * n), MOST) if n >= FEWEST else 0
    chosen = np.zeros(n, dtype=bool)
    if wanted and n - wanted >= 2:
        chosen[np.random.default_rng(seed).permutation(n)[:wanted]] = True
    return chosen


def measure_held_out(
    Xs: Sequence[Any], rows: np.ndarray, chosen: np.ndarray, maps: Sequence[np.ndarray]
) -> HeldOut:
    """Look for the partners of the chosen objects in maps that were made without them."""
    known, asked = rows[~chosen], rows[chosen]
    turned = simple(Xs, known, maps[0].shape[1])
    beside = None if turned is None else match_of(turned, asked)
    shares = (int(chosen.sum()), float(chosen.mean()))
    return HeldOut(*shares, match_of(maps, asked), chance_of(maps, asked), beside)


def match_of(maps: Sequence[np.ndarray], rows: np.ndarray) -> Match:
    """Over all ordered pairs of sets: is the partner the nearest row, and how many are nearer?

    Rows at the same distance as the partner count half.
    """
    nearest, ranks = [], []
    for one, other in combinations(range(len(maps)), 2):
        both = rows[(rows[:, one] >= 0) & (rows[:, other] >= 0)][:, [one, other]]
        if not len(both):
            continue
        nearer, tied = match_ranks(maps[one], maps[other], both)
        others = np.array([[len(maps[other]) - 1], [len(maps[one]) - 1]])
        nearest.append(np.where(nearer == 0, 1.0 / tied, 0.0).ravel())
        ranks.append(((nearer + (tied - 1) / 2) / np.maximum(others, 1)).ravel())
    if not nearest:
        return Match(float("nan"), float("nan"))
    return Match(float(np.concatenate(nearest).mean()), float(np.concatenate(ranks).mean()))


def chance_of(maps: Sequence[np.ndarray], rows: np.ndarray) -> Match:
    """The values of a random map."""
    shares = []
    for one, other in permutations(range(len(maps)), 2):
        both = int(((rows[:, one] >= 0) & (rows[:, other] >= 0)).sum())
        shares += [1.0 / len(maps[other])] * both
    return Match(float(np.mean(shares)) if shares else float("nan"), 0.5)


def simple(Xs: Sequence[Any], rows: np.ndarray, q: int) -> list[np.ndarray] | None:
    """The PCA map of each set, turned to the first one by the known pairs; None without enough."""
    maps = []
    for place, X in enumerate(Xs):
        narrow = min(q, *X.shape)
        Y = np.zeros((X.shape[0], q))
        Y[:, :narrow] = np.asarray(PCA(narrow, random_state=0).fit_transform(X))
        if place:
            both = rows[(rows[:, 0] >= 0) & (rows[:, place] >= 0)]
            if len(both) < 2:
                return None
            Y = procrustes(maps[0], Y, pairs=both[:, [0, place]]).aligned
        maps.append(Y)
    return maps

"""The result of judging a map: :class:`Trust`, its sentences and its table."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import count
from lowland._base.html import SHOWN_ROWS, html_table
from lowland.metrics.gaps import Gap
from lowland.metrics.hills import IslandStability
from lowland.metrics.home import KINDS, PointHome

if TYPE_CHECKING:
    import polars as pl


class Sentence(NamedTuple):
    """One answer: the question by name, how serious the answer is, and the answer.

    ``question`` is "points", "gaps", "merged", "stability", "chance" or "contrast"; ``level`` is
    "fine", "caution" or "serious".
    """

    question: str
    level: str
    text: str


class Island(NamedTuple):
    """A cluster of the map: its number from 1, its rows, and the tests of it in the data."""

    number: int
    rows: int
    center: np.ndarray  # of its rows in the map, (q,)
    inner: Gap | None  # the test of its most likely split; verdict "real": it holds two groups
    stability: IslandStability | None  # None without refits


class OtherMap(NamedTuple):
    """A map of some rows, rotated and scaled to match the map in question."""

    title: str
    rows: np.ndarray  # (m,) row numbers, ascending
    coordinates: np.ndarray  # (m, q)


class Stability(NamedTuple):
    """How much of the map is found again in refits on subsamples, with other seeds."""

    points: np.ndarray  # (n,) share of 15 map neighbors that two refits share; NaN if not measured
    agreement: float  # mean of the points
    chance: float  # of two unrelated maps
    islands: list[IslandStability]
    refits: list[OtherMap]


class Chance(NamedTuple):
    """A refit, compared with a map of structureless data of the same principal variances."""

    recall: float  # share of data neighbors kept by a refit of as many rows
    null_recall: float
    n_islands: int  # of that refit
    null_islands: int
    share_above: float  # of points that keep more neighbors than 95 % of the null's points
    null: OtherMap


class Contrast(NamedTuple):
    """Whether islands are separated in the data, and whether large distances and sizes are kept.

    NaN where there are too few islands, or too few rows.
    """

    silhouette: float  # mean silhouette of the islands in the data
    centers: float  # Spearman correlation of distances between island centers, data and map
    radii: float  # correlation of the logarithms of local radii, data and map


class Plateau(NamedTuple):
    """Maps for several values of one parameter, and which values are equally good (the plateau)."""

    parameter: str
    values: list[float]
    excess: list[float]  # recall of the map minus recall of the map of data without structure
    overlap: list[float]  # share of map neighbors that maps of two halves of the rows share
    on_plateau: list[bool]
    default: float  # the value that the method takes by itself
    recommended: float  # the default if it lies on the plateau
    sentence: str
    maps: list[OtherMap]  # one for each value, of the same rows


@dataclasses.dataclass(frozen=True, eq=False)
class Trust:
    """Where a map can be believed; :func:`lowland.trust.trust` returns one.

    Attributes
    ----------
    coordinates : ndarray of shape (n, q)
        The map.
    points : PointHome
        For each point: ``missing``, ``strangers``, ``home``, ``spread`` and ``kind``.
    islands : list of Island
        The clusters of the map, largest first.
    island_of : ndarray of shape (n,)
        The island of each point, 0 for points outside of all.
    gaps : list of Gap
        The tested gaps between neighboring islands.
    stability : Stability or None
        None without refits.
    chance : Chance or None
        None without refits.
    contrast : Contrast
    sentences : list of Sentence
        At most six, one for each question.
    reasons : dict of str to str
        Why a part is missing: by its name, such as "stability".
    neighbors : ndarray of shape (n, k)
        The nearest rows of each row in the data; -1 for a row that was not judged. Those of a
        sample are the nearest within the sample.
    """

    coordinates: np.ndarray
    points: PointHome
    islands: list[Island]
    island_of: np.ndarray
    gaps: list[Gap]
    stability: Stability | None
    chance: Chance | None
    contrast: Contrast
    sentences: list[Sentence]
    reasons: dict[str, str]
    neighbors: np.ndarray

    def worst(self, most: int = 50) -> np.ndarray:
        """Rows of the misplaced points, the farthest from home first, at most ``most``."""
        points = self.points
        rows = np.flatnonzero(points.kind == KINDS.index("misplaced"))
        away = np.linalg.norm(self.coordinates[rows] - points.home[rows], axis=1)
        return rows[np.argsort(-away, kind="stable")][:most]

    def to_frame(self) -> pl.DataFrame:
        """One row per point, as in ``trust.csv``."""
        import polars as pl

        points, q = self.points, self.coordinates.shape[1]
        kinds = np.array([*KINDS, None], dtype=object)
        found: dict[str, Any] = {
            "missing": points.missing,
            "strangers": points.strangers,
            "kind": kinds[points.kind].tolist(),
        }
        found |= {
            f"home_{'xyz'[axis] if q <= 3 else axis + 1}": points.home[:, axis] for axis in range(q)
        }
        found["island"] = self.island_of
        if self.stability is not None:
            found["stability"] = self.stability.points
        return pl.DataFrame(found, nan_to_null=True)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values of single points and the maps, in plain values for JSON."""
        points, stability, chance = self.points, None, None
        if self.stability is not None:
            stability = {"agreement": self.stability.agreement, "chance": self.stability.chance}
            maps = self.stability.refits
            stability["maps"] = [{"title": each.title, "rows": len(each.rows)} for each in maps]
        if self.chance is not None:
            chance = self.chance._asdict()
            del chance["null"]
        return {
            "sentences": [sentence._asdict() for sentence in self.sentences],
            "points": {
                **points.counts(),
                "judged": int((points.kind >= 0).sum()),
                "missing": _plain(np.nanmean(points.missing)),
                "strangers": _plain(np.nanmean(points.strangers)),
                "chance": points.chance,
                "n_neighbors": points.n_neighbors,
                "reach": points.reach,
            },
            "islands": [
                {
                    "island": island.number,
                    "rows": island.rows,
                    "center": island.center.tolist(),
                    "inner": None if island.inner is None else _plain_gap(island.inner),
                    "stability": None if island.stability is None else island.stability._asdict(),
                }
                for island in self.islands
            ],
            "gaps": [_plain_gap(gap) for gap in self.gaps],
            "stability": stability,
            "chance": chance,
            "contrast": {name: _plain(value) for name, value in self.contrast._asdict().items()},
            "reasons": self.reasons,
        }

    def __repr__(self) -> str:
        parts = [count(len(self.coordinates), "point"), count(len(self.islands), "island")]
        parts.append(
            "no refits" if self.stability is None else f"agreement {self.stability.agreement:.2f}"
        )
        return f"Trust({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """The sentences and the gaps, for notebooks."""
        told = html_table(["question", "level", "answer"], self.sentences, repr(self))
        rows = [
            [f"{gap.one} and {gap.other}", gap.severed, gap.reference, gap.cut, gap.verdict]
            for gap in self.gaps[:SHOWN_ROWS]
        ]
        if not rows:
            return told
        left = len(self.gaps) - len(rows)
        headings = ["islands", "severed", "reference", "cut", "verdict"]
        return told + html_table(headings, rows, "Gaps between islands", left_out=left)


def _plain(value: float) -> float | None:
    """A number as JSON can hold it."""
    return float(value) if np.isfinite(value) else None


def _plain_gap(gap: Gap) -> dict[str, Any]:
    numbers = {name: _plain(getattr(gap, name)) for name in ("severed", "reference", "cut")}
    return {**gap._asdict(), **numbers, "through": list(gap.through)}

"""The summary of a run, of which a report is written: plain values and arrays.

Every key is required unless it is NotRequired. An unknown value is None or empty.
"""

# No postponed annotations in this file: as text, NotRequired would not be recognized.

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np

from lowland.trust.result import Plateau, Trust


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


class Found(TypedDict):
    """How near the partners of some rows are in a map."""

    nearest: float  # share of rows whose nearest row of the other set is the partner
    rank: float  # mean share of the rows of the other set that are nearer than the partner


class HeldOut(Found):
    """Pairs that a trial fit did not know, found in its map."""

    objects: int
    share: float
    chance: Found
    pca_procrustes: Found | None


class Alignment(TypedDict):
    """What is known about several sets in one map."""

    sets: Sequence[AlignedSet]
    how: str  # rows were matched, in words
    objects: int  # that at least two sets have
    held_out: HeldOut | None
    reason: str  # why no pairs were held out


class Streamed(TypedDict):
    """How the rows of a table larger than memory were gone through; the page shows a sample."""

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
    streamed: NotRequired[Streamed | None]  # if the table was read leaf by leaf
    values: NotRequired[Values | None]
    neighbors: NotRequired[np.ndarray | None]  # (n, k) nearest rows in the data, -1 for none
    images: NotRequired[Images | None]

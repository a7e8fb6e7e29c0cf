"""The quality table of a map, and what a run measures of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._base.constraints import Integer, check_argument
from lowland._base.context import generator
from lowland._base.errors import DataError, ParameterError
from lowland._base.threads import limit_blas
from lowland.metrics import coranking
from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured, Quality, QualityRow
from lowland.metrics._options import MapKeywords, check_neighbors
from lowland.metrics._views import GraphView
from lowland.metrics.labels import knn_accuracy
from lowland.metrics.stress import scale_normalized_stress, spearman
from lowland.neighbors import NeighborGraph

PAIR_ROWS = 1_000  # whose pairs are ranked for Spearman's correlation, by default


class Maps(NamedTuple):
    """The measured map first, then the maps to compare it with."""

    neighborhoods: list[Comparison]  # the other maps on fewer rows
    others: list[Comparison]  # all on the same rows; each measure takes as many as it can afford


class MeasureEntry(NamedTuple):
    """One line of the table: how to measure it on all the maps, and what it says."""

    name: str
    measure: Callable[[Maps], list[Measured]]
    better: str
    meaning: str


def quality(
    X: Any,
    Y: Any = None,
    labels: Any = None,
    *,
    n_neighbors: int = 10,
    pca: Any = None,
    **options: Unpack[MapKeywords],
) -> Quality:
    """The main quality measures of a map, next to those of a PCA map and of a random map.

    Neighborhoods (trustworthiness, continuity, recall, R_NX), the large-scale layout (Shepard
    correlation, stress at the best scale) and, with labels, how well classes are separated. A
    number alone means little, so the values of a PCA map and of a random map are given as well.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
        If X is a neighbor graph, only measures of neighbors are given. If it is a graph or a
        matrix of distances, there is no PCA map to compare with.
    labels : array of shape (n,), optional
        The class of each row. Labels cannot prove that a map is faithful; see
        :func:`knn_accuracy`.
    n_neighbors : int, default=10
        Size of the neighborhood; smaller if there are few rows.
    pca : array of shape (n, >= q) or None, default=None
        Scores of X on its principal axes, if they are known already; None computes them.
    **options
        See :class:`Comparison`. With ``sample="auto"`` (the default) each measure takes as many
        rows as it can afford; the correlation takes the pairs of at most 1 000 rows, and the
        neighborhoods of the PCA and random maps are measured on fewer rows than those of the map.

    Returns
    -------
    Quality
        Prints as a table; ``to_dict()``, ``to_frame()``; ``table["trustworthiness"].value``.

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import digits
    >>> data = digits()
    >>> table = quality(data.X, PCA(2).fit_transform(data.X), data.y)
    >>> row = table["trustworthiness"]
    >>> round(row.value, 3), round(row.pca, 3), round(row.random, 2)
    (0.83, 0.83, 0.5)
    """
    compared = Comparison.of(X, Y, **options)
    n = compared.n
    check_argument("n_neighbors", n_neighbors, Integer(1))
    (k,) = check_neighbors([min(n_neighbors, (n - 1) // 2)], (n - 1) // 2, n)
    pca_map = _pca_map(compared, pca)
    random_map = generator(0).standard_normal(compared.map.table.shape)
    baselines = [random_map] if pca_map is None else [pca_map, random_map]
    compared.data_neighbors(k)  # before rows are left out, so that all maps share them
    some = compared.fewer(compared.work.baselines())
    maps = Maps(
        [compared, *(some.with_map(Z) for Z in baselines)],
        [compared, *(compared.with_map(Z) for Z in baselines)],
    )
    rows = []
    for name, measure, better, meaning in _entries(compared, labels, k):
        found = measure(maps)
        beside = None if pca_map is None else found[1]
        rows.append(QualityRow(name, found[0], beside, found[-1], better, meaning))
    return Quality(rows, n, len(compared.rows), k)


def _entries(compared: Comparison, labels: Any, k: int) -> list[MeasureEntry]:
    trust, *entries = neighborhood_entries(k)
    if not isinstance(compared.data, GraphView):
        entries = [trust, *entries, RNX, SHEPARD, STRESS]
    if labels is not None:
        meaning = f"share of labels that {k} neighbors in the map predict; no proof of faithfulness"
        entries.append(
            MeasureEntry("knn_accuracy", _each(knn_accuracy, k, labels), "higher", meaning)
        )
    return entries


def neighborhood_entries(k: int) -> list[MeasureEntry]:
    """The measures of k neighbors."""
    near = f"are a point's {k} neighbors in the %s also near it in the %s? 1 is best"
    kept = f"share of a point's {k} neighbors in the data that are its {k} neighbors in the map"
    entries = (
        (coranking.trustworthiness, near % ("map", "data")),
        (coranking.continuity, near % ("data", "map")),
        (coranking.neighbor_recall, kept),
    )
    return [MeasureEntry(f.__name__, _each(f, k), "higher", meaning) for f, meaning in entries]


RNX = MeasureEntry(
    "rnx_auc",
    lambda maps: coranking.rnx_aucs(maps.others),
    "higher",
    "neighbors kept at all sizes, small ones weighted most: 1 is best, 0 is chance",
)
STRESS = MeasureEntry(
    "scale_normalized_stress",
    lambda maps: [scale_normalized_stress(c) for c in maps.others],
    "lower",
    "relative error of the distances at the best scale of the map: 0 is best",
)
SHEPARD = MeasureEntry(
    "shepard_correlation",
    lambda maps: [spearman(c, c.pairs(PAIR_ROWS)) for c in maps.others],
    "higher",
    "are rows that are far apart in the data far apart in the map? 1 is best",
)


def _each(measure: Callable[..., Any], k: int, labels: Any = None) -> Callable[..., list[Any]]:
    """A measure of k neighbors, on all maps."""
    return lambda maps: [measure(compared, labels, k) for compared in maps.neighborhoods]


def _pca_map(compared: Comparison, given: Any) -> np.ndarray | None:
    """The PCA map of as many dimensions; None where there are no columns to make it of."""
    from lowland.methods.linear.pca import PCA

    if isinstance(compared.data, GraphView) or compared.data.metric == "precomputed":
        if given is not None:
            raise ParameterError("pca: X has no columns, so there is no PCA map; leave it out.")
        return None
    X, Y = compared.data.table, compared.map.table
    q = min(Y.shape[1], *X.shape)
    if given is not None:
        scores = np.asarray(given)
        if scores.ndim != 2 or len(scores) != len(Y) or scores.shape[1] < q:
            raise DataError(
                f"pca has shape {scores.shape}, but the PCA map of X is {len(Y)} rows x {q} "
                "columns; give scores on at least as many principal axes as the map has dimensions."
            )
        return scores[:, :q]
    with limit_blas(1):
        axes = PCA(q, n_jobs=compared.options.threads, random_state=0)
        return np.asarray(axes.fit_transform(X))


# What a run measures of its map: the quality table, and the quality at each point.


NEIGHBORHOOD = 10
FEWEST_ROWS = 4  # with fewer rows, every other row is a neighbor


class Measures(NamedTuple):
    """The quality table of a map (None if it was not measured), and values for each point."""

    table: Quality | None
    per_point: dict[str, np.ndarray]


NOT_MEASURED = Measures(None, {})


def measure_map(
    X: Any,
    Y: np.ndarray,
    *,
    labels: np.ndarray | None = None,
    metric: Any = "euclidean",
    pca_map: np.ndarray | None = None,
    graph: NeighborGraph | None = None,
    map_seconds: float | None = None,
    n_jobs: int | None = None,
) -> Measures:
    """Measure a map against its data; a map of very few rows is not measured.

    Parameters
    ----------
    X, Y : the data and the map
    labels : array of shape (n,), optional
        The class of each row.
    metric : str or callable, default="euclidean"
        Distance between rows of X; "precomputed" if X holds distances.
    pca_map : array of shape (n, q), optional
        The PCA map of X if it is known already.
    graph : NeighborGraph, optional
        The nearest neighbors of the rows of X if they are known already.
    map_seconds : float, optional
        Seconds that the map took or was estimated to take; measuring takes about half as long.
    n_jobs : int or None, default=None
        Threads.
    """
    if len(Y) < FEWEST_ROWS:
        return NOT_MEASURED
    both = Comparison(X, Y, metric=metric, n_jobs=n_jobs, graph=graph, map_seconds=map_seconds)
    table = quality(both, labels=labels, n_neighbors=NEIGHBORHOOD, pca=pca_map)
    k = table.n_neighbors
    per_point = {
        "trustworthiness": coranking.point_trust(both, None, k),
        "continuity": coranking.point_continuity(both, None, k),
    }
    return Measures(table, per_point)

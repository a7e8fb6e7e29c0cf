"""One call, one small table: how far a map can be believed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np

from lowland._core.random import generator
from lowland._core.threads import limit_blas
from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured
from lowland.metrics._options import Keywords, check_neighbors
from lowland.metrics._table import Quality, QualityRow
from lowland.metrics._views import GraphView
from lowland.metrics.coranking import rnx_aucs
from lowland.metrics.labels import knn_accuracy
from lowland.metrics.recall import neighbor_recall
from lowland.metrics.shepard import shepard_correlation
from lowland.metrics.stress import scale_normalized_stress
from lowland.metrics.trust import continuity, trustworthiness

__all__ = ["quality"]

# Beyond so many rows, what costs a sort or a row of distances is measured on fewer of them.
ALL_ROWS = 5_000
FEWER_ROWS = 300
PAIR_ROWS = 1_000


class Entry(NamedTuple):
    """One line of the table: how to measure it on all the maps, and what it says."""

    name: str
    measure: Callable[[list[Comparison]], list[Measured]]
    better: str
    meaning: str


def quality(
    X: Any,
    Y: Any = None,
    labels: Any = None,
    *,
    n_neighbors: int = 10,
    **options: Unpack[Keywords],
) -> Quality:
    """The numbers that matter about a map, each beside a PCA map and a random one.

    Neighborhoods (trustworthiness, continuity, recall, R_NX), the gross layout (Shepard
    correlation, stress at the best scale) and, with labels, whether they lie together. A number
    means little by itself: what a linear map reaches and what chance reaches stand beside it.

    Parameters
    ----------
    X, Y : the data and the map, or a :class:`Comparison` as X alone
        If X is a neighbor graph, only what neighbors can tell; if it is a matrix of distances or a
        graph, there is no PCA to stand beside.
    labels : array of shape (n,), optional
        The class of each row. They cannot prove that a map is faithful; see :func:`knn_accuracy`.
    n_neighbors : int, default=10
        Size of the neighborhood; less when there are few rows.
    **options
        See :class:`Comparison`. With ``sample="auto"`` (the default) and more than 5 000 rows, R_NX
        and stress are measured on 300 of the rows and the correlation on the pairs of 1 000.

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
    (k,) = check_neighbors([min(n_neighbors, (n - 1) // 2)], (n - 1) // 2, n)
    pca, random = _pca_map(compared), _random_map(compared)
    maps = [compared, compared.with_map(random)]
    if pca is not None:
        maps.insert(1, compared.with_map(pca))
    rows = []
    for entry in _entries(compared, labels, k):
        found = entry.measure(maps)
        beside = found[1] if pca is not None else None
        rows.append(
            QualityRow(entry.name, found[0], beside, found[-1], entry.better, entry.meaning)
        )
    return Quality(rows, n, len(compared.rows), k)


def _entries(compared: Comparison, labels: Any, k: int) -> list[Entry]:
    only_neighbors = isinstance(compared.data, GraphView)
    entries = [
        Entry(
            "trustworthiness",
            _each(lambda c: trustworthiness(c, None, k)),
            "higher",
            f"are a point's {k} neighbors in the map neighbors in the data (1), or strangers?",
        ),
        Entry(
            "continuity",
            _each(lambda c: continuity(c, None, k)),
            "higher",
            f"are a point's {k} neighbors in the data still near it in the map (1), or torn away?",
        ),
        Entry(
            "neighbor_recall",
            _each(lambda c: neighbor_recall(c, None, k)),
            "higher",
            f"share of a point's {k} neighbors in the data that are its {k} neighbors in the map.",
        ),
        Entry(
            "rnx_auc",
            lambda maps: rnx_aucs([_fewer(c, FEWER_ROWS) for c in maps]),
            "higher",
            "neighbors kept at all scales, small ones first: 1 is perfect, 0 is chance.",
        ),
        Entry(
            "shepard_correlation",
            _each(lambda c: shepard_correlation(_fewer(c, PAIR_ROWS))),
            "higher",
            "does far in the map mean far in the data (1)? The gross layout.",
        ),
        Entry(
            "scale_normalized_stress",
            _each(lambda c: scale_normalized_stress(_fewer(c, FEWER_ROWS))),
            "lower",
            "error of the distances at the map's best scale: 0 is perfect.",
        ),
    ]
    if only_neighbors:
        entries = [entries[1], entries[2]]
    if labels is not None:
        entries.append(
            Entry(
                "knn_accuracy",
                _each(lambda c: knn_accuracy(c, labels, k)),
                "higher",
                f"labels guessed right from {k} neighbors in the map; no proof of faithfulness.",
            )
        )
    return entries


def _each(measure: Callable[[Comparison], Any]) -> Callable[[list[Comparison]], list[Measured]]:
    return lambda maps: [measure(compared) for compared in maps]


def _fewer(compared: Comparison, m: int) -> Comparison:
    """Fewer rows where that was left to us and the data are large."""
    left_to_us = compared.options.sample == "auto" and compared.n > ALL_ROWS
    return compared.fewer(m) if left_to_us else compared


def _pca_map(compared: Comparison) -> np.ndarray | None:
    """The PCA map of as many dimensions; None where there are no columns to make it of."""
    from lowland.linear.pca import PCA

    if isinstance(compared.data, GraphView) or compared.data.metric == "precomputed":
        return None
    X, q = compared.data.table, compared.map.table.shape[1]
    with limit_blas(1):
        axes = PCA(min(q, *X.shape), n_jobs=compared.options.threads, random_state=0)
        return np.asarray(axes.fit_transform(X))


def _random_map(compared: Comparison) -> np.ndarray:
    return generator(0).standard_normal(compared.map.table.shape)

"""Measures with labels: whether points of the same class lie together in a map.

Labels cannot prove that a map is faithful. A map that separates classes may have split a continuum,
and a map that mixes them may be right, because the data mix them. Never choose a map by labels that
were used to make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from lowland._base.errors import DataError
from lowland._base.validation import as_array
from lowland._engines.distances.distance_rows import blocks_of
from lowland.metrics._comparison import Comparison
from lowland.metrics._measured import Measured, from_rows
from lowland.metrics._options import Keywords, Options, check_neighbors
from lowland.metrics._views import View


def knn_accuracy(
    Y: Any, labels: Any, n_neighbors: int | Sequence[int] = 10, **options: Unpack[Keywords]
) -> Measured | list[Measured]:
    """Share of rows whose label is the most frequent one among their k nearest *other* rows.

    The accuracy of a k-NN classifier, cross-validated by leaving each row out of its own vote. A
    tie of votes goes to the first label in sorted order.

    Labels cannot prove that a map is faithful: one that tears a continuum apart may score higher
    than an honest one. Look at :func:`trustworthiness` and :func:`continuity` as well.

    Parameters
    ----------
    Y : the map (or the data, to compare with), or a :class:`Comparison`, whose map is taken
    labels : array of shape (n,)
        The class of each row; numbers or strings.
    n_neighbors : int or list of int, default=10
    **options
        See :class:`Comparison`; ``metric`` is that of ``Y``.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> round(knn_accuracy(data.X[:, 2:], data.y), 4)
    0.96
    """
    return _over_neighbors(Y, labels, n_neighbors, options, _votes)


def neighborhood_hit(
    Y: Any, labels: Any, n_neighbors: int | Sequence[int] = 10, **options: Unpack[Keywords]
) -> Measured | list[Measured]:
    """Mean share of a row's k nearest that have its own label (Paulovich et al. 2008).

    1 when every neighborhood is pure. Labels cannot prove that a map is faithful; see
    :func:`knn_accuracy`, which has the same parameters.

    References
    ----------
    Paulovich, Nonato, Minghim & Levkowitz (2008), Least square projection, IEEE Trans.
    Visualization and Computer Graphics 14.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> round(neighborhood_hit(data.X[:, 2:], data.y), 4)
    0.952
    """
    return _over_neighbors(Y, labels, n_neighbors, options, _hits)


def silhouette(Y: Any, labels: Any, **options: Unpack[Keywords]) -> Measured:
    """Mean of (b_i - a_i) / max(a_i, b_i), from -1 to 1 (Rousseeuw 1987).

    a_i is a row's mean distance to its own class, b_i to the nearest other class. It rewards round
    and separate clumps, which some methods draw whether the data have them or not: labels cannot
    prove that a map is faithful. Of a sample, the distances are those within the sample.

    Parameters
    ----------
    Y : the map, or the data, or a :class:`Comparison`, whose map is taken
    labels : array of shape (n,)
        The class of each row, at least two different ones.
    **options
        See :class:`Comparison`; ``metric`` is that of ``Y``.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> data = iris()
    >>> round(silhouette(data.X[:, 2:], data.y), 4)
    0.6409
    """
    view, settings = _seen(Y, options)
    classes = _classes(labels, view.n)[view.rows]
    if not 2 <= len(np.unique(classes)) < len(classes):
        raise DataError(
            f"labels: a silhouette needs at least 2 classes, and fewer than rows; there are "
            f"{len(np.unique(classes))} among {len(classes)} rows."
        )
    with settings.working():
        return from_rows(_silhouettes(view, classes), view.n)


def _silhouettes(view: View, classes: np.ndarray) -> np.ndarray:
    """(b_i - a_i) / max(a_i, b_i) of the measured rows among themselves; 0 if alone in a class."""
    order = np.argsort(classes, kind="stable")
    starts, sizes = np.unique(classes[order], return_index=True, return_counts=True)[1:]
    own = np.unique(classes, return_inverse=True)[1]
    source = view.distances_among(view.rows)
    found = np.zeros(len(classes))
    for rows in blocks_of(np.arange(source.n), source.n):
        D = source.of(rows)
        i, mine = np.arange(len(rows)), own[rows]
        D[i, rows] = 0.0
        sums = np.add.reduceat(D[:, order], starts, axis=1)
        a = sums[i, mine] / np.maximum(sizes[mine] - 1, 1)
        means = sums / sizes
        means[i, mine] = np.inf
        b = means.min(axis=1)
        larger = np.maximum(a, b)
        ratio = (b - a) / np.where(larger > 0, larger, 1.0)
        found[rows] = np.where(sizes[mine] > 1, ratio, 0.0)
    return found


def _over_neighbors(
    Y: Any, labels: Any, n_neighbors: Any, options: Keywords, score: Any
) -> Measured | list[Measured]:
    view, settings = _seen(Y, options)
    sizes = check_neighbors(n_neighbors, view.n - 1, view.n)
    classes = _classes(labels, view.n)
    with settings.working() as monitor:
        near = classes[view.nearest(max(sizes), monitor).indices]
    found = [from_rows(score(near[:, :k], classes[view.rows]), view.n) for k in sizes]
    return found[0] if np.ndim(n_neighbors) == 0 else found


def _seen(Y: Any, options: Keywords) -> tuple[View, Options]:
    if isinstance(Y, Comparison):
        Comparison.of(Y, None, **options)  # refuses options that it has already
        return Y.map, Y.options
    settings = Options(**options)
    return settings.view(Y, "Y"), settings


def _classes(labels: Any, n: int) -> np.ndarray:
    """Labels as numbers of sorted classes."""
    labels = as_array(labels, "labels")
    if labels.shape != (n,):
        raise DataError(
            f"labels has shape {labels.shape}, but one label for each of {n} rows is needed."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise DataError(
            f"labels contains NaN, first in row {int(np.flatnonzero(np.isnan(labels))[0])}; "
            "drop these rows or give them a separate class."
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except Exception as error:  # labels are objects, which compare as they like
        raise DataError(f"labels cannot be sorted ({error}); use labels.astype(str).") from error


def _votes(near: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Whether the most frequent class of each row's neighbors is its own."""
    m, n_classes = len(near), int(max(near.max(), own.max())) + 1
    right = np.empty(m)
    step = max(1, 2**22 // n_classes)
    for start in range(0, m, step):
        rows = slice(start, min(start + step, m))
        place = np.arange(rows.stop - start)[:, None] * n_classes + near[rows]
        votes = np.bincount(place.ravel(), minlength=(rows.stop - start) * n_classes)
        right[rows] = votes.reshape(-1, n_classes).argmax(axis=1) == own[rows]
    return right


def _hits(near: np.ndarray, own: np.ndarray) -> np.ndarray:
    return (near == own[:, None]).mean(axis=1)

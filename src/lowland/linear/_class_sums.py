"""Sums of labeled rows by class, for LDA: batches with different classes can be merged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._core.context import FitContext
from lowland._core.errors import DataError, ParameterError
from lowland._core.memory import require_memory
from lowland._core.targets import Labels, join_classes
from lowland._engines.linalg.class_moments import (
    ClassMoments,
    class_moments,
    merge_classes,
    widened,
)
from lowland.linear._moments import check_merged, check_squares


class LabeledSums(NamedTuple):
    """The sorted classes, and the sums of the rows of each."""

    classes: np.ndarray
    sums: ClassMoments


def labeled_sums(X: Any, labels: Labels, named: Any, run: FitContext) -> LabeledSums:
    """Sums of the rows of X by class; ``named`` lists all classes that may come, or is None."""
    classes = join_classes(labels, None, named, owner="LDA")
    codes = np.searchsorted(classes, labels.classes)[labels.codes]
    sums = class_moments(X, codes, len(classes), run.threads, run.monitor)
    check_squares(np.diagonal(sums.scatter), X, "LDA")
    return LabeledSums(classes, sums)


def merged(a: LabeledSums, b: LabeledSums) -> LabeledSums:
    """Sums of the rows of both, over the classes of either."""
    new = Labels(b.classes, np.arange(len(b.classes)))
    classes = join_classes(new, a.classes, None, owner="LDA")
    parts = [
        widened(part.sums, np.searchsorted(classes, part.classes), len(classes)) for part in (a, b)
    ]
    sums = merge_classes(*parts)
    check_merged(sums.scatter, np.vstack([part.means for part in parts]), "LDA")
    return LabeledSums(classes, sums)


def check_sizes(classes: np.ndarray, n: int, p: int, n_components: int | None) -> None:
    """Refuse n rows of p columns with these classes where LDA has no answer or too few bytes."""
    C = len(classes)
    if C < 2:
        raise DataError(
            "LDA needs at least two classes, but y has only one class, "
            f"{classes.tolist()[0]!r}; give rows of another class, too."
        )
    if n <= C:
        raise DataError(
            f"LDA needs more rows than classes, not {n} rows of {C} classes, because the variance "
            "within classes cannot be estimated from one row per class; give more rows."
        )
    most = min(C - 1, p)
    if n_components is not None and n_components > most:
        raise ParameterError(
            f"LDA: n_components={n_components} is more than {most}, one less than the "
            f"{C} classes or the number of columns ({p}); ask for at most {most}."
        )
    size, matrix = min(n, p), "covariances" if p <= n else "inner products"
    require_memory(
        8 * (5 * size * size + (n * p if n < p else 0)),
        task=f"LDA with {size} x {size} {matrix}",
        alternative="reduce the columns first, for example with PCA(n_components=1000)",
    )


def class_priors(priors: Any, counts: np.ndarray) -> np.ndarray:
    """The given probabilities of the classes, checked; None gives the shares of the rows."""
    if priors is None:
        return counts / counts.sum()
    given = np.asarray(priors, dtype=float)
    if len(given) != len(counts) or abs(given.sum() - 1.0) > 1e-5:
        raise ParameterError(
            f"LDA: priors={priors!r} are {len(given)} numbers with the sum "
            f"{given.sum():g}; give {len(counts)}, one per class, with the sum 1."
        )
    return given / given.sum()

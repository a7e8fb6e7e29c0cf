"""Bounds that come from samples: whether ours could be below others by chance alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import ttest_1samp, ttest_ind

LEVEL = 0.01  # a comparison fails once in a hundred times where both sides follow one law


def not_below(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether the mean of ours is above that of theirs, or below it by no more than chance.

    Student's test with the spread of both samples, such as measures of maps with several seeds.
    """
    if np.mean(ours) >= np.mean(theirs):
        return True
    return bool(ttest_ind(ours, theirs, alternative="less").pvalue >= LEVEL)


def not_below_in_pairs(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """The same where both were measured on the same cases, such as rows: by their differences."""
    differences = np.asarray(ours, float) - np.asarray(theirs, float)
    if differences.mean() >= 0:
        return True
    return bool(ttest_1samp(differences, 0.0, alternative="less").pvalue >= LEVEL)

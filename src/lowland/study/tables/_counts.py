"""Counts whose rows differ much in their sums, as those of cells or texts: a suggestion."""

from __future__ import annotations

import numpy as np

from lowland._core.validation import is_sparse
from lowland.io import Table
from lowland.study.tables.options import TableOptions

ZEROS = 0.5  # share of zeros from which a table is one of sparse counts
UNEQUAL = 3.0  # ratio of large to small sums of rows
FEWEST = 20  # rows and columns
ROWS_LOOKED_AT = 2000
BYTE = 255  # the largest value of pixels, which are no counts


def count_notes(table: Table, options: TableOptions) -> list[str]:
    """The suggestion to normalize rows of a sparse matrix of counts, unless the user said so."""
    X = table.features
    if options.normalize or not is_sparse(X) or min(X.shape) < FEWEST:
        return []
    some = X[:: max(1, X.shape[0] // ROWS_LOOKED_AT)]
    values = some.data
    if not values.size or some.nnz > (1 - ZEROS) * some.shape[0] * some.shape[1]:
        return []
    whole = values.min() >= 0 and (values == np.floor(values)).all()
    if not whole or values.max() in (1, BYTE):
        return []
    sums = np.asarray(some.sum(axis=1)).ravel()
    low, high = np.quantile(sums[sums > 0], [0.05, 0.95])
    if high < UNEQUAL * low:
        return []
    advice = options.spelling.option("normalize", "cpm,log1p")
    return [
        f"these look like counts whose rows have very different sums ({low:g} to {high:g} for most "
        f"rows), which a map would show first; {advice} makes rows comparable"
    ]

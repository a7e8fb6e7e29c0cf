"""Blocks of rows: how many rows are processed at a time, and in which slices.

    for rows in row_blocks(n, rows_within(8 * p, 2**25)):
        out[rows] = f(X[rows])

Block boundaries depend on the sizes only, never on the number of threads. Where a sum runs over
blocks, its order (and so its last digit) depends on the block size: keep it fixed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

BLOCK_ROWS = 2**17
BLOCK_BYTES = 2**25  # 4 million float64 numbers


def rows_within(bytes_per_row: int, budget: int = BLOCK_BYTES, multiple: int = 1) -> int:
    """The number of rows that fit into ``budget`` bytes, at least 1.

    A number above ``multiple`` is rounded down to a multiple of it.

    >>> rows_within(8 * 1000, budget=2**20), rows_within(8 * 1000, budget=2**20, multiple=24)
    (131, 120)
    """
    rows = max(1, budget // max(1, bytes_per_row))
    return rows - rows % multiple if rows > multiple else rows


def row_blocks(n_rows: int, rows_per_block: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)`` in order; the last one may be shorter.

    >>> list(row_blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n_rows, rows_per_block):
        yield slice(start, min(start + rows_per_block, n_rows))


def contiguous_blocks(
    X: np.ndarray, rows_per_block: int = BLOCK_ROWS
) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices, and the rows of X in them with adjacent columns adjacent in memory.

    A block is a view of X where its memory layout allows it, else a copy.
    """
    for rows in row_blocks(X.shape[0], rows_per_block):
        block = strided(X[rows])
        contiguous = X.shape[1] == 1 or block.strides[1] == block.itemsize
        yield rows, block if contiguous else np.ascontiguousarray(block)


def strided(X: np.ndarray) -> np.ndarray:
    """X, or a copy of it where its strides are not multiples of its item size.

    The kernels count steps in numbers, so they cannot read the columns of a record array.
    """
    steps = all(stride % X.itemsize == 0 for stride in X.strides)
    return X if steps and X.flags.aligned else X.copy(order="C")

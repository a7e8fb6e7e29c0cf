"""Blocks of rows cover all rows once, in order, within the memory that they are given."""

import numpy as np
import pytest

from lowland._engines.linalg.products import contiguous_blocks, row_blocks, rows_within


@pytest.mark.parametrize(("n", "step"), [(0, 4), (1, 4), (4, 4), (5, 4), (13, 5), (13, 100)])
def test_slices_cover_every_row_once_in_order(n, step):
    rows = list(row_blocks(n, step))
    assert [i for part in rows for i in range(n)[part]] == list(range(n))
    assert all(part.stop - part.start == step for part in rows[:-1])
    assert all(0 < part.stop - part.start <= step for part in rows)


@pytest.mark.parametrize("multiple", [1, 8, 24])
def test_blocks_stay_within_the_budget_and_hold_at_least_one_row(multiple):
    for bytes_per_row in (0, 1, 7, 800, 10**9):
        rows = rows_within(bytes_per_row, 2**20, multiple)
        assert rows == 1 or rows * bytes_per_row <= 2**20
        assert rows <= multiple or rows % multiple == 0
        more = rows + multiple
        assert more * max(1, bytes_per_row) > 2**20  # no larger block would fit


def test_contiguous_blocks_copy_only_what_they_must(dense_layout):
    X = np.arange(26.0).reshape(13, 2)
    given = dense_layout(X)
    rows, blocks = zip(*contiguous_blocks(given, 5), strict=True)
    assert [(r.start, r.stop) for r in rows] == [(0, 5), (5, 10), (10, 13)]
    assert np.array_equal(np.vstack(blocks), X)
    usable = given.strides[1] == 8 and given.strides[0] % 8 == 0 and given.flags.aligned
    assert all(np.shares_memory(block, given) == usable for block in blocks)

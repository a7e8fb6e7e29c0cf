"""``lowland.procrustes``: closed forms, scipy, pairs of rows, residuals, hostile input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.spatial

import lowland
from lowland.errors import LowlandError
from support.cases import each

rng = np.random.default_rng(0)
Y1 = rng.standard_normal((40, 3)) * [5.0, 2.0, 1.0] + 100.0
TURN = np.linalg.qr(rng.standard_normal((3, 3)))[0]
MOVED = 0.25 * Y1 @ TURN + [7.0, -3.0, 0.0]  # Y2 = a Y1 R + b
NOISY = MOVED + 0.1 * rng.standard_normal(MOVED.shape)


def test_a_turned_scaled_and_moved_map_is_recovered_to_rounding():
    found = lowland.procrustes(Y1, MOVED)
    np.testing.assert_allclose(found.aligned, Y1, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.rotation, TURN.T, atol=1e-12)
    assert found.scale == pytest.approx(4.0, rel=1e-12)
    assert found.disparity == 0.0
    assert found.residuals.shape == (40,)
    assert found.residuals.max() < 1e-11


def test_the_disparity_is_that_of_scipy():
    found = lowland.procrustes(Y1, NOISY)
    assert found.disparity == pytest.approx(scipy.spatial.procrustes(Y1, NOISY)[2], rel=1e-9)
    assert found.disparity == pytest.approx(lowland.procrustes(NOISY, Y1).disparity, rel=1e-9)


@each("scaling", [True, False])
@each("reflection", [True, False])
def test_the_parts_make_the_aligned_map_and_its_residuals(scaling, reflection):
    found = lowland.procrustes(Y1, NOISY, scaling=scaling, reflection=reflection)
    np.testing.assert_allclose(
        found.aligned, found.scale * NOISY @ found.rotation + found.translation, atol=1e-10
    )
    np.testing.assert_allclose(found.residuals, np.linalg.norm(Y1 - found.aligned, axis=1))
    assert (found.residuals**2).sum() <= ((Y1 - NOISY) ** 2).sum()
    assert scaling or found.scale == 1.0
    assert reflection or np.linalg.det(found.rotation) == pytest.approx(1.0)


def test_only_paired_rows_decide_and_all_rows_are_moved():
    order = np.random.default_rng(1).permutation(40)
    shuffled = MOVED[order].copy()
    pairs = np.column_stack([order[:6], np.arange(6)])
    shuffled[30:] += 50.0  # unpaired rows may lie anywhere
    found = lowland.procrustes(Y1, shuffled, pairs=pairs)
    np.testing.assert_allclose(found.aligned[:30], Y1[order[:30]], atol=1e-10)
    assert found.aligned.shape == (40, 3)
    assert found.residuals.shape == (6,)
    assert found.residuals.max() < 1e-10
    fewer = lowland.procrustes(Y1, shuffled[:5], pairs=pairs[:5])
    assert len(fewer.aligned) == 5


def test_maps_of_other_widths_get_columns_of_zeros():
    flat = np.column_stack([Y1[:, :2], np.zeros(40)])
    for ours, theirs in zip(
        lowland.procrustes(Y1, Y1[:, :2]), lowland.procrustes(Y1, flat), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    found = lowland.procrustes(Y1[:, :1], Y1)
    assert found.aligned.shape == (40, 3)
    paired = lowland.procrustes(Y1, Y1[:, :2], pairs=np.repeat(np.arange(40), 2).reshape(40, 2))
    np.testing.assert_allclose(paired.aligned, lowland.procrustes(Y1, Y1[:, :2]).aligned)


def test_data_frames_lists_and_float32_are_taken_and_nothing_is_changed():
    before = Y1.copy(), MOVED.copy()
    expected = lowland.procrustes(Y1, MOVED)
    for one, other in (
        (pd.DataFrame(Y1), pl.DataFrame(MOVED)),
        (Y1.tolist(), MOVED.tolist()),
        (np.asfortranarray(Y1), MOVED[:, ::-1][:, ::-1]),
    ):
        found = lowland.procrustes(one, other)
        np.testing.assert_allclose(found.aligned, expected.aligned)
    single = lowland.procrustes(Y1.astype(np.float32), MOVED.astype(np.float32))
    assert single.disparity < 1e-10
    np.testing.assert_array_equal(Y1, before[0])
    np.testing.assert_array_equal(MOVED, before[1])


def test_tiny_and_huge_maps_keep_their_digits():
    for a, b in ((1e-70, 1e70), (2.0**-200, 2.0**100), (1e70, 1e70)):
        found = lowland.procrustes(a * Y1, b * MOVED)
        np.testing.assert_allclose(found.aligned, a * Y1, rtol=1e-9)
        assert found.residuals.max() < 1e-9 * a


def test_maps_without_extent_are_no_error():
    same = lowland.procrustes(np.ones((3, 2)), np.zeros((3, 2)))
    assert (same.disparity, same.scale) == (0.0, 1.0)
    np.testing.assert_array_equal(same.residuals, 0.0)
    assert lowland.procrustes(Y1, np.zeros((40, 1))).disparity == 1.0
    assert lowland.procrustes([[1.0, 2.0]], [[3.0, 5.0]]).residuals.max() == 0.0


@each(
    "one, other, pairs, message",
    [
        (Y1, MOVED[:9], None, "Y1 has 40 rows, but Y2 has 9; give pairs"),
        (Y1, np.where(np.arange(3) == 1, np.nan, MOVED), None, "Y2 contains NaN"),
        (Y1[0], MOVED, None, "Expected 2D array"),
        (Y1, np.zeros((0, 3)), None, "0 sample"),
        (Y1, np.zeros((40, 0)), None, "0 feature"),
        (Y1, [["a", "b"]] * 40, None, "a"),
        (Y1, MOVED, np.zeros((0, 2), int), "pairs has shape (0, 2)"),
        (Y1, MOVED, [[0, 1, 2]], "pairs has shape (1, 3)"),
        (Y1, MOVED, [[0.0, 1.0]], "pairs holds float64, expected integers"),
        (Y1, MOVED, [[0, 1], [2, 40]], "pairs[1, 1] = 40 is not a row of Y2; expected 0 to 39"),
        (Y1, MOVED, [[-1, 1]], "pairs[0, 0] = -1 is not a row of Y1"),
        (Y1, MOVED, [[2**62, 1]], "is not a row of Y1; expected 0 to 39"),
    ],
)
def test_bad_input_is_refused(one, other, pairs, message):
    with pytest.raises(LowlandError) as caught:
        lowland.procrustes(one, other, pairs=pairs)
    assert message in str(caught.value)


def test_compare_turns_maps_by_the_same_function():
    from lowland.workflow import compare_methods

    found = compare_methods("iris", ["pca", "lda"])
    maps = [frame.select("x", "y") for frame in found.maps.values()]
    np.testing.assert_allclose(
        found._entries[1]["coordinates"], lowland.procrustes(*maps).aligned, atol=1e-12
    )

"""project_on_polyline against its definition, one segment at a time."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind

SIZES = [(1, 2), (2, 3), (3, 4), (5, 5), (4, 9), (70, 33), (61, 40)]


def oracle(x, knots, before, after):
    """The least squared distance over all segments, and the places that have it."""
    found = []
    for row in x.astype(float):
        places = []
        for j in range(len(knots) - 1):
            step = knots[j + 1] - knots[j]
            h = np.sqrt(step @ step)
            s = (row - knots[j]) @ step / h if h > 0 else 0.0
            low = -before if j == 0 and h > 0 else 0.0
            high = h + (after if j == len(knots) - 2 and h > 0 else 0.0)
            s = min(max(s, low), high)
            at = knots[j] + (s / h * step if h > 0 else 0.0)
            places.append((np.sum((row - at) ** 2), j, s))
        found.append(places)
    return found


def found(x, knots, before=0.0, after=0.0, threads=1, isa="auto"):
    n = len(x)
    segments, along, squares = np.full(n, -1), np.full(n, np.nan), np.full(n, np.nan)
    _native.project_on_polyline(x, knots, before, after, segments, along, squares, threads, isa)
    return segments, along, squares


def task(n, m, p, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)).astype(dtype), np.cumsum(rng.standard_normal((m, p)), axis=0)


def assert_nearest(x, knots, before, after, isa):
    segments, along, squares = found(x, knots, before, after, isa=isa)
    size = 1e-12 * (np.abs(x).max() + np.abs(knots).max()) ** 2
    for places, j, s, square in zip(
        oracle(x, knots, before, after), segments, along, squares, strict=True
    ):
        assert square == pytest.approx(min(places)[0], rel=1e-12, abs=size)
        at = next(place for place in places if place[1] == j)
        assert square == pytest.approx(at[0], rel=1e-12, abs=size)
        assert s == pytest.approx(at[2], rel=1e-9, abs=np.sqrt(size))


@each("p", [1, 2, 3, 17])
@each_kind
def test_the_place_is_the_nearest_of_all_segments(dtype, p, isa):
    for n, m in SIZES:
        x, knots = task(n, m, p, dtype)
        assert_nearest(x, knots, 0.0, 0.0, isa)
        assert_nearest(x, knots, 0.7, 2.5, isa)


@each_isa
def test_equal_knots_and_knots_of_no_length(isa):
    x, knots = task(40, 8, 2)
    assert_nearest(x, np.repeat(knots, 3, axis=0), 0.0, 0.0, isa)
    assert_nearest(x, np.repeat(knots[:1], 5, axis=0), 1.0, 1.0, isa)
    x[:8] = knots  # rows on the knots
    assert_nearest(x, knots, 0.5, 0.5, isa)


@each_isa
def test_of_equally_near_segments_the_last_is_taken(isa):
    square = np.array([[0.0, 0.0], [1, 0], [1, 1], [0, 1], [0, 0]])
    segments, along, squares = found(np.array([[0.5, 0.5]]), square, isa=isa)
    assert (segments[0], along[0], squares[0]) == (3, 0.5, 0.25)
    segments, along, squares = found(np.array([[2.0, -1.0]]), square, isa=isa)
    assert (segments[0], along[0], squares[0]) == (1, 0.0, 2.0)


@each_isa
def test_a_prolonged_end_goes_on_along_its_segment(isa):
    line = np.array([[0.0, 0.0], [1, 0], [3, 0]])
    x = np.array([[-5.0, 1], [-0.5, 1], [3.5, 1], [9, 1]])
    segments, along, squares = found(x, line, 1.0, 2.0, isa=isa)
    np.testing.assert_array_equal(segments, [0, 0, 1, 1])
    np.testing.assert_allclose(along, [-1.0, -0.5, 2.5, 4.0])
    np.testing.assert_allclose(squares, [17.0, 1.0, 1.0, 17.0])


@each_kind
def test_a_row_depends_neither_on_the_others_nor_on_the_threads(
    dtype, isa, same_for_threads, same_alone
):
    x, knots = task(1003, 130, 5, dtype)
    same_for_threads(lambda threads: found(x, knots, 0.3, 0.4, threads, isa))
    same_alone(lambda rows: found(x[rows], knots, 0.3, 0.4, 1, isa), (0, 1, 2, 3, 500, 1002))


@each_isa
def test_values_without_squares_give_a_segment_that_exists(isa):
    x, knots = task(6, 9, 3)
    for far in (1e160, 1e300, np.nan):
        segments, _, _ = found(x + far, knots, 1.0, 1.0, isa=isa)
        assert ((segments >= 0) & (segments < 8)).all()
        segments, _, _ = found(x, knots + far, 1.0, 1.0, isa=isa)
        assert ((segments >= 0) & (segments < 8)).all()


def test_sizes_that_do_not_fit_are_refused():
    x, knots = task(4, 6, 2)
    out = np.empty(4, np.int64), np.empty(4), np.empty(4)
    wrong = [
        (x[:, :1].copy(), knots, 0.0, 0.0, *out, 1),
        (x[:, :0].copy(), knots[:, :0].copy(), 0.0, 0.0, *out, 1),
        (x, knots[:1], 0.0, 0.0, *out, 1),
        (x, knots, -1.0, 0.0, *out, 1),
        (x, knots, 0.0, np.nan, *out, 1),
        (x, knots, 0.0, 0.0, out[0][:3], *out[1:], 1),
        (x, knots, 0.0, 0.0, out[0], out[1][:3], out[2], 1),
        (x, knots, 0.0, 0.0, *out[:2], out[2][:3], 1),
        (x, knots, 0.0, 0.0, *out, 0),
    ]
    for arguments in wrong:
        with pytest.raises(ValueError, match=r"project_on_polyline|threads"):
            _native.project_on_polyline(*arguments)
    with pytest.raises(TypeError):
        _native.project_on_polyline(x, knots.astype(np.float32), 0.0, 0.0, *out, 1)

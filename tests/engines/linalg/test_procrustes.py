"""Procrustes analysis against scipy, closed forms and odd maps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial

from lowland._base.errors import DataError
from lowland._engines.linalg.procrustes import align
from support.cases import each


def orthogonal(m, seed, det=None):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((m, m)))[0]
    if det is not None and np.linalg.det(Q) * det < 0:
        Q[:, 0] *= -1
    return Q


@each("m", [1, 2, 3, 7])
@each("seed", range(3))
def test_disparity_and_shape_are_those_of_scipy(irregular, m, seed):
    A, Y = irregular(40, m, seed), irregular(40, m, seed + 10)
    _, y, disparity = scipy.spatial.procrustes(A, Y)
    ours = align(A, Y)
    assert ours.disparity == pytest.approx(disparity, rel=1e-9)
    norm = np.linalg.norm(A - A.mean(axis=0))
    assert (ours.aligned - A.mean(axis=0)) / norm == pytest.approx(y, abs=1e-10)
    assert np.linalg.norm(ours.aligned - A) ** 2 / norm**2 == pytest.approx(disparity, rel=1e-9)


@pytest.mark.parametrize("det", [1, -1])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_a_moved_map_is_moved_back(irregular, m, det):
    A = irregular(25, m, 3)
    Q = orthogonal(m, 4, det)
    Y = 0.3 * A @ Q + np.arange(m)
    ours = align(A, Y)
    assert ours.aligned == pytest.approx(A)
    assert ours.rotation == pytest.approx(Q.T)
    assert ours.scale == pytest.approx(1 / 0.3)
    assert ours.disparity == pytest.approx(0, abs=1e-12)


def test_the_parts_make_the_aligned_map(irregular):
    A, Y = irregular(30, 2, 0), irregular(30, 4, 1)
    ours = align(A, Y)
    assert ours.scale * Y @ ours.rotation + ours.translation == pytest.approx(ours.aligned)
    assert ours.rotation.T @ ours.rotation == pytest.approx(np.eye(4))


def test_without_reflections_a_mirrored_map_stays_mirrored(irregular):
    A = irregular(30, 2, 0)
    ours = align(A, A * [1, -1], reflection=False)
    assert np.linalg.det(ours.rotation) == pytest.approx(1)
    assert ours.disparity > 0.01
    # all rotations of the plane: none is better
    Y = (A - A.mean(axis=0)) * [1, -1]
    angles = np.linspace(0, 2 * np.pi, 2000)
    turns = np.array([[[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]] for t in angles])
    common = np.einsum("ni,tij,nj->t", Y, turns, A - A.mean(axis=0)).max()
    left = 1 - (common / np.linalg.norm(Y) / np.linalg.norm(A - A.mean(axis=0))) ** 2
    assert ours.disparity == pytest.approx(left, abs=1e-5)


def test_without_scaling_the_map_keeps_its_size(irregular):
    A, Y = irregular(30, 2, 0), irregular(30, 2, 1)
    ours = align(A, Y, scaling=False)
    assert ours.scale == 1
    assert scipy.spatial.distance.pdist(ours.aligned) == pytest.approx(
        scipy.spatial.distance.pdist(Y)
    )


@pytest.mark.parametrize(("p", "q"), [(1, 2), (2, 1), (2, 3), (5, 2)])
def test_maps_of_different_dimension_are_padded_with_zeros(irregular, p, q):
    A, Y = irregular(30, p, 0), irregular(30, q, 1)
    m = max(p, q)
    wide = [np.hstack([M, np.zeros((30, m - M.shape[1]))]) for M in (A, Y)]
    ours = align(A, Y)
    assert ours.aligned.shape == (30, m)
    assert ours.disparity == pytest.approx(scipy.spatial.procrustes(*wide)[2])


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, 1e9 / 3])
def test_a_constant_map_is_only_moved(irregular, value):
    A, constant = irregular(20, 2, 0), np.full((20, 2), value)
    ours = align(A, constant)
    assert ours.aligned == pytest.approx(np.tile(A.mean(axis=0), (20, 1)))
    assert (ours.scale, ours.disparity) == (1.0, 1.0)
    assert np.array_equal(ours.rotation, np.eye(2))
    assert align(constant, A).aligned == pytest.approx(A - A.mean(axis=0) + value)
    assert align(constant, constant + 1).disparity == 0


def test_one_row_is_moved_onto_the_other():
    ours = align([[1.0, 2.0]], [[5.0, 5.0]])
    assert ours.aligned.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_extreme_units_do_not_matter(irregular, size):
    A, Y = irregular(20, 2, 0), irregular(20, 2, 1)
    ours = align(A, Y * size)
    assert ours.aligned == pytest.approx(align(A, Y).aligned)
    assert ours.disparity == pytest.approx(align(A, Y).disparity)


def test_rows_on_a_line_and_duplicates_are_aligned():
    line = np.column_stack([np.arange(6.0), np.zeros(6)])
    assert align(line, line[:, ::-1] * -2).aligned == pytest.approx(line)
    doubled = np.repeat(line[:3], 2, axis=0)
    assert align(doubled, doubled @ orthogonal(2, 0)).aligned == pytest.approx(doubled)


def test_inputs_stay_as_they_are(irregular):
    A, Y = irregular(20, 2, 0), irregular(20, 2, 1)
    before = A.copy(), Y.copy()
    align(A, Y, reflection=False)
    assert np.array_equal(A, before[0])
    assert np.array_equal(Y, before[1])


@pytest.mark.parametrize(
    ("A", "Y", "message"),
    [
        (np.ones((3, 2)), np.ones((4, 2)), "the reference has 3 rows, but Y has 4"),
        (np.ones(3), np.ones((3, 1)), "reference must have rows and columns"),
        (np.ones((0, 2)), np.ones((0, 2)), "rows and columns"),
        (np.ones((2, 2)), [[1.0, 1.0], [np.inf, 1.0]], "Y holds NaN or infinity, first in row 1"),
    ],
)
def test_what_cannot_be_aligned_is_refused(A, Y, message):
    with pytest.raises(DataError, match=message):
        align(A, Y)

"""Divergences against dense definitions, their gradients against finite differences."""

import math

import numpy as np
import pytest
import scipy.sparse
from scipy.special import rel_entr

from lowland._engines.embedding.affinity import (
    JointAffinities,
    dense_conditional,
    joint_affinities,
    symmetrize_affinities,
)
from lowland._engines.embedding.descent import Divergence, entropy_of
from lowland._engines.embedding.repulsion import choose_repulsion, pairwise_repulsion
from lowland._engines.neighbors.search import neighbor_graph
from lowland.datasets import digits
from support.cases import each

# name, degrees of freedom, whether q is normalized row by row
OBJECTIVES = [
    pytest.param(0.5, False, id="t-SNE, dof 0.5"),
    pytest.param(1.0, False, id="t-SNE"),
    pytest.param(3.0, False, id="t-SNE, dof 3"),
    pytest.param(math.inf, False, id="symmetric SNE"),
    pytest.param(math.inf, True, id="SNE"),
    pytest.param(1.0, True, id="by rows, heavy tails"),
]


def similarities(Y, dof):
    square = ((Y[:, None] - Y) ** 2).sum(axis=2)
    K = np.exp(-square) if math.isinf(dof) else (1 + square / dof) ** -dof
    np.fill_diagonal(K, 0)
    return K


def definition(P, Y, dof, by_rows):
    """sum p log(p / q) for the (conditional, if by rows) probabilities P, dense."""
    K = similarities(Y, dof)
    Q = K / (K.sum(axis=1, keepdims=True) if by_rows else K.sum())
    off = ~np.eye(len(Y), dtype=bool)
    return rel_entr(P[off], Q[off]).sum()


def joint_of(C):
    """The joint affinities of a dense matrix of conditional ones."""
    A = scipy.sparse.csr_matrix(C)
    return symmetrize_affinities(A.indptr.astype(np.int64), A.indices, A.data)


@pytest.fixture
def problem(irregular):
    """A function (dof, by_rows, d) -> Divergence in float64, its dense P, a map."""

    def make(dof, by_rows, d=2, n=40):
        C = dense_conditional(neighbor_graph(irregular(n, 5), 12), 4)
        joint = (C + C.T) / (2 * n)
        entropy = entropy_of(C if by_rows else joint)
        repel = pairwise_repulsion(dof, 1)
        divergence = Divergence(joint_of(C), dof, repel, entropy, 1, by_rows=by_rows)
        return divergence, C if by_rows else joint, 0.7 * irregular(n, d, seed=3)

    return make


@each("d", [1, 2, 3, 5])
@each(("dof", "by_rows"), OBJECTIVES)
def test_the_loss_is_the_definition(dof, by_rows, d, problem):
    divergence, P, Y = problem(dof, by_rows, d)
    assert divergence.loss(Y) == pytest.approx(definition(P, Y, dof, by_rows), rel=1e-10)
    assert divergence(Y).loss is None


@each("d", [1, 2, 3, 5])
@each(("dof", "by_rows"), OBJECTIVES)
def test_forces_are_the_gradient(dof, by_rows, d, problem):
    divergence, _, Y = problem(dof, by_rows, d)
    attraction, repulsion, total, _ = divergence(Y)
    gradient = 4 * (attraction - repulsion / total) * (len(Y) if by_rows else 1)
    numeric, step = np.empty_like(Y), 1e-5
    for i, k in np.ndindex(*Y.shape):
        ahead, behind = Y.copy(), Y.copy()
        ahead[i, k] += step
        behind[i, k] -= step
        numeric[i, k] = (divergence.loss(ahead) - divergence.loss(behind)) / (2 * step)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6 * np.abs(numeric).max())


@pytest.mark.parametrize(("dof", "by_rows"), OBJECTIVES)
def test_points_beyond_sight_of_each_other_have_a_finite_loss(dof, by_rows, problem):
    divergence, _, Y = problem(dof, by_rows)
    for found in divergence(1e3 * Y, with_loss=True):
        assert np.isfinite(found).all()


# --- approximate repulsion --------------------------------------------------------------------


@each("method", ["mesh", "barnes_hut"])
@each("dof", [0.5, 1.0, 3.0])
@each("d", [1, 2])
def test_the_loss_of_a_real_map_is_within_one_percent(d, dof, method, half_done):
    Y = half_done(d, dof)
    P = joint_affinities(neighbor_graph(digits().X[: len(Y)], 90), 30, dtype=np.float32)
    exact, near = (
        Divergence(
            P,
            dof,
            choose_repulsion(way, len(Y), d, dof, 0.5, 1, owner=""),
            entropy_of(P.weights),
            1,
        )
        for way in ("exact", method)
    )
    assert near.loss(Y) == pytest.approx(exact.loss(Y), rel=0.01)
    assert near.loss(Y) != exact.loss(Y)
    assert near.mean_potential(Y) == pytest.approx(exact.mean_potential(Y), rel=0.005)


def test_the_mean_potential_is_the_mean_of_the_sums_of_similarities(problem):
    divergence, _, Y = problem(1.0, False)
    expected = similarities(Y, 1.0).sum(axis=1).mean()
    assert divergence.mean_potential(Y) == pytest.approx(expected, rel=1e-12)


# --- order of the points ----------------------------------------------------------------------


@each("d", [1, 2, 3, 5])
@each(("dof", "by_rows"), OBJECTIVES)
def test_another_order_of_points_changes_nothing_else(dof, by_rows, d, problem):
    divergence, _, Y = problem(dof, by_rows, d)
    before = divergence(Y, with_loss=True)
    before = [np.copy(part) for part in before]
    rows = np.arange(len(Y))
    for map_to_follow in (Y, -Y[:, ::-1], Y[::-1], -Y):  # orders compose, in memory used again
        order = divergence.arrange(map_to_follow[rows])
        assert sorted(order) == list(range(len(Y)))
        rows = rows[order]
    assert not np.array_equal(rows, np.arange(len(Y)))
    after = divergence(np.ascontiguousarray(Y[rows]), with_loss=True)
    for then, now in zip(before[:2], after[:2], strict=True):
        np.testing.assert_allclose(now, then[rows], atol=1e-13)
    assert after.total == pytest.approx(float(before[2]), rel=1e-12)
    assert after.loss == pytest.approx(float(before[3]), rel=1e-12)


def test_the_affinities_that_were_given_are_not_written_to(problem):
    divergence, _, Y = problem(1.0, False)
    given = divergence.P
    before = given.indptr.copy(), given.indices.copy(), given.weights.copy()
    for map_to_follow in (Y, -Y[:, ::-1], Y[::-1], -Y):
        divergence.arrange(map_to_follow)
    for then, now in zip(before, (given.indptr, given.indices, given.weights), strict=True):
        np.testing.assert_array_equal(now, then)


def test_neighbors_in_the_map_come_near_in_memory(half_done):
    Y = half_done(2, 1.0)
    P = joint_affinities(neighbor_graph(digits().X, 90), 30, dtype=np.float32)
    divergence = Divergence(P, 1.0, pairwise_repulsion(1.0, 1), 0.0, 1)

    def reach(P):
        return np.abs(np.repeat(np.arange(P.n), np.diff(P.indptr)) - P.indices).mean()

    divergence.arrange(Y)
    assert reach(divergence.P) < 0.5 * reach(P)
    assert isinstance(divergence.P, JointAffinities)


def test_entropy_passes_over_zeros_and_long_arrays():
    p = np.array([0.5, 0.25, 0.0, 0.25], np.float32)
    assert entropy_of(p) == pytest.approx(-1.5 * math.log(2), rel=1e-12)
    long = np.full((3, 2**20 // 2), 1e-6)
    assert entropy_of(long) == pytest.approx(long.size * 1e-6 * math.log(1e-6), rel=1e-9)

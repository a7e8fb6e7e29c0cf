"""Three ways to the same sums, and the choice among them."""

import math

import numpy as np
import pytest

from lowland import _native
from lowland._core.errors import ParameterError
from lowland._engines.embedding.repulsion import (
    choose_repulsion,
    pairwise_repulsion,
    weighted_repulsion,
)
from support.cases import each


def choose(method, n=1797, d=2, dof=1.0, angle=0.2, threads=1):
    return choose_repulsion(method, n, d, dof, angle, threads, owner="TSNE")


def sums(repel, Y):
    potential, forces = np.full(len(Y), np.nan), np.full_like(Y, np.nan)
    repel(Y, potential, forces)
    return potential, forces


@each("dof", [0.5, 1.0, 3.0])
@each("d", [1, 2, 3])
@each(
    ("method", "of_forces", "of_total"),
    [("barnes_hut", 2e-3, 2e-4), ("mesh", 0.02, 2e-3), ("auto", 0.02, 2e-3)],
)
def test_all_ways_agree_on_real_maps(method, of_forces, of_total, d, dof, half_done):
    for step in (100, 300):
        Y = half_done(d, dof, step)
        potential, forces = sums(choose(method, len(Y), d, dof), Y)
        expected = sums(choose("exact", len(Y), d, dof), Y.astype(np.float64))
        assert np.linalg.norm(forces - expected[1]) < of_forces * np.linalg.norm(expected[1])
        assert potential.sum() == pytest.approx(expected[0].sum(), rel=of_total)


@pytest.mark.parametrize("dof", [0.5, 1.0, math.inf])
def test_pairs_are_the_definition(dof, irregular):
    Y = irregular(70, 4)
    gap = Y[:, None] - Y
    square = (gap**2).sum(axis=2)
    K = np.exp(-square) if math.isinf(dof) else (1 + square / dof) ** -dof
    G = K if math.isinf(dof) else K / (1 + square / dof)
    np.fill_diagonal(K, 0)
    potential, forces = sums(pairwise_repulsion(dof, 1), Y)
    np.testing.assert_allclose(potential, K.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(forces, (G[:, :, None] * gap).sum(axis=1), atol=1e-10)
    u = np.random.default_rng(0).random(70)
    weighted_repulsion(Y, dof, u, forces, 1)
    both = G * (u[:, None] + u)
    np.testing.assert_allclose(forces, (both[:, :, None] * gap).sum(axis=1), atol=1e-10)


def test_auto_takes_the_way_that_costs_least(monkeypatch, half_done):
    taken = []
    for name in ("repel_pairs", "repel_tree", "gather"):
        real = getattr(_native, name)
        record = lambda *args, name=name, real=real: (taken.append(name), real(*args))  # noqa: E731
        monkeypatch.setattr(_native, name, record)
    late, early = half_done(2, 1.0), half_done(2, 1.0, 100)
    late, early = np.tile(late, (6, 1)), np.tile(early, (6, 1))
    late += 0.1 * early
    crowd = np.concatenate([late + np.float32(shift) for shift in np.linspace(0, 9, 15)])
    for Y, way in [
        (late[:300], "repel_pairs"),  # few points
        (early, "gather"),  # a small grid
        (5 * late, "repel_tree"),  # wide and sparse
        (crowd, "gather"),  # so many points that the grid is cheap
        (np.concatenate([crowd, [[1e7, 1e7]]]), "repel_tree"),  # a grid that would not fit
    ]:
        sums(choose("auto", len(Y)), np.ascontiguousarray(Y, dtype=np.float32))
        assert taken[-1] == way
    sums(choose("auto", 10_000, 7), np.zeros((4, 7), np.float32))
    assert taken[-1] == "repel_pairs"


@pytest.mark.parametrize("method", ["barnes_hut", "mesh"])
def test_more_dimensions_than_a_way_knows_are_refused(method):
    with pytest.raises(ParameterError, match=rf"{method}.* n_components=4; use method='exact'"):
        choose(method, d=4)
    assert choose("exact", d=4) is not None


def test_a_map_too_wide_for_a_grid_is_refused_with_an_alternative(half_done):
    far = np.concatenate([half_done(2, 1.0), np.full((1, 2), 1e7, np.float32)])
    with pytest.raises(MemoryError, match="use method='barnes_hut'"):
        sums(choose("mesh"), far)


@pytest.mark.parametrize("method", ["exact", "barnes_hut", "mesh", "auto"])
def test_threads_do_not_change_a_bit(method, half_done):
    Y = half_done(2, 1.0)
    for one, two in zip(sums(choose(method), Y), sums(choose(method, threads=2), Y), strict=True):
        assert one.tobytes() == two.tobytes()

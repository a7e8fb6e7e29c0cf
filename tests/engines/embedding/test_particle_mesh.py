"""The potential on a grid against sums over all pairs, on real maps that are half done."""

import math

import numpy as np
import pytest

from lowland import _native
from lowland._engines.embedding.particle_mesh import ParticleMesh, grid_nodes, similarity
from lowland._engines.embedding.repulsion import pairwise_repulsion
from support.cases import each

DEGREES = [0.5, 1.0, 3.0, math.inf]


def exact(Y, dof):
    potential, forces = np.empty(len(Y)), np.empty(Y.shape)
    pairwise_repulsion(dof, 1)(Y.astype(np.float64), potential, forces)
    return potential, forces


def on_mesh(Y, dof, threads=1, mesh=None):
    potential, forces = np.full(len(Y), np.nan), np.full_like(Y, np.nan)
    (mesh or ParticleMesh(similarity(dof), threads)).field(Y).at(Y, potential, forces, threads)
    return potential, forces


def far_from(found, expected):
    """Relative errors: of the forces in the 2-norm, of the sum of the potentials."""
    forces = np.linalg.norm(found[1] - expected[1]) / np.linalg.norm(expected[1])
    return forces, abs(found[0].sum() / expected[0].sum() - 1)


# without late maps of three dimensions with heavy tails, which are too wide for a grid
MAPS = [(d, dof, 100) for d in (1, 2, 3) for dof in DEGREES]
MAPS += [(d, dof, 300) for d in (1, 2, 3) for dof in DEGREES if d < 3 or dof > 1]


@each(("d", "dof", "step"), MAPS)
def test_forces_are_within_two_percent_on_real_maps(d, dof, step, half_done):
    Y = half_done(d, dof, step)
    forces, total = far_from(on_mesh(Y, dof), exact(Y, dof))
    assert 1e-5 < forces < 0.02
    assert total < 0.002


@pytest.mark.parametrize("shift", [0.1, 0.7, 1e4])
@pytest.mark.parametrize("d", [1, 2])
def test_where_the_map_lies_does_not_matter(d, shift, half_done):
    Y = half_done(d, 1.0).astype(np.float64)
    forces, total = far_from(on_mesh(Y + shift, 1.0), exact(Y, 1.0))
    assert forces < 0.02
    assert total < 0.002


@pytest.mark.parametrize("dof", DEGREES)
def test_other_points_see_the_field_too(dof, half_done):
    Y = half_done(2, dof)
    Z = Y[:200] + np.random.default_rng(0).standard_normal((200, 2)).astype(np.float32)
    field = ParticleMesh(similarity(dof), 1).field(Y, margin=20).without_charge()
    potential, forces = np.empty(200), np.empty_like(Z)
    field.at(Z, potential, forces, 1)
    expected = np.empty(200), np.empty_like(Z)
    gaussian = math.isinf(dof)
    _native.repel_from(Z, Y, gaussian, 1.0 if gaussian else dof, *expected, 1)
    of_forces, of_total = far_from((potential, forces), expected)
    assert of_forces < 0.02
    assert of_total < 0.002


def test_a_mesh_forgets_the_map_before(half_done):
    maps = [half_done(2, 1.0, 100), half_done(2, 1.0), 0.5 * half_done(2, 1.0), half_done(2, 3.0)]
    mesh = ParticleMesh(similarity(1.0), 1)
    for Y in [*maps, *maps[::-1]]:
        for used, fresh in zip(on_mesh(Y, 1.0, mesh=mesh), on_mesh(Y, 1.0), strict=True):
            assert used.tobytes() == fresh.tobytes()


@each("dof", DEGREES)
@each("d", [1, 2, 3])
def test_points_on_one_place_push_nobody(d, dof):
    for n in (1, 2, 100):
        potential, forces = on_mesh(np.full((n, d), 0.3, np.float32), dof)
        # K(0) = 1 is interpolated between nodes; what a point does to itself is taken away
        np.testing.assert_allclose(potential, n - 1, atol=0.02 * (n - 1) + 2e-3)
        assert np.abs(forces).max() < 0.01 * (n - 1) + 2e-3


def test_a_grid_grows_with_the_area_of_the_map_not_with_its_points(half_done):
    Y = half_done(2, 1.0)
    kernel = similarity(1.0)
    nodes = grid_nodes(Y, kernel)
    assert grid_nodes(np.concatenate([Y, Y, Y]), kernel) == nodes
    assert 3 * nodes < grid_nodes(2 * Y, kernel) < 5 * nodes
    assert grid_nodes(Y, similarity(0.25)) == pytest.approx(4 * nodes, rel=0.25)
    assert grid_nodes(Y * np.float32(1e30), kernel) > 2**35
    assert grid_nodes(Y, kernel, margin=40) > nodes


def test_a_grid_that_does_not_fit_is_refused_with_an_alternative(monkeypatch, half_done):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "100 kB")
    with pytest.raises(MemoryError, match=r"the grid of .* nodes under the map .*barnes_hut"):
        ParticleMesh(similarity(1.0), 1).field(half_done(2, 1.0))

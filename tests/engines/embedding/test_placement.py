"""Places of new rows: minima of J, each found as if the row came alone."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from lowland._engines.embedding import placement
from lowland._engines.embedding.affinity import conditional_affinities
from lowland._engines.embedding.particle_mesh import grid_nodes, similarity
from lowland._engines.embedding.placement import FrozenMap, place_rows
from lowland._engines.neighbors.search import neighbor_query
from lowland.datasets import digits
from support.cases import each

# degrees of freedom, whether rows are normalized one by one
METHODS = [
    pytest.param(0.5, False, id="t-SNE, dof 0.5"),
    pytest.param(1.0, False, id="t-SNE"),
    pytest.param(3.0, False, id="t-SNE, dof 3"),
    pytest.param(math.inf, False, id="symmetric SNE"),
    pytest.param(math.inf, True, id="SNE"),
]


def J(z, Y, p, dof, mean):
    """sum_j p_j v log(1 + r_j^2 / v) + phi / m, or + log phi."""
    square = ((z - Y) ** 2).sum(axis=1)
    if math.isinf(dof):
        pull, phi = (p * square).sum(), np.exp(-square).sum()
    else:
        pull, phi = (p * dof * np.log1p(square / dof)).sum(), ((1 + square / dof) ** -dof).sum()
    return pull + (math.log(phi) if mean is None else phi / mean)


@pytest.fixture
def task(half_done):
    """A function (dof, by_rows, d) -> a real frozen map, neighbors and affinities of new rows."""

    def make(dof, by_rows=False, d=2, m=8):
        Y = half_done(d, dof)[:700]
        near = neighbor_query(digits().X[:700], digits().X[1000 : 1000 + m], 60)
        p = conditional_affinities(near, 20).weights
        wide = Y.astype(np.float64)
        square = ((wide[:, None] - wide) ** 2).sum(axis=2)
        K = np.exp(-square) if math.isinf(dof) else (1 + square / dof) ** -dof
        mean = None if by_rows else (K.sum() - 700) / 700
        return FrozenMap(Y, dof, mean), near.indices, p

    return make


@each("d", [1, 2, 3])
@each(("dof", "by_rows"), METHODS)
def test_new_rows_stand_at_a_minimum(dof, by_rows, d, task):
    frozen, ids, p = task(dof, by_rows, d)
    Y = frozen.Y.astype(np.float64)
    Z = place_rows(frozen, ids, p, 1)
    assert Z.shape == (len(ids), d)
    dense = np.zeros((len(ids), len(Y)))
    np.put_along_axis(dense, ids, p, axis=1)
    for z, row in zip(Z.astype(np.float64), dense, strict=True):
        args = Y, row, dof, frozen.mean_potential
        best = minimize(J, z, args, method="BFGS", options={"gtol": 1e-7})
        assert J(z, *args) < J(row @ Y, *args)
        assert J(z, *args) <= best.fun + 1e-4 * max(1, abs(best.fun))
        assert np.linalg.norm(z - best.x) < 2e-3 * np.ptp(Y)


@pytest.mark.parametrize(
    ("d", "points"), [(1, "pairs"), (2, "pairs"), (3, "pairs"), (1, "grid"), (2, "grid")]
)
def test_a_row_alone_lands_where_it_lands_in_company(d, points, task, monkeypatch):
    monkeypatch.setattr(placement, "GRID_POINTS", 10**9 if points == "pairs" else 1)
    frozen, ids, p = task(3.0, d=d, m=25)
    together = place_rows(frozen, ids, p, 1)
    for i in range(25):
        alone = place_rows(frozen, ids[i : i + 1], p[i : i + 1], 1)
        assert alone.tobytes() == together[i].tobytes()
    order = np.random.default_rng(0).permutation(25)
    assert place_rows(frozen, ids[order], p[order], 2).tobytes() == together[order].tobytes()


@pytest.mark.parametrize(("dof", "by_rows"), METHODS)
def test_a_field_on_a_grid_gives_nearly_the_same_places(dof, by_rows, task, monkeypatch):
    frozen, ids, p = task(dof, by_rows, m=200)
    exact = place_rows(frozen, ids, p, 1)
    monkeypatch.setattr(placement, "GRID_POINTS", 1)
    near = place_rows(frozen, ids, p, 1)
    assert not np.array_equal(near, exact)
    gap = np.linalg.norm(near - exact, axis=1)
    assert np.median(gap) < 0.02
    assert np.quantile(gap, 0.95) < 0.2  # a few find another minimum


def test_a_row_between_far_neighbors_stays_on_the_grid(task, monkeypatch):
    monkeypatch.setattr(placement, "GRID_POINTS", 1)
    frozen, _, _ = task(1.0)
    apart = np.array([[frozen.Y[:, 0].argmin(), frozen.Y[:, 0].argmax()]], np.int32)
    Z = place_rows(frozen, apart, np.array([[0.5, 0.5]]), 1)
    low, high = frozen.Y.min(axis=0), frozen.Y.max(axis=0)
    assert (low - 5 <= Z).all()
    assert (high + 5 >= Z).all()


def test_nothing_given_is_written_to(task):
    frozen, ids, p = task(1.0)
    before = frozen.Y.copy(), ids.copy(), p.copy()
    place_rows(frozen, ids, p, 1)
    for old, new in zip(before, (frozen.Y, ids, p), strict=True):
        assert np.array_equal(old, new)


def test_a_grid_with_its_margin_is_only_made_where_it_is_small(task, monkeypatch):
    monkeypatch.setattr(placement, "GRID_POINTS", 1)
    frozen, ids, p = task(1.0)
    on_grid = place_rows(frozen, ids, p, 1)
    too_few = grid_nodes(frozen.Y, similarity(1.0))  # without the margin
    monkeypatch.setattr(placement, "GRID_LIMIT", too_few)
    pairs = place_rows(frozen, ids, p, 1)
    monkeypatch.setattr(placement, "GRID_POINTS", 10**9)
    assert pairs.tobytes() == place_rows(frozen, ids, p, 1).tobytes()
    assert pairs.tobytes() != on_grid.tobytes()

"""settle_rows against the same rule in plain numpy, step by step."""

import math

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_kind

PITCH, STEPS, CLOSE = 0.4, 100, 1e-4
SHAPES = {1: (90,), 2: (60, 50), 3: (30, 34, 28)}
MEANS = {  # degrees of freedom and mean potential
    "t-SNE": (1.0, 7.0),
    "dof 0.5": (0.5, 20.0),
    "symmetric": (math.inf, 3.0),
    "SNE": (math.inf, 0.0),
}


def task(d, n=200, m=40, k=11, seed=0):
    """A map, a smooth field above it, and neighbors and weights of new rows."""
    rng = np.random.default_rng(seed)
    shape, low = SHAPES[d], np.full(d, -1.3)
    high = low + (np.array(shape) - 8) * PITCH
    Y = (low + 3 * PITCH + rng.random((n, d)) * (high - low - 4 * PITCH)).astype(np.float32)
    nodes = [low[a] + PITCH * np.arange(shape[a]) for a in range(d)]
    grid = np.meshgrid(*nodes, indexing="ij")
    centers = Y[:5].astype(float)
    squares = [sum((g - c[a]) ** 2 for a, g in enumerate(grid)) for c in centers]
    field = (0.5 + sum(20 * np.exp(-s / 8) for s in squares)).astype(np.float32)
    near = np.argsort(((Y[rng.integers(0, n, m)][:, None] - Y) ** 2).sum(axis=2), axis=1)[:, :k]
    weights = rng.dirichlet(np.full(k, 0.7), m)
    return Y, field, low, near.astype(np.int32), weights


def settle(Y, field, low, ids, weights, dof, mean, threads=1, isa="auto"):
    Z = np.full((len(ids), Y.shape[1]), np.nan, np.float32)
    inverse = 0.0 if math.isinf(dof) else 1 / dof
    _native.settle_rows(
        ids, weights, Y, inverse, mean, low, PITCH, field, STEPS, CLOSE, Z, threads, isa=isa
    )
    return Z


def plainly(Y, field, low, ids, weights, dof, mean):
    """The definition: J, its slope, the majorizer's minimum, halved steps."""
    edge = low + 3 * PITCH, low + (np.array(field.shape) - 7) * PITCH

    def height(z, near, p):
        inside = np.clip(z, *edge).astype(np.float32)[None]
        phi, push = np.empty(1), np.empty_like(inside)
        _native.gather(inside, low, PITCH, 0.0, 0.0, field, phi, push, 1)
        gap = z.astype(float) - near
        square = (gap**2).sum(axis=1)
        stiff = p if math.isinf(dof) else p / (1 + square / dof)
        pull = (p * square).sum() if math.isinf(dof) else (p * dof * np.log1p(square / dof)).sum()
        value = pull + (math.log(phi[0]) if mean == 0 else phi[0] / mean)
        slope = (stiff[:, None] * gap).sum(axis=0) - push[0] / (phi[0] if mean == 0 else mean)
        return value, slope, stiff.sum()

    Z = []
    for row, p in zip(ids, weights.astype(float), strict=True):
        near = Y[np.maximum(row, 0)].astype(float)
        z = (p @ near).astype(np.float32)
        here, share = height(z, near, p), 1.0
        for _ in range(STEPS):
            move = -here[1] / max(here[2], 1e-12)
            tried = (z + share * move).astype(np.float32)
            there = height(tried, near, p)
            distance = share * np.linalg.norm(move)
            if there[0] < here[0]:
                z, here, share = tried, there, min(1.0, 2 * share)
            else:
                share /= 2
            if not distance > CLOSE:
                break
        Z.append((z, here[0]))
    return np.array([z for z, _ in Z]), np.array([value for _, value in Z]), height


@each("d", [1, 2, 3])
@each("what", MEANS)
@each_kind
def test_rows_settle_where_the_rule_says(d, what, dtype, isa):
    Y, field, low, ids, weights = task(d)
    weights = weights.astype(dtype)
    Z = settle(Y, field, low, ids, weights, *MEANS[what], isa=isa)
    expected, values, height = plainly(Y, field, low, ids, weights, *MEANS[what])
    gap = np.abs(Z - expected).max(axis=1)
    # Sums in float32 may end a descent a step earlier or later, each step being below CLOSE.
    assert np.quantile(gap, 0.9) < 10 * CLOSE
    reached = [
        height(z, Y[row].astype(float), p.astype(float))[0]
        for z, row, p in zip(Z, ids, weights, strict=True)
    ]
    np.testing.assert_allclose(reached, values, atol=1e-4 * max(1.0, np.abs(values).max()))


@each("d", [1, 2, 3])
def test_neither_threads_nor_company_change_a_bit(d, same_for_threads, same_alone):
    *given, ids, weights = task(d, m=101)
    same_for_threads(lambda threads: settle(*given, ids, weights, 1.0, 7.0, threads))
    same_alone(lambda rows: [settle(*given, ids[rows], weights[rows], 1.0, 7.0)], (0, 31, 32, 100))


def test_a_number_below_0_is_no_neighbor():
    Y, field, low, ids, weights = task(2)
    more = np.hstack([ids, np.full((len(ids), 3), -1, np.int32)])
    none = np.hstack([weights, np.zeros((len(ids), 3))])
    expected = settle(Y, field, low, ids, weights, 1.0, 7.0)
    np.testing.assert_allclose(settle(Y, field, low, more, none, 1.0, 7.0), expected, atol=1e-3)


@each(
    "change",
    [
        {"ids": np.full((40, 11), 200, np.int32)},
        {"weights": np.zeros((40, 10))},
        {"Z": np.zeros((39, 2), np.float32)},
        {"low": np.zeros(3)},
        {"field": np.zeros((60, 5), np.float32)},
        {"pitch": 0.0},
        {"mean": -1.0},
        {"threads": 0},
        {"steps": -1},
    ],
)
def test_what_does_not_fit_is_refused(change):
    Y, field, low, ids, weights = task(2)
    a = {"ids": ids, "weights": weights, "Y": Y, "mean": 7.0, "low": low, "pitch": PITCH}
    a |= {"field": field, "steps": 5, "Z": np.zeros((40, 2), np.float32), "threads": 1} | change
    with pytest.raises(ValueError, match=r"settle_rows|mesh|threads"):
        _native.settle_rows(
            a["ids"], a["weights"], a["Y"], 1.0, a["mean"], a["low"], a["pitch"], a["field"],
            a["steps"], CLOSE, a["Z"], a["threads"],
        )  # fmt: skip

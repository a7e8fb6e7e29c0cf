"""The kernels behind mutual information and ReliefF against their definitions."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind


def near(distance, radius):
    """Nearer than the radius; equal values always are."""
    return (distance < radius) | (distance == 0)


def naive_class_digammas(values, codes, k, psi):
    sums = []
    for v, c in zip(values, codes, strict=True):
        total = 0.0
        for i in range(len(v)):
            others = np.sort(np.abs(v[(c == c[i]) & (np.arange(len(v)) != i)] - v[i]))
            radius = others[min(k, len(others)) - 1]
            total += psi[near(np.abs(v - v[i]), radius).sum()]
        sums.append(total)
    return np.array(sums)


def naive_pair_digammas(x, y, k, psi):
    sums = []
    for v in x:
        dx, dy = np.abs(v[:, None] - v), np.abs(y[:, None] - y)
        larger = np.maximum(dx, dy)
        np.fill_diagonal(larger, np.inf)
        radius = np.sort(larger, axis=1)[:, k - 1 : k]
        sums.append(
            psi[near(dx, radius).sum(axis=1)].sum() + psi[near(dy, radius).sum(axis=1)].sum()
        )
    return np.array(sums)


def psi_table(n):
    """Any increasing function does; this one tells every count from every other."""
    return np.sqrt(np.arange(n + 1.0))


def columns(kind, m, n):
    rng = np.random.default_rng(n)
    x = rng.gamma(0.7, size=(m, n))
    if kind == "ties":
        x = np.round(x, 1)
    if kind == "clumps":  # many values nearly equal, others far away
        x = np.where(rng.random((m, n)) < 0.6, 1e-11 * x, x)
    return x


@each("kind", ["plain", "ties", "clumps"])
@each("k", [1, 3, 10])
@each_isa
def test_class_digammas_count_what_is_nearer_than_the_kth_of_the_class(isa, kind, k):
    rng = np.random.default_rng(k)
    values = np.sort(columns(kind, 5, 90), axis=1)
    codes = rng.integers(0, 4, values.shape).astype(np.int32)
    codes[:, :8] = np.repeat(np.arange(4), 2)  # small classes have at least two values
    psi, out = psi_table(90), np.empty(5)
    _native.class_digammas(values, codes, 4, k, psi, out, 2, isa)
    np.testing.assert_allclose(out, naive_class_digammas(values, codes, k, psi), rtol=1e-12)
    again = np.empty(5)
    _native.class_digammas(values, codes, 4, k, psi, again, 1, isa)
    assert again.tobytes() == out.tobytes()


@each("kind", ["plain", "ties", "clumps"])
@each("k", [1, 3, 10])
@each_isa
def test_pair_digammas_count_what_is_nearer_than_the_kth_pair(isa, kind, k):
    rng = np.random.default_rng(k)
    x = columns(kind, 6, 120)
    y = 0.3 * x[0] + rng.standard_normal(120)
    y = np.round(y, 1) if kind == "ties" else y
    order, of_y = np.argsort(x, axis=1, kind="stable"), np.argsort(y, kind="stable")
    rank = np.argsort(of_y).astype(np.int32)
    psi, out = psi_table(120), np.empty(6)
    arrays = np.sort(x, axis=1), y[order], rank[order], y[of_y], np.ascontiguousarray(x[:, of_y])
    _native.pair_digammas(*arrays, k, psi, out, 2, isa)
    np.testing.assert_allclose(out, naive_pair_digammas(x, y, k, psi), rtol=1e-12)
    again = np.empty(6)
    _native.pair_digammas(*arrays, k, psi, again, 1, isa)
    assert again.tobytes() == out.tobytes()


@each(("m", "n", "d"), [(1, 1, 1), (7, 25, 3), (100, 61, 64), (5, 300, 131)])
@each_kind
def test_manhattan_rows_sum_absolute_differences(isa, dtype, m, n, d):
    rng = np.random.default_rng(m + n + d)
    points, rows = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    rows[0] = points[0]
    width = _native.PANEL_WIDTH_FLOAT32 if dtype == np.float32 else _native.PANEL_WIDTH_FLOAT64
    panels = np.empty((-(-n // width), d, width), dtype)
    _native.pack_points(points, panels, 1)
    out, again = np.empty((m, n)), np.empty((m, n))
    _native.manhattan_rows(panels, rows, out, 2, isa)
    _native.manhattan_rows(panels, rows, again, 1, isa)
    expected = np.abs(rows[:, None].astype(float) - points).sum(axis=2)
    np.testing.assert_allclose(out, expected, rtol=64 * np.finfo(dtype).eps)
    assert out[0, 0] == 0
    assert out.tobytes() == again.tobytes()


def test_what_would_lead_the_kernels_astray_is_refused():
    values, codes = np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[0, 0, 1, 1]], np.int32)
    psi, out = np.zeros(5), np.empty(1)
    for bad in (
        (values[:, ::-1].copy(), codes, 2, 1, psi, out),
        (values, codes + 1, 2, 1, psi, out),
        (values, np.array([[0, 0, 0, 1]], np.int32), 2, 1, psi, out),
        (values, codes, 2, 0, psi, out),
        (values, codes, 2, 1, psi[:-1], out),
        (values, codes, 2, 1, psi, np.empty(2)),
    ):
        with pytest.raises(ValueError, match="class_digammas"):
            _native.class_digammas(*bad, 1)
    rank = np.arange(4, dtype=np.int32)[None]
    fine = [values, values, rank, values[0], values, 1, psi, out]
    for place, bad in ((0, values[:, ::-1].copy()), (2, rank + 1), (3, values[0, :3]), (5, 4)):
        given = list(fine)
        given[place] = bad
        with pytest.raises(ValueError, match="pair_digammas"):
            _native.pair_digammas(*given, 1)
    panels = np.empty((1, 3, _native.PANEL_WIDTH_FLOAT64))
    with pytest.raises(ValueError, match="manhattan_rows"):
        _native.manhattan_rows(panels, np.empty((2, 4)), np.empty((2, 5)), 1)

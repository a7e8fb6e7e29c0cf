"""local_stress_rows against its definition, with potentials integrated by quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from lowland import _native
from support.cases import each
from support.kernels import each_dtype, each_kind
from support.oracles.curvilinear import falling

KINDS = {"step": 0, "exp": 1, "sigmoid": 2, "symmetric": 3}
# tradeoff, center, width, rounding
NUMBERS = dict.fromkeys(KINDS, (0.3, 0.9, 0.6, 0.05))


def integral(kind, d, delta, s):
    """Twice the integral of (u - delta) F(u) from delta to d, by quadrature."""
    inside = [e for e in (s, s / 2, 3 * s / 2) if min(d, delta) < e < max(d, delta)]
    return 2 * quad(lambda u: (u - delta) * falling(kind, u, s), delta, d, points=inside or None)[0]


def pair(kind, d, delta, s, other, numbers):
    """Stress, potential, weight and pull of one pair."""
    kept, center, width, rounding = numbers
    gap = d - delta
    if kind == "symmetric":
        F = ndtr(-(min(d, delta) - center) / width)
        soft = np.hypot(gap, rounding)
        bell = np.exp(-0.5 * ((d - center) / width) ** 2) / (width * np.sqrt(2 * np.pi))
        slope = gap / soft * F - (soft - rounding) * bell * (d < delta)
        return abs(gap) * F, (soft - rounding) * F, F / soft / 2, slope / 2
    near = (falling(kind, d, s) + falling(kind, d, other)) / 2
    given = (falling(kind, delta, s) + falling(kind, delta, other)) / 2
    weight = (1 - kept) * near + kept * given
    both = (integral(kind, d, delta, s) + integral(kind, d, delta, other)) / 2
    return weight * gap**2, (1 - kept) * both + kept * given * gap**2, weight, weight * gap


def oracle(Z, Y, delta, radii_z, radii_y, kind, numbers):
    m, d = Z.shape
    sums, forces = np.zeros((3, m)), np.zeros((m, d))
    for i in range(m):
        for j in range(len(Y)):
            if np.isnan(delta[i, j]):
                continue
            along = Z[i].astype(float) - Y[j].astype(float)
            length = np.sqrt((along**2).sum())
            *terms, pull = pair(
                kind, length, float(delta[i, j]), float(radii_z[i]), float(radii_y[j]), numbers
            )
            sums[:, i] += terms
            forces[i] += pull / length * along if length > 0 else 0
    return (*sums, forces)


def empty(m, d):
    return [np.full(m, np.nan) for _ in range(3)] + [np.full((m, d), np.nan)]


def rows(Z, Y, delta, radii_z, radii_y, kind, numbers, threads=1, isa="auto"):
    out = empty(*Z.shape)
    arrays = (Z, Y, delta, radii_z, radii_y)
    _native.local_stress_rows(*arrays, KINDS[kind], *numbers, *out, threads, isa)
    return out


def data(irregular, m, n, d, dtype):
    """Points, distances with zeros among them, and radii from tiny to larger than the map."""
    rng = np.random.default_rng(5)
    Z, Y = irregular(m, d, seed=1).astype(dtype), irregular(n, d).astype(dtype)
    Y[0] = Z[0]  # a pair without distance has no direction
    delta = rng.gamma(2.0, size=(m, n)).astype(dtype)
    delta[1::4, ::7] = 0
    delta[::3, 5::11] = np.nan  # does not count
    radii_z, radii_y = (np.exp(rng.normal(0.5, 1, size=k)).astype(dtype) for k in (m, n))
    return Z, Y, delta, radii_z, radii_y


def assert_close(found, expected, dtype):
    for got, true in zip(found, expected, strict=True):
        slack = 400 * np.finfo(dtype).eps * max(float(np.abs(true).max(initial=0)), 1.0)
        np.testing.assert_allclose(got, true, rtol=0, atol=slack)


@each("kind", KINDS)
@each("d", [1, 2, 3, 5])
@each_kind
def test_rows_equal_their_definition(kind, d, dtype, isa, irregular):
    for m, n in [(1, 1), (3, 21)]:
        given = data(irregular, m, n, d, dtype)
        expected = oracle(*given, kind, NUMBERS[kind])
        assert_close(rows(*given, kind, NUMBERS[kind], isa=isa), expected, dtype)


@each("kind", KINDS)
def test_one_radius_is_the_same_radius_for_all_to_the_last_bit(kind, irregular):
    """A row must not depend on the rows beside it, whose radii may be other ones."""
    Z, Y, delta, _, _ = data(irregular, 4, 50, 2, np.float64)
    same, mixed = np.full(4, 0.8), np.array([0.8, 0.8, 0.8, 2.0])
    alone = rows(Z, Y, delta, same, np.full(50, 0.8), kind, NUMBERS[kind])
    beside = rows(Z, Y, delta, mixed, np.full(50, 0.8), kind, NUMBERS[kind])
    for a, b in zip(alone, beside, strict=True):
        assert np.array_equal(a[:3], b[:3])


@each("kind", KINDS)
@each_dtype
def test_threads_change_no_bit(kind, dtype, irregular, same_for_threads):
    Y = irregular(1300, 2).astype(dtype)
    rng = np.random.default_rng(2)
    delta = rng.gamma(2.0, size=(1300, 1300)).astype(dtype)
    given = Y, Y, delta, *np.exp(rng.normal(size=(2, 1300))).astype(dtype), kind, NUMBERS[kind]
    same_for_threads(lambda threads: rows(*given, threads=threads), (3,))


def test_what_could_lead_the_kernels_astray_is_refused(irregular):
    Z, Y, delta, radii_z, radii_y = data(irregular, 4, 6, 2, np.float64)
    good = NUMBERS["step"]
    for change, message in [
        ({"delta": delta[:, :5].copy()}, "delta must be"),
        ({"radii_z": radii_z[:3]}, "radii_z must be"),
        ({"radii_y": -radii_y}, "radii_y must be"),
        ({"Z": Z[:, :1].copy()}, "as many columns"),
    ]:
        given = {"Z": Z, "Y": Y, "delta": delta, "radii_z": radii_z, "radii_y": radii_y} | change
        with pytest.raises(ValueError, match=message):
            rows(*given.values(), "step", good)
    with pytest.raises(ValueError, match="tradeoff"):
        rows(Z, Y, delta, radii_z, radii_y, "step", (1.5, *good[1:]))
    with pytest.raises(ValueError, match="width"):
        rows(Z, Y, delta, radii_z, radii_y, "symmetric", (0.0, 0.0, 0.0, 0.0))

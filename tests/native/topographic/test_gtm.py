"""gtm_sums and gtm_posteriors against their definitions."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind

SIZES = [(1, 1), (1, 30), (3, 2), (95, 12), (97, 13), (200, 25)]


def oracle(x, mean, nodes, beta):
    """One row and one node at a time; NaN is unknown."""
    n, p, k = len(x), x.shape[1], len(nodes)
    logs, R = np.empty(n), np.empty((n, k))
    sums, masses = np.zeros((k, p)), np.zeros((k, p))
    for i in range(n):
        known = ~np.isnan(x[i])
        row = np.where(known, x[i].astype(float) - mean, 0)
        scores = -0.5 * beta * np.sum((row - nodes)[:, known] ** 2, axis=1)
        top = scores.max()
        R[i] = np.exp(scores - top)
        logs[i] = top + np.log(R[i].sum())
        R[i] /= R[i].sum()
        sums += np.outer(R[i], row)
        masses += np.outer(R[i], known)
    return logs, R, sums, masses


def found(x, mean, nodes, beta, missing, threads=1, isa="auto"):
    n, (k, p) = len(x), nodes.shape
    logs, R = np.full(n, np.nan), np.full((n, k), np.nan)
    _native.gtm_posteriors(x, mean, nodes, beta, missing, logs, R, threads, isa)
    again, sums = np.full(n, np.nan), np.full((k, p), np.nan)
    masses = np.full((k, p if missing else 1), np.nan)
    _native.gtm_sums(x, mean, nodes, beta, missing, again, sums, masses, threads, isa)
    assert again.tobytes() == logs.tobytes()
    return logs, R, sums, masses


def task(n, k, p, missing=False, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = (3 + rng.gamma(2.0, size=(n, p))).astype(dtype)
    x[n // 2 : n // 2 + 3] = x[0]  # equal rows
    if missing:
        x[rng.random((n, p)) < 0.3] = np.nan
        x[:, 0] = 4.0
    return x, rng.normal(5, 0.2, p), rng.standard_normal((k, p)), 0.9


def assert_close(got, expected):
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12 * max(1.0, np.abs(b).max()))


@each("missing", [False, True])
@each("p", [1, 2, 3, 11, 300])
@each_kind
def test_posteriors_and_sums_are_as_defined(p, missing, dtype, isa):
    for n, k in SIZES if p < 300 else SIZES[-2:-1]:
        given = task(n, k, p, missing, dtype)
        expected = list(oracle(*given))
        if not missing:
            expected[3] = expected[3][:, :1]
        assert_close(found(*given, missing, isa=isa), expected)


@each_isa
def test_far_rows_do_not_underflow(isa):
    x, mean, nodes, _ = task(40, 30, 6)
    logs, R, sums, _ = found(x + 1e4, mean, nodes, 1e4, False, isa=isa)
    np.testing.assert_allclose(R.sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(logs).all()
    assert np.isfinite(sums).all()


@each_isa
def test_values_that_overflow_are_told_by_nan(isa):
    x, mean, nodes, beta = task(5, 7, 3)
    x[2] = 1e200
    logs, R, _, _ = found(x, mean, 1e200 * nodes, beta, False, isa=isa)
    assert np.isnan(logs[2])
    assert np.isnan(R[2]).all()


@each("missing", [False, True])
@each_isa
def test_the_bytes_do_not_depend_on_threads_nor_posteriors_on_other_rows(
    missing, isa, same_for_threads, same_alone
):
    x, *rest = task(7000, 40, 9, missing)
    same_for_threads(lambda threads: found(x, *rest, missing, threads, isa))
    same_alone(lambda rows: found(x[rows], *rest, missing, 1, isa)[:2], (0, 1, 95, 96, 6999))


def test_sizes_that_do_not_fit_are_refused():
    x, mean, nodes, beta = task(6, 4, 3)
    logs, R, none = np.empty(6), np.empty((6, 4)), np.empty((6, 0))
    sums, masses = np.empty((4, 3)), np.empty((4, 1))
    sums_of, posteriors_of = _native.gtm_sums, _native.gtm_posteriors
    wrong = [
        (sums_of, x, mean[:2], nodes, beta, False, logs, sums, masses, 1),
        (sums_of, x, mean, nodes[:, :2].copy(), beta, False, logs, sums, masses, 1),
        (sums_of, x, mean, nodes[:0], beta, False, logs, sums[:0], masses[:0], 1),
        (sums_of, none, mean[:0], none[:4], beta, False, logs, sums, masses, 1),
        (sums_of, x, mean, nodes, beta, False, logs[:5], sums, masses, 1),
        (sums_of, x, mean, nodes, beta, False, logs, sums[:3], masses, 1),
        (sums_of, x, mean, nodes, beta, True, logs, sums, masses, 1),
        (sums_of, x, mean, nodes, beta, False, logs, sums, sums, 1),
        (sums_of, x, mean, nodes, beta, False, logs, sums, masses, 0),
        (posteriors_of, x, mean, nodes, beta, False, logs[:5], R, 1),
        (posteriors_of, x, mean, nodes, beta, False, logs, R[:5], 1),
        (posteriors_of, x, mean, nodes, beta, False, logs, R[:, :3].copy(), 1),
    ]
    for kernel, *arguments in wrong:
        with pytest.raises(ValueError, match=r"gtm|threads"):
            kernel(*arguments)
    with pytest.raises(TypeError):
        posteriors_of(x, mean.astype(np.float32), nodes, beta, False, logs, R, 1)

"""som_steps against Kohonen's rule, one row and one unit at a time."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_kind


def oracle(rows, rates, H, M):
    M = M.copy()
    for x, rate in zip(rows.astype(float), rates, strict=True):
        known = ~np.isnan(x)
        c = int(np.argmin([((x - m)[known] ** 2).sum() for m in M]))
        for j in range(len(M)):
            M[j, known] += rate * H[c, j] * (x - M[j])[known]
    return M


@each("missing", [False, True])
@each(("n", "m", "p"), [(1, 1, 1), (7, 2, 3), (50, 9, 1), (40, 30, 8), (90, 12, 19)])
@each_kind
def test_steps_are_those_of_the_rule(dtype, missing, n, m, p, isa):
    rng = np.random.default_rng(n + m + p)
    rows, M = rng.standard_normal((n, p)).astype(dtype), rng.standard_normal((m, p))
    if missing and p > 1:
        rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[n // 2 :] = rows[: n - n // 2]  # rows come twice
    H = np.exp(-np.square(np.arange(m)[:, None] - np.arange(m)) / 8)
    H[np.abs(np.arange(m)[:, None] - np.arange(m)) > 5] = 0.0
    rates, moved = np.linspace(0.9, 0.0, n), M.copy()
    _native.som_steps(rows, rates, H, moved, isa)
    np.testing.assert_allclose(moved, oracle(rows, rates, H, M), rtol=1e-9, atol=1e-11)


def test_arguments_that_do_not_fit_are_refused():
    rows, rates, H, M = np.zeros((5, 3)), np.zeros(5), np.zeros((4, 4)), np.zeros((4, 3))
    bad = [
        (rows, rates[:4].copy(), H, M),
        (rows, rates, H[:3].copy(), M),
        (rows, rates, H, np.zeros((4, 2))),
        (rows, rates, np.zeros((0, 0)), np.zeros((0, 3))),
    ]
    for given in bad:
        with pytest.raises(ValueError, match="must"):
            _native.som_steps(*given)

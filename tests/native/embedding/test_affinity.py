"""calibrate against bisection in double, the steps of symmetrization against dense matrices."""

import numpy as np
import pytest
import scipy.sparse

from lowland import _native
from support.cases import each
from support.kernels import each_kind

INF = np.inf


def entropy(p):
    p = np.asarray(p, np.float64)
    return -np.sum(p[p > 0] * np.log(p[p > 0]))


def naive_probabilities(distances, perplexity):
    """p_j prop exp(-beta d_j^2), log beta by bisection; (p, beta)."""
    d = np.asarray(distances, np.float64)
    exists = np.isfinite(d)
    x = np.where(exists, d, 0.0) ** 2
    x -= x[exists].min()
    low, high = -300.0, 300.0
    for _ in range(80):
        beta = np.exp((low + high) / 2)
        p = np.where(exists, np.exp(-beta * x), 0.0)
        p /= p.sum()
        low, high = (np.log(beta), high) if entropy(p) > np.log(perplexity) else (low, np.log(beta))
    return p, beta


def kernel_rows(rows, perplexity, dtype=np.float64, threads=1, isa="auto"):
    """The kernel on a list of rows of any lengths; (list of probabilities, betas)."""
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    distances = np.concatenate([*rows, []]).astype(dtype)
    p, betas = np.full(distances.size, np.nan, dtype), np.full(len(rows), np.nan)
    _native.calibrate(starts, distances, np.log(perplexity), p, betas, threads, isa)
    return np.split(p, starts[1:-1]), betas


def irregular_rows(n, seed, dtype, shortest=2, longest=150):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest, n)
    return [(rng.gamma(3, size=k) * 10 ** rng.uniform(-3, 3)).astype(dtype) for k in lengths]


@each("perplexity", [1.02, 1.5, 2, 5, 30])
@each_kind
def test_probabilities_are_those_of_bisection(perplexity, dtype, isa):
    rows = irregular_rows(25, 0, dtype, shortest=int(perplexity) + 2)
    found, betas = kernel_rows(rows, perplexity, dtype, isa=isa)
    for row, p, beta in zip(rows, found, betas, strict=True):
        expected, expected_beta = naive_probabilities(row, perplexity)
        # the entropy is within 1e-7, which leaves about as much to p, and a little more to beta
        np.testing.assert_allclose(p, expected, atol=1e-6, rtol=0)
        np.testing.assert_allclose(beta, expected_beta, rtol=1e-5)
        x = row.astype(np.float64) ** 2
        weights = np.exp(-beta * (x - x.min()))
        close = (
            {"rtol": 2e-7, "atol": 1e-38}
            if dtype == np.float32
            else {"rtol": 1e-11, "atol": 1e-306}
        )
        np.testing.assert_allclose(p, weights / weights.sum(), **close)


def test_the_entropy_is_attained_to_1e7(isa):
    rows = irregular_rows(400, 1, np.float64, shortest=31, longest=200)
    for p in kernel_rows(rows, 30, isa=isa)[0]:
        assert abs(entropy(p) - np.log(30)) < 1.01e-7
        assert p.sum() == pytest.approx(1, abs=1e-14)


def test_the_exponential_is_right_to_the_last_digits(isa):
    # two neighbors: p_2 / p_1 = exp(-beta (d_2^2 - d_1^2)), over the whole range of exp
    for perplexity in [1 + 1e-6, 1.0001, 1.01, 1.3, 1.9, 1.9999]:
        (p,), (beta,) = kernel_rows([np.array([1.0, 2.0])], perplexity, isa=isa)
        np.testing.assert_allclose(p[1] / p[0], np.exp(-3 * beta), rtol=1e-14)


def test_distances_of_very_unlike_size_are_calibrated_too(isa):
    rng = np.random.default_rng(3)
    rows = [10 ** rng.uniform(-30, 30, rng.integers(5, 100)) for _ in range(200)]
    rows += [1 + rng.random(40) * 10 ** rng.uniform(-12, 0) for _ in range(100)]
    for row in rows:
        perplexity = rng.uniform(1, len(row))
        (p,), _ = kernel_rows([row], perplexity, isa=isa)
        assert abs(entropy(p) - np.log(perplexity)) < 2e-7


@each_kind
def test_all_distances_equal_is_uniform(dtype, isa):
    for value in (0.0, 1e-20, 1.0, 1e20):
        (p,), _ = kernel_rows([np.full(7, value)], 3, dtype, isa=isa)
        np.testing.assert_allclose(p, 1 / 7, rtol=1e-6)


@each_kind
def test_more_duplicates_than_perplexity_share_the_weight(dtype, isa):
    row = [0, 0, 0, 0, 1e-3, 1.0, 2.0]
    (p,), (beta,) = kernel_rows([row], 3, dtype, isa=isa)
    assert np.array_equal(p, [0.25] * 4 + [0] * 3)
    assert np.isinf(beta)


@each_kind
def test_fewer_duplicates_than_perplexity_leave_weight_to_others(dtype, isa):
    row = [0, 0, 0.5, 1.0, 2.0]
    (p,), (beta,) = kernel_rows([row], 3, dtype, isa=isa)
    np.testing.assert_allclose(p, naive_probabilities(row, 3)[0], rtol=1e-5)
    assert 0 < beta < INF


@each_kind
def test_the_limits_are_the_nearest_alone_and_all_alike(dtype, isa):
    row = [1.0, 2.0, 3.0, 4.0, 9.0]
    (p,), (beta,) = kernel_rows([row], 1, dtype, isa=isa)
    assert np.array_equal(p, [1, 0, 0, 0, 0])
    assert np.isinf(beta)
    for perplexity in (5, 8):
        (p,), (beta,) = kernel_rows([row], perplexity, dtype, isa=isa)
        np.testing.assert_allclose(p, 0.2, rtol=1e-6)
        assert beta == 0


@each_kind
def test_neighbors_that_do_not_exist_have_no_weight_and_no_influence(dtype, isa):
    known = np.array([0.5, 1.0, 1.7, 2.0, 3.0])
    with_gaps = np.array([INF, 0.5, 1.0, np.nan, 1.7, INF, 2.0, 3.0, INF])
    (p, q, none, empty), betas = kernel_rows([known, with_gaps, [INF] * 3, []], 2.5, dtype, isa=isa)
    np.testing.assert_allclose(q[np.isfinite(with_gaps)], p, rtol=1e-5)
    assert np.array_equal(q[~np.isfinite(with_gaps)], np.zeros(4))
    assert np.array_equal(none, np.zeros(3))
    assert empty.size == 0
    assert np.array_equal(betas[2:], [0, 0])


@each_kind
def test_threads_and_company_do_not_change_a_bit(dtype, isa, same_for_threads):
    rows = irregular_rows(700, 4, dtype)

    def found(rows, threads=1):
        p, betas = kernel_rows(rows, 2, dtype, threads, isa)
        return np.concatenate(p), betas

    same_for_threads(lambda threads: found(rows, threads), (2, 3, 7))
    whole = kernel_rows(rows, 2, dtype, isa=isa)[0]
    assert np.array_equal(found(rows[345:346])[0], whole[345])


# --- symmetrization ---------------------------------------------------------------------------


def random_rows(n, most, dtype, seed=0):
    """CSR rows with columns in no order, some of them missing or on the diagonal."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(n)[: rng.integers(0, min(n, most) + 1)] for _ in range(n)]
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    columns = np.concatenate([*rows, []]).astype(np.int32)
    columns[rng.random(columns.size) < 0.1] = -1
    return starts, columns, rng.random(columns.size).astype(dtype)


def dense(starts, columns, values):
    n = len(starts) - 1
    A = np.zeros((n, n), values.dtype)
    rows = np.repeat(np.arange(n), np.diff(starts))
    kept = (columns >= 0) & (columns != rows)
    A[rows[kept], columns[kept]] = values[kept]
    return A


def kernel_transpose(starts, columns, values, threads=1, isa="auto"):
    out = np.empty_like(starts), np.empty_like(columns), np.empty_like(values)
    _native.transpose(starts, columns, values, np.empty(2 * columns.size), *out, threads, isa)
    return out[0], out[1][: out[0][-1]], out[2][: out[0][-1]]


def kernel_sum(a, b, scale, threads=1, isa="auto"):
    starts = np.empty_like(a[0])
    _native.union_starts(*a[:2], *b[:2], starts, threads, isa)
    columns, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], a[2].dtype)
    _native.union_sum(*a, *b, scale, starts, columns, values, threads, isa)
    return starts, columns, values


@each(("n", "most"), [(0, 0), (1, 1), (2, 2), (9, 9), (300, 20), (1500, 9)])
@each_kind
def test_transposing_moves_every_entry_and_sorts_columns(n, most, dtype, isa):
    rows = random_rows(n, most, dtype)
    starts, columns, values = kernel_transpose(*rows, isa=isa)
    assert np.array_equal(dense(starts, columns, values), dense(*rows).T)
    assert starts[0] == 0
    assert starts[-1] == np.count_nonzero(dense(*rows))
    for i in range(n):
        assert (np.diff(columns[starts[i] : starts[i + 1]]) > 0).all()


@each(("n", "most"), [(1, 1), (2, 2), (9, 9), (300, 20), (1500, 9)])
@each_kind
def test_the_sum_has_the_union_of_columns(n, most, dtype, isa):
    a, b = (kernel_transpose(*random_rows(n, most, dtype, seed)) for seed in (1, 2))
    starts, columns, values = kernel_sum(a, b, 0.25, isa=isa)
    expected = (dense(*a).astype(np.float64) + dense(*b)) * 0.25
    assert np.array_equal(dense(starts, columns, values), expected.astype(dtype))
    pattern = scipy.sparse.csr_matrix((dense(*a) > 0) | (dense(*b) > 0))
    assert np.array_equal(starts, pattern.indptr)
    assert np.array_equal(columns, pattern.indices)


@each_kind
def test_threads_do_not_change_a_bit_of_the_sum(dtype, isa, same_for_threads):
    rows = random_rows(2000, 30, dtype, 3)

    def symmetric(threads):
        back = kernel_transpose(*rows, threads=threads, isa=isa)
        forth = kernel_transpose(*back, threads=threads, isa=isa)
        return kernel_sum(forth, back, 1.0, threads, isa)

    same_for_threads(symmetric, (2, 3, 50))


STARTS = np.array([0, 1, 2], np.int64)
CALIBRATE = {
    "starts": STARTS,
    "distances": np.array([1.0, 2.0]),
    "log_perplexity": 0.0,
    "probabilities": np.empty(2),
    "betas": np.empty(2),
    "threads": 1,
}
TRANSPOSE = {
    "starts": STARTS,
    "columns": np.array([1, 0], np.int32),
    "values": np.array([1.0, 2.0]),
    "work": np.empty(4),
    "out_starts": np.empty(3, np.int64),
    "out_columns": np.empty(2, np.int32),
    "out_values": np.empty(2),
    "threads": 1,
}
SUM = {
    "a_starts": STARTS,
    "a_columns": np.array([1, 0], np.int32),
    "a_values": np.array([1.0, 2.0]),
    "b_starts": np.array([0, 0, 1], np.int64),
    "b_columns": np.array([1], np.int32),
    "b_values": np.array([3.0]),
    "scale": 1.0,
    "starts": np.array([0, 1, 3], np.int64),
    "columns": np.empty(3, np.int32),
    "values": np.empty(3),
    "threads": 1,
}


CALIBRATE_CHANGES = [
    ("starts", np.empty(0, np.int64), "starts must be"),
    ("starts", np.array([0, 1, 3]), "do not fit"),
    ("starts", np.array([-1, 1, 2]), "do not fit"),
    ("starts", np.array([0, 2, 1]), "must not fall"),
    ("log_perplexity", -0.1, "log_perplexity"),
    ("log_perplexity", np.nan, "log_perplexity"),
    ("probabilities", np.empty(1), "probabilities"),
    ("betas", np.empty(3), "betas"),
    ("threads", 0, "threads"),
]
TRANSPOSE_CHANGES = [
    ("columns", np.array([1, 2], np.int32), "below n"),
    ("columns", np.array([-2, 0], np.int32), "below n"),
    ("values", np.array([1.0]), "values must be"),
    ("work", np.empty(3), "work must be"),
    ("out_starts", np.empty(2, np.int64), "out_starts"),
    ("out_values", np.empty(1), "out_values"),
]
SUM_CHANGES = [
    ("starts", np.array([0, 1, 2]), "come from union_starts"),
    ("starts", np.array([0, 2, 3]), "come from union_starts"),
    ("starts", np.array([0, 1, 4]), "do not fit"),
    ("b_starts", np.array([0, 1]), "as many rows"),
    ("a_values", np.array([1.0]), "values must be"),
    ("values", np.empty(2), "values must be"),
]


def test_arrays_that_would_lead_a_kernel_astray_are_refused(refuses):
    refuses(_native.calibrate, CALIBRATE, CALIBRATE_CHANGES)
    refuses(_native.transpose, TRANSPOSE, TRANSPOSE_CHANGES)
    refuses(_native.union_sum, SUM, SUM_CHANGES)

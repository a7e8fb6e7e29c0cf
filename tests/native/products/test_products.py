"""scatter, inner and project against their numpy definitions."""

import numpy as np
import pytest
import scipy.sparse

from lowland import _native
from support.cases import each
from support.kernels import each_isa, each_kind

SUMMED_IN_T = 256  # terms the kernels add in the type of the data before they go on in double


def error_bound(dtype, absolute_terms):
    """Rigorous bound of a sum of rounded products: each partial sum has at most 256 roundings.

    4 more for the subtraction of the shift, the product and the rounding of the result.
    """
    unit = np.finfo(dtype).eps / 2
    return (SUMMED_IN_T + 4) * unit * absolute_terms + np.finfo(dtype).tiny


def table(n, p, dtype, mean=0.0, seed=0):
    """Correlated columns of unlike spread around a common mean."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + rng.gamma(2.0, size=(n, 1))
    return (mean + X * (1 + np.arange(p) % 5)).astype(dtype)


# --- scatter ------------------------------------------------------------------------------------


CHUNK = 512  # rows that the kernel packs together; slices of it have 256


def scatter(x, shift=None, threads=1, isa="auto"):
    p = x.shape[1]
    shift = np.zeros(p, x.dtype) if shift is None else shift
    sums, out = np.full(p, np.nan), np.full((p, p), np.nan)
    _native.scatter_matrix(x, shift, sums, out, threads, isa)
    return sums, np.triu(out)


def assert_scatter_is_right(x, shift=None, threads=1, isa="auto"):
    sums, out = scatter(x, shift, threads, isa)
    y = x.astype(np.longdouble) - (0 if shift is None else shift.astype(np.longdouble))
    absolute = (np.abs(y).T @ np.abs(y)).astype(float)
    # Up to a chunk of terms is summed in the type of x, with one rounding each, and then in
    # double; the shifted values carry one rounding of their own.
    tolerance = 4 * np.sqrt(CHUNK) * np.finfo(x.dtype).eps
    assert (np.abs(out - np.triu((y.T @ y).astype(float))) <= tolerance * absolute + 1e-300).all()
    rounded = np.abs(x).astype(float).sum(axis=0) + np.abs(y).astype(float).sum(axis=0)
    assert (np.abs(sums - y.sum(axis=0).astype(float)) <= tolerance * rounded + 1e-300).all()


@each("p", [1, 2, 11, 12, 13, 23, 24, 25, 50, 97, 130])
@each("n", [1, 2, 7, 256, 257, CHUNK - 1, CHUNK, CHUNK + 1])
@each_kind
def test_scatter_equals_its_definition_for_every_shape(n, p, dtype, isa):
    x = table(n, p, dtype)
    assert_scatter_is_right(x, x.mean(axis=0), isa=isa)


@each_kind
def test_scatter_adds_up_many_chunks(dtype, isa):
    x = table(40 * CHUNK + 333, 30, dtype)
    assert_scatter_is_right(x, x.mean(axis=0), isa=isa)


@each("share", [0.3, 0.8, 0.97, 1.0])
@each_kind
def test_zeros_are_passed_over_and_nothing_else(share, dtype, isa):
    x = table(3 * CHUNK + 50, 77, dtype)
    rng = np.random.default_rng(0)
    x[rng.random(x.shape) < share * np.linspace(0, 1, 77)] = 0
    x[:, 30:37] = 0
    assert_scatter_is_right(x, isa=isa)


@each_kind
def test_negative_zeros_and_the_tiniest_numbers_count_as_what_they_are(dtype, isa):
    x = np.zeros((300, 30), dtype)
    x[::2, 3] = -0.0
    x[5, 7] = np.finfo(dtype).tiny
    x[6, 7] = 1
    _, out = scatter(x, isa=isa)
    assert out[7, 7] == 1
    assert out.sum() == 1


@each_kind
def test_a_sparse_start_does_not_hide_dense_rows_and_the_reverse(dtype, isa):
    # The kernel judges a slice by its first rows; the judgement must only cost time.
    x = table(256, 48, dtype)
    x[:20, :24] = 0
    x[20:, 24:] = 0
    assert_scatter_is_right(x, isa=isa)


@each_kind
def test_columns_equal_to_their_shift_have_exactly_no_scatter(dtype, isa):
    x = table(CHUNK + 100, 40, dtype)
    x[:, [0, 13, 39]] = dtype(0.1)
    sums, out = scatter(x, np.full(40, 0.1, dtype), isa=isa)
    full = out + out.T
    assert not sums[[0, 13, 39]].any()
    assert not full[[0, 13, 39]].any()
    assert full[1, 2] != 0


@each(("kind", "mean"), [(np.float64, 1e6), (np.float32, 1e3)])
@each_isa
def test_a_shift_near_the_mean_saves_the_digits_of_large_offsets(kind, mean, isa):
    x = table(2 * CHUNK + 77, 14, kind, mean=mean)
    shift = np.full(14, mean, kind)
    exact = x.astype(np.longdouble) - shift
    _, out = scatter(x, shift, isa=isa)
    expected = np.triu((exact.T @ exact).astype(float))
    assert np.allclose(out, expected, rtol=0, atol=1e-5 * expected.max())
    assert_scatter_is_right(x, shift, isa=isa)


@each_kind
def test_scatter_reads_rows_at_any_distance_and_in_any_direction(dtype, isa):
    base = table(600, 60, dtype)
    for view in (base[::2], base[::-1], base[:, 5:43], base[100:101]):
        expected = scatter(np.ascontiguousarray(view), isa=isa)
        found = scatter(view, isa=isa)
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])


@each("shape", [(50 * CHUNK + 11, 53), (5 * CHUNK, 400), (40, 130), (3, 2)])
@each_kind
def test_scatter_does_not_depend_on_the_number_of_threads(shape, dtype, isa, same_for_threads):
    x = table(*shape, dtype)
    x[np.abs(x) < 0.5] = 0
    same_for_threads(lambda threads: scatter(x, threads=threads, isa=isa), (2, 5, 33))


@each_kind
def test_a_value_that_is_not_finite_shows_in_the_sums(dtype, isa):
    for bad in (np.nan, np.inf, -np.inf):
        x = table(CHUNK + 30, 30, dtype)
        x[CHUNK + 3, 17] = bad
        sums, _ = scatter(x, isa=isa)
        assert not np.isfinite(sums[17])
        assert np.isfinite(np.delete(sums, 17)).all()


# --- inner --------------------------------------------------------------------------------------


def inner(a, b, shift_a=0, shift_b=0, symmetric=False, threads=1, isa="auto"):
    shift_a = np.broadcast_to(np.asarray(shift_a, a.dtype), a.shape)
    shift_b = np.broadcast_to(np.asarray(shift_b, b.dtype), b.shape)
    out = np.full((a.shape[1], b.shape[1]), np.nan)
    _native.inner(a, shift_a, b, shift_b, symmetric, out, threads, isa)
    return out


def assert_inner_is_right(a, b, shift_a=0, shift_b=0, isa="auto", threads=1):
    left = (a - np.asarray(shift_a, a.dtype)).astype(np.float64)
    right = (b - np.asarray(shift_b, b.dtype)).astype(np.float64)
    out = inner(a, b, shift_a, shift_b, isa=isa, threads=threads)
    bound = error_bound(a.dtype, np.abs(left).T @ np.abs(right))
    assert (np.abs(out - left.T @ right) <= bound).all()


@each("depth", [1, 3, 127, 128, 129, 255, 256, 257, 700])
@each(("m", "n"), [(1, 1), (1, 30), (12, 24), (13, 25), (50, 7)])
@each_kind
def test_inner_equals_its_definition_for_every_shape(depth, m, n, dtype, isa):
    a, b = table(depth, m, dtype, seed=1), table(depth, n, dtype, seed=2)
    assert_inner_is_right(a, b, isa=isa)


@each_kind
def test_every_kind_of_shift_is_subtracted_while_reading(dtype, isa):
    a, b = table(300, 26, dtype, mean=5, seed=1), table(300, 9, dtype, mean=-3, seed=2)
    rng = np.random.default_rng(3)
    row = rng.standard_normal((1, 26)).astype(dtype)
    column = rng.standard_normal((300, 1)).astype(dtype)
    full = rng.standard_normal((300, 26)).astype(dtype)
    for shift in (row, column, full, dtype(2)):
        assert_inner_is_right(a, b, shift_a=shift, isa=isa)
        assert_inner_is_right(b, a, shift_b=shift, isa=isa)
    assert_inner_is_right(a, b, shift_a=row, shift_b=column, isa=isa)


@each_kind
def test_inner_reads_transposed_reversed_and_strided_views(dtype, isa):
    x = table(120, 61, dtype, seed=4)
    y = table(61, 35, dtype, seed=5)
    assert_inner_is_right(x.T, y, isa=isa)
    assert_inner_is_right(x[::-1, ::2], x[:, 1::3], isa=isa)
    assert_inner_is_right(x[:, ::-1], x[:, 50:3:-4], shift_a=x[0, ::-1], isa=isa)
    assert_inner_is_right(np.asfortranarray(x), np.asfortranarray(x)[:, :5], isa=isa)


@each("p", [1, 12, 13, 24, 25, 73])
@each_kind
def test_the_symmetric_product_has_the_bits_of_the_general_one(p, dtype, isa):
    x = table(321, p, dtype, seed=6)
    shift = x.mean(axis=0)
    upper = np.triu_indices(p)
    general = inner(x, x, shift, shift, isa=isa)
    half = inner(x, x, shift, shift, symmetric=True, isa=isa)
    assert np.array_equal(half[upper], general[upper])


@each_kind
def test_inner_is_right_when_its_buffer_is_filled_several_times(dtype, isa):
    # 2^22 packed elements hold some 2000 terms of 2000 columns.
    rng = np.random.default_rng(7)
    a = rng.standard_normal((2300, 2000), dtype=dtype)
    assert_inner_is_right(a, a[:, :3], shift_a=dtype(0.25), isa=isa, threads=2)


def test_long_sums_do_not_stall_in_single_precision(isa):
    # In float32, 2^24 + 1 is 2^24: the ones must be added to the large number in double.
    a = np.ones((SUMMED_IN_T + 20_000, 1), np.float32)
    a[:SUMMED_IN_T] = 0
    a[0] = 2**24
    assert inner(a, np.ones_like(a), isa=isa)[0, 0] == 2**24 + 20_000


@each_kind
def test_a_product_over_no_terms_is_zero(dtype, isa):
    a, b = np.empty((0, 4), dtype), np.empty((0, 3), dtype)
    assert np.array_equal(inner(a, b, isa=isa), np.zeros((4, 3)))


@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (0, 0)])
def test_a_product_without_columns_does_nothing(m, n, run_apart):
    code = (
        f"a, b, out = np.ones((5, {m})), np.ones((5, {n})), np.empty(({m}, {n}))\n"
        f"_native.inner(a, a, b, b, {m == n}, out, 2)\n"
        "print(out.shape)"
    )
    assert run_apart(code) == f"({m}, {n})"


@each("symmetric", [False, True])
@each_kind
def test_inner_does_not_depend_on_the_number_of_threads(symmetric, dtype, isa, same_for_threads):
    x = table(1000, 90, dtype, seed=8)
    given = x, x, x[3], x[3], symmetric
    same_for_threads(lambda threads: np.triu(inner(*given, threads, isa)), (2, 5))


# --- project ------------------------------------------------------------------------------------


def project(x, shift, v, threads=1, isa="auto"):
    out = np.full((x.shape[0], v.shape[1]), np.nan, x.dtype)
    _native.project(x, shift, v, out, threads, isa)
    return out


def operands(n, p, q, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = table(n, p, dtype, mean=3, seed=seed)
    return x, x[0] * dtype(0.5), rng.standard_normal((p, q)).astype(dtype)


def assert_project_is_right(x, shift, v, isa="auto", threads=1):
    centered = (x - shift).astype(np.float64)
    expected = centered @ v.astype(np.float64)
    bound = error_bound(x.dtype, np.abs(centered) @ np.abs(v.astype(np.float64)))
    assert (np.abs(project(x, shift, v, threads, isa) - expected) <= bound).all()


@each("q", range(1, 31))
@each_kind
def test_project_equals_its_definition_for_every_number_of_columns(q, dtype, isa):
    assert_project_is_right(*operands(70, 37, q, dtype), isa=isa)


@each("p", [1, 2, 255, 256, 257, 600])
@each("n", [1, 3, 63, 64, 65, 200])
@each_kind
def test_project_equals_its_definition_for_every_shape(n, p, dtype, isa):
    assert_project_is_right(*operands(n, p, 5, dtype), isa=isa)


@each("q", [1, 2, 7, 8, 9, 24, 25, 30])
@each("p", [1, 6, 300])
@each_kind
def test_a_row_gets_the_same_bits_in_any_batch_and_at_any_place(p, q, dtype, isa):
    x, shift, v = operands(150, p, q, dtype)
    together = project(x, shift, v, isa=isa)
    for i in (0, 1, 2, 3, 5, 63, 64, 149):
        assert np.array_equal(project(x[i : i + 1], shift, v, isa=isa)[0], together[i])
    order = np.random.default_rng(1).permutation(150)
    assert np.array_equal(project(x[order], shift, v, isa=isa), together[order])
    assert np.array_equal(project(x[13:80], shift, v, isa=isa), together[13:80])


@each_kind
def test_other_rows_even_infinite_ones_do_not_touch_a_row(dtype, isa):
    x, shift, v = operands(66, 20, 7, dtype)
    clean = project(x, shift, v, isa=isa)
    x[[10, 65]] = np.inf
    x[30] = np.nan
    rest = np.setdiff1d(np.arange(66), [10, 30, 65])
    assert np.array_equal(project(x, shift, v, isa=isa)[rest], clean[rest])


@each_kind
def test_project_reads_rows_at_any_distance_and_in_any_direction(dtype, isa):
    x, shift, v = operands(150, 40, 11, dtype)
    for view, at in ((x[::-3], slice(None)), (x[:, 7:30], slice(7, 30))):
        expected = project(np.ascontiguousarray(view), shift[at], v[at], isa=isa)
        assert np.array_equal(project(view, shift[at], v[at], isa=isa), expected)


@each("n", [1, 64, 1000])
@each_kind
def test_project_does_not_depend_on_the_number_of_threads(n, dtype, isa, same_for_threads):
    given = operands(n, 70, 13, dtype)
    same_for_threads(lambda threads: project(*given, threads, isa), (2, 5, 64))


@each_kind
def test_no_rows_and_no_axes_are_fine(dtype, isa):
    x, shift, v = operands(5, 6, 3, dtype)
    assert project(x[:0].reshape(0, 6), shift, v, isa=isa).shape == (0, 3)
    assert project(x, shift, v[:, :0], isa=isa).shape == (5, 0)


# --- what is refused ----------------------------------------------------------------------------


REFUSED = {
    "scatter, columns not neighbors in memory": (
        "scatter(ones((6, 8))[:, ::2], ones(4), ones(4), ones((4, 4)), 1)"
    ),
    "scatter, shift too short": "scatter(ones((9, 4)), ones(3), ones(4), ones((4, 4)), 1)",
    "scatter, sums too long": "scatter(ones((9, 4)), ones(4), ones(5), ones((4, 4)), 1)",
    "scatter, out too small": "scatter(ones((9, 4)), ones(4), ones(4), ones((3, 3)), 1)",
    "scatter, no threads": "scatter(ones((9, 4)), ones(4), ones(4), ones((4, 4)), 0)",
    "inner, unequal terms": "inner(a, a, b, b, False, ones((3, 3)), 1)",
    "inner, shift of another shape": "inner(a, a[:4], a, a, False, ones((3, 3)), 1)",
    "inner, out of another shape": "inner(a, a, wide, wide, False, ones((400, 3)), 1)",
    "inner, symmetric with unequal sides": "inner(a, a, wide, wide, True, ones((3, 400)), 1)",
    "project, columns not neighbors in memory": (
        "project(ones((6, 8))[:, ::2], ones(4), ones((4, 2)), ones((6, 2)), 1)"
    ),
    "project, shift too short": "project(ones((6, 4)), ones(3), ones((4, 2)), ones((6, 2)), 1)",
    "project, v too short": "project(ones((6, 4)), ones(4), ones((3, 2)), ones((6, 2)), 1)",
    "project, out too short": "project(ones((6, 4)), ones(4), ones((4, 2)), ones((5, 2)), 1)",
    "project, no threads": "project(ones((6, 4)), ones(4), ones((4, 2)), ones((6, 2)), 0)",
    "project, negative threads": "project(ones((6, 4)), ones(4), ones((4, 2)), ones((6, 2)), -3)",
    "unknown instruction set": "_native.all_finite(ones(3), 1, 'mmx')",
}
PRELUDE = """
ones, scatter, inner, project = np.ones, _native.scatter_matrix, _native.inner, _native.project
a, b, wide = ones((5000, 3)), ones((6000, 3)), ones((5000, 400))
"""


@each("what", REFUSED)
def test_what_a_kernel_cannot_do_is_a_value_error_and_not_a_crash(what, run_apart):
    assert run_apart(PRELUDE + REFUSED[what]).startswith("ValueError: ")


def test_arrays_that_cannot_be_written_as_promised_are_a_type_error():
    x, means = np.ones((6, 4)), np.ones((1, 4))
    read_only = np.ones((4, 4))
    read_only.flags.writeable = False
    for out in (np.ones((4, 4), order="F")[::-1], np.ones((4, 4), np.float32), read_only):
        with pytest.raises(TypeError, match="incompatible"):
            _native.scatter_matrix(x, means, out, 1)
    with pytest.raises(TypeError, match="incompatible"):  # mixed types would need a copy
        _native.project(x, np.ones(4, np.float32), np.ones((4, 2)), np.ones((6, 2)), 1)
    with pytest.raises(TypeError, match="incompatible"):
        _native.scatter_matrix(np.ones((6, 4), int), means, np.ones((4, 4)), 1)


def test_kernels_leave_their_inputs_alone(dtype):
    x, shift, v = operands(100, 30, 7, dtype)
    copies = x.copy(), shift.copy(), v.copy()
    project(x, shift, v, 2)
    scatter(x, threads=2)
    inner(x, x, shift, shift, True, 2)
    for array, copy in zip((x, shift, v), copies, strict=True):
        assert np.array_equal(array, copy)


# --- sparse_times -------------------------------------------------------------------------------


def sparse_case(n, p, q, dtype, index):
    rng = np.random.default_rng(n + p + q)
    dense = np.where(rng.random((n, p)) < 0.2, rng.standard_normal((n, p)), 0).astype(dtype)
    x = scipy.sparse.csr_matrix(dense)
    v, offset = rng.standard_normal((p, q)).astype(dtype), rng.standard_normal(q).astype(dtype)
    return dense, (x.indptr.astype(index), x.indices.astype(index), x.data, v, offset)


@each("index", [np.int32, np.int64])
@each("shape", [(1, 1, 1), (5, 3, 7), (130, 40, 16), (64, 200, 33), (3, 9, 0)])
@each_kind
def test_sparse_times_equals_its_definition(shape, index, dtype, isa):
    dense, arguments = sparse_case(*shape, dtype, index)
    out = np.full((shape[0], shape[2]), np.nan, dtype)
    _native.sparse_times(*arguments, out, 2, isa)
    expected = dense.astype(float) @ arguments[3] - arguments[4]
    assert np.allclose(out, expected, atol=50 * np.finfo(dtype).eps)


@each_kind
def test_sparse_times_does_not_depend_on_threads_or_company(dtype, isa):
    dense, (starts, columns, values, v, offset) = sparse_case(300, 50, 9, dtype, np.int32)
    one, two = np.empty((300, 9), dtype), np.empty((300, 9), dtype)
    _native.sparse_times(starts, columns, values, v, offset, one, 1, isa)
    _native.sparse_times(starts, columns, values, v, offset, two, 2, isa)
    assert one.tobytes() == two.tobytes()
    row, alone = scipy.sparse.csr_matrix(dense[137:138]), np.empty((1, 9), dtype)
    own = row.indptr.astype(np.int32), row.indices.astype(np.int32), row.data
    _native.sparse_times(*own, v, offset, alone, 1, isa)
    assert alone[0].tobytes() == one[137].tobytes()


def test_sparse_times_refuses_arrays_that_do_not_fit_together(dtype):
    _, (starts, columns, values, v, offset) = sparse_case(6, 5, 4, dtype, np.int64)
    out = np.empty((6, 4), dtype)
    for wrong in (
        (starts[:-1], columns, values, v, offset, out),
        (starts, columns[:-1], values, v, offset, out),
        (starts, columns, values, v[:, :3].copy(), offset, out),
        (starts, columns, values, v, offset[:2], out),
        (starts + 1, columns, values, v, offset, out),
    ):
        with pytest.raises(ValueError, match="sparse_times"):
            _native.sparse_times(*wrong, 1)

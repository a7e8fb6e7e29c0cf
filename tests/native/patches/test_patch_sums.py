"""patch_counts and patch_sums against a dense sum written out."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_kind


def dense_sum(members, factors, identity, sign, n):
    M = np.zeros((n, n))
    for patch, F in zip(members, factors.astype(np.float64), strict=True):
        B = identity * np.eye(len(patch)) + sign * F @ F.T
        for a, i in enumerate(patch):
            for b, j in enumerate(patch):
                if i >= 0 and j >= 0:
                    M[i, j] += B[a, b]
    return M


def lists(members, n):
    flat = members.ravel()
    entries = np.flatnonzero(flat >= 0)
    entries = entries[np.argsort(flat[entries], kind="stable")].astype(np.int64)
    starts = np.searchsorted(flat[entries], np.arange(n + 1)).astype(np.int64)
    return starts, entries


def kernel_sum(members, factors, identity, sign, n, threads=1, isa="auto"):
    starts, entries = lists(members, n)
    counts = np.empty(n, np.int64)
    _native.patch_counts(members, starts, entries, counts, threads, isa)
    out = np.r_[0, np.cumsum(counts)].astype(np.int64)
    columns, values = np.empty(out[-1], np.int32), np.empty(out[-1], factors.dtype)
    _native.patch_sums(
        members, starts, entries, factors, identity, sign, out, columns, values, threads, isa
    )
    return out, columns, values


def example(n, m, size, width, dtype, seed=0, padded=False):
    rng = np.random.default_rng(seed)
    members = np.array([rng.permutation(n)[:size] for _ in range(m)], np.int32)
    if padded:
        members[rng.random(members.shape) < 0.3] = -1
    return members, rng.standard_normal((m, size, width)).astype(dtype)


@each(
    ("n", "m", "size", "width"),
    [(1, 1, 1, 1), (5, 3, 2, 1), (40, 60, 7, 3), (200, 30, 5, 9), (300, 300, 31, 2), (9, 4, 3, 0)],
)
@each(("identity", "sign"), [(0.0, 1.0), (1.0, -1.0)])
@each("padded", [False, True])
@each_kind
def test_the_sum_is_that_of_dense_matrices(n, m, size, width, identity, sign, padded, dtype, isa):
    members, factors = example(n, m, size, width, dtype, padded=padded)
    starts, columns, values = kernel_sum(members, factors, identity, sign, n, isa=isa)
    dense = np.zeros((n, n))
    rows = np.repeat(np.arange(n), np.diff(starts))
    dense[rows, columns] = values
    expected = dense_sum(members, factors, identity, sign, n)
    rounding = 50 * np.finfo(dtype).eps * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(dense, expected, atol=rounding)
    assert np.array_equal(dense, dense.T)
    for v in range(n):  # ascending, and each column once
        assert (np.diff(columns[starts[v] : starts[v + 1]]) > 0).all()
    together = np.zeros((n, n), bool)
    for patch in members:
        together[np.ix_(patch[patch >= 0], patch[patch >= 0])] = True
    assert np.array_equal(np.bincount(rows, minlength=n), together.sum(axis=1))


@each_kind
def test_threads_do_not_change_a_bit(dtype, isa, same_for_threads):
    given = *example(500, 700, 12, 4, dtype), 1.0, -1.0, 500
    same_for_threads(lambda threads: kernel_sum(*given, threads, isa), (2, 5))


GOOD = {
    "members": np.array([[0, 1], [1, 2]], np.int32),
    "starts": np.array([0, 1, 3, 4], np.int64),
    "entries": np.array([0, 1, 2, 3], np.int64),
    "factors": np.ones((2, 2, 1)),
    "identity": 0.0,
    "sign": 1.0,
    "out_starts": np.array([0, 2, 5, 7], np.int64),
    "columns": np.zeros(7, np.int32),
    "values": np.zeros(7),
    "threads": 1,
}


CHANGES = [
    ("members", np.array([[0, 1], [1, 3]], np.int32), "member is not below n"),
    ("members", np.array([[0, 1], [1, -2]], np.int32), "member is not below n"),
    ("members", np.array([[0, 1], [2, 1]], np.int32), "not the places of the members"),
    ("members", np.zeros((2, 0), np.int32), "needs members"),
    ("starts", np.array([0, 1, 3, 5], np.int64), "do not fit"),
    ("starts", np.array([0, 3, 1, 4], np.int64), "not the places|must not fall"),
    ("entries", np.array([0, 1, 2, 4], np.int64), "not the places of the members"),
    ("factors", np.ones((2, 3, 1)), "factors must be"),
    ("out_starts", np.array([0, 2, 5, 8], np.int64), "do not fit together"),
    ("out_starts", np.array([0, 6, 5, 7], np.int64), "must not fall"),
    ("values", np.zeros(6), "do not fit together"),
    ("threads", 0, "threads must be at least 1"),
]


def test_arrays_that_would_lead_the_kernel_astray_are_refused(refuses):
    refuses(_native.patch_sums, GOOD, CHANGES)


def test_rows_with_too_little_room_are_not_written_beyond_it(isa):
    out = np.array([0, 1, 4, 7], np.int64)  # row 0 has two entries
    columns, values = np.full(7, 9, np.int32), np.full(7, 9.0)
    given = {**GOOD, "out_starts": out, "columns": columns, "values": values}
    _native.patch_sums(**given, isa=isa)
    assert columns[0] in (0, 1)
    assert columns[1:4].tolist() == [0, 1, 2]


def test_counts_need_room_for_every_row():
    given = {key: GOOD[key] for key in ("members", "starts", "entries", "threads")}
    with pytest.raises(ValueError, match="counts must be"):
        _native.patch_counts(counts=np.zeros(2, np.int64), **given)

"""attract and permute_edges against sums over lists of edges."""

import numpy as np

from lowland import _native
from support.cases import each
from support.kernels import each_kind

DEGREES = [0.5, 1.0, 3.0, np.inf]
LAWS = [(1.577, 0.895), (0.3, 2.6), (12.0, 0.2), (0.9, 1.0)]  # a, b of UMAP


def edges(n_rows, n_points, dtype, seed=0, longest=40):
    """Lists of every length from 0 up, in random order: whole vectors, rests, and none at all."""
    rng = np.random.default_rng(seed)
    lengths = rng.permutation(np.arange(n_rows) % min(longest, n_points + 1))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = [rng.choice(n_points, size=length, replace=False) for length in lengths]
    columns = np.concatenate([*columns, np.empty(0)]).astype(np.int32)
    return starts, columns, rng.gamma(1.0, size=columns.size).astype(dtype)


def attract(lists, z, y, dof=np.inf, with_sums=True, law=(0.0, 0.0), threads=1, isa="auto"):
    forces = np.full_like(z, np.nan)
    sums = np.full((len(z), 2), np.nan) if with_sums else None
    inverse_dof = 0.0 if np.isinf(dof) else 1 / dof
    _native.attract(*lists, z, y, inverse_dof, forces, sums, threads, *law, isa)
    return forces, sums


def definition(lists, z, y, dof):
    """Force, potential and stiffness of each row, and the sums of their terms' sizes."""
    starts, columns, p = lists
    rows = np.repeat(np.arange(len(z)), np.diff(starts))
    wide = np.float64 if z.dtype == np.float32 else np.longdouble
    gap, p = z.astype(wide)[rows] - y.astype(wide)[columns], p.astype(wide)
    square = (gap**2).sum(axis=1)
    weight = p if np.isinf(dof) else p / (1 + square / dof)
    height = p * (square if np.isinf(dof) else dof * np.log1p(square / dof))
    terms = np.column_stack([weight[:, None] * gap, height, weight])
    total, size = np.zeros((len(z), terms.shape[1]), wide), np.zeros((len(z), terms.shape[1]), wide)
    np.add.at(total, rows, terms)
    np.add.at(size, rows, np.abs(terms))
    return total, size


@each("dof", DEGREES)
@each("d", [1, 2, 3, 5])
@each_kind
def test_sums_equal_their_definition(d, dof, dtype, isa, irregular):
    y, z = irregular(60, d).astype(dtype), irregular(90, d, seed=1).astype(dtype)
    z[:5] = y[:5]
    lists = edges(90, 60, dtype)
    forces, sums = attract(lists, z, y, dof, isa=isa)
    expected, size = definition(lists, z, y, dof)
    found = np.column_stack([forces, sums])
    # rounding of a term (differences of coordinates too) and of a sum of up to 40 of them
    slack = 80 * np.finfo(dtype).eps * size
    assert (np.abs(found - expected) <= slack).all()
    assert size.max() > 1


@each("d", [1, 2, 3, 5])
@each_kind
def test_sums_are_only_made_on_request_and_change_no_force(d, dtype, isa, irregular):
    y = irregular(60, d).astype(dtype)
    lists = edges(60, 60, dtype)
    with_sums, without = (attract(lists, y, y, 1.0, wanted, isa=isa)[0] for wanted in (True, False))
    np.testing.assert_allclose(with_sums, without, rtol=1e-5, atol=1e-6 * np.abs(with_sums).max())


@each(("dof", "law"), [(1.0, (0.0, 0.0)), (np.inf, LAWS[0])])
@each("n", [1, 2, 9, 1100])
@each("d", [1, 2, 3, 5])
@each_kind
def test_threads_do_not_change_a_bit(d, n, dof, law, dtype, isa, irregular, same_for_threads):
    y = irregular(n, d).astype(dtype)
    lists = edges(n, n, dtype)
    same_for_threads(lambda threads: attract(lists, y, y, dof, law=law, threads=threads, isa=isa))


@each("d", [1, 2, 3, 5])
@each_kind
def test_a_row_alone_is_pulled_as_in_company(d, dtype, isa, irregular, same_alone):
    y, z = irregular(60, d).astype(dtype), irregular(45, d, seed=1).astype(dtype)
    starts, columns, weights = edges(45, 60, dtype)

    def pulled(rows):
        ends = starts[rows.start or 0 : (rows.stop or 45) + 1]
        part = slice(ends[0], ends[-1])
        return attract((ends - ends[0], columns[part], weights[part]), z[rows], y, 1.0, isa=isa)

    same_alone(pulled, range(45))


@each("d", [1, 2, 3, 5])
@each_kind
def test_far_neighbors_pull_weakly_and_overflow_nothing(d, dtype, isa, irregular):
    y = irregular(50, d).astype(dtype) * dtype(1e15)
    lists = edges(50, 50, dtype)
    forces, sums = attract(lists, y, y, 1.0, isa=isa)
    expected, _ = definition(lists, y, y, 1.0)
    np.testing.assert_allclose(sums[:, 0], expected[:, d].astype(float), rtol=1e-5)
    assert np.isfinite(forces).all()


# --- the law of UMAP --------------------------------------------------------------------------


def pulls(lists, z, y, law):
    """Force, potential and stiffness of each row, the sizes of their terms, and their rounding."""
    a, b = law
    starts, columns, p = lists
    rows = np.repeat(np.arange(len(z)), np.diff(starts))
    gap, p = z.astype(float)[rows] - y.astype(float)[columns], p.astype(float)
    u = np.clip((gap**2).sum(axis=1), 1e-12, 1e12)
    weight = p * 2 * a * b * u ** (b - 1) / (1 + a * u**b)
    terms = np.column_stack([weight[:, None] * gap, p * 2 * np.log1p(a * u**b), weight])
    total, size = (np.zeros((len(z), terms.shape[1])) for _ in range(2))
    np.add.at(total, rows, terms)
    np.add.at(size, rows, np.abs(terms))
    return total, size, 120 + 4 * b * np.abs(np.log2(u)).max(initial=0)


@each("law", LAWS)
@each("d", [1, 2, 3, 5])
@each_kind
def test_the_pull_of_umap_equals_its_definition(d, law, dtype, isa, irregular):
    y, z = irregular(60, d).astype(dtype), irregular(90, d, seed=1).astype(dtype)
    lists = edges(90, 60, dtype, longest=30)
    forces, sums = attract(lists, z, y, law=law, isa=isa)
    expected, size, units = pulls(lists, z, y, law)
    # a difference of coordinates is exact to the size of the coordinates only
    near = 20 * np.finfo(dtype).eps * np.abs(y).max() * size[:, -1:]
    slack = units * np.finfo(dtype).eps * size + near
    assert (np.abs(np.column_stack([forces, sums]) - expected) <= slack).all()
    without, _ = attract(lists, z, y, law=law, with_sums=False, isa=isa)
    np.testing.assert_allclose(without, forces, rtol=1e-5, atol=1e-6 * np.abs(forces).max())


@each("law", LAWS)
@each("d", [1, 2, 3, 5])
@each_kind
def test_extreme_distances_pull_in_umap_by_finite_forces(d, law, dtype, isa):
    y = np.zeros((5, d), dtype)
    y[:, 0] = [0, 1e-12, 1, 1e6, 1e12]
    all_pairs = (
        np.arange(6, dtype=np.int64) * 5,
        np.tile(np.arange(5, dtype=np.int32), 5),
        np.ones(25, dtype),
    )
    forces, sums = attract(all_pairs, y, y, law=law, isa=isa)
    assert np.isfinite(forces).all()
    assert np.isfinite(sums).all()
    assert forces[0, 0] <= 0 < forces[4, 0]  # towards the others


# --- permute_edges ----------------------------------------------------------------------------


def permuted(lists, order, threads=1, isa="auto"):
    starts, columns, weights = lists
    place = np.empty_like(order)
    place[order] = np.arange(order.size, dtype=np.int32)
    new_starts = np.concatenate([[0], np.cumsum(np.diff(starts)[order])]).astype(np.int64)
    out = np.empty_like(columns), np.empty_like(weights)
    _native.permute_edges(*lists, order, place, new_starts, *out, threads, isa)
    return new_starts, *out


@each("threads", [1, 2, 3])
@each_kind
def test_edges_follow_their_points(threads, dtype, isa):
    lists = edges(700, 700, dtype)
    order = np.random.default_rng(3).permutation(700).astype(np.int32)
    starts, columns, weights = permuted(lists, order, threads, isa)
    for i, former in enumerate(order):
        now, then = slice(starts[i], starts[i + 1]), slice(lists[0][former], lists[0][former + 1])
        assert np.array_equal(order[columns[now]], lists[1][then])
        assert np.array_equal(weights[now], lists[2][then])


# --- refusals ---------------------------------------------------------------------------------

GOOD = {
    "starts": np.array([0, 1, 3]),
    "columns": np.array([1, 0, 2], np.int32),
    "weights": np.ones(3),
    "z": np.zeros((2, 2)),
    "y": np.zeros((3, 2)),
    "inverse_dof": 1.0,
    "forces": np.zeros((2, 2)),
    "sums": np.zeros((2, 2)),
    "threads": 1,
}


CHANGES = [
    ("starts", np.array([0, 1, 2]), "do not fit together"),
    ("starts", np.array([1, 1, 3]), "do not fit together"),
    ("starts", np.array([0, 4, 3]), "must not fall"),
    ("starts", np.empty(0, np.int64), "do not fit together"),
    ("weights", np.ones(2), "do not fit together"),
    ("z", np.zeros((3, 2)), "a row for every list"),
    ("z", np.zeros((2, 3)), "a row for every list"),
    ("y", np.zeros((3, 0)), "a row for every list"),
    ("forces", np.zeros((2, 3)), "forces must be as z"),
    ("sums", np.zeros((2, 3)), r"sums must be \(n, 2\)"),
    ("inverse_dof", -1.0, "inverse_dof must be >= 0"),
    ("inverse_dof", np.nan, "inverse_dof must be >= 0"),
    ("threads", 0, "threads must be at least 1"),
]


def test_arrays_that_do_not_fit_are_refused(refuses):
    refuses(_native.attract, GOOD, CHANGES)


CHANGED_ORDERS = [
    ("order", np.array([0, 3, 1], np.int32), "order is not below n"),
    ("order", np.array([0, -1, 1], np.int32), "order is not below n"),
    ("order", np.array([0, 1], np.int32), "do not fit together"),
    ("place", np.array([0, 1], np.int32), "do not fit together"),
    ("columns", np.array([1, 0, 3], np.int32), "a column is not below n"),
    ("new_starts", np.array([0, 1, 2, 3]), "new_starts do not follow"),
    ("new_starts", np.array([0, 0, 1, 2]), "do not fit together"),
    ("new_columns", np.zeros(2, np.int32), "do not fit together"),
    ("new_weights", np.zeros(2), "do not fit together"),
]


def test_orders_that_do_not_fit_are_refused(refuses):
    good = {
        "starts": np.array([0, 2, 2, 3]),
        "columns": np.array([1, 2, 0], np.int32),
        "weights": np.ones(3),
        "order": np.array([1, 2, 0], np.int32),
        "place": np.array([2, 0, 1], np.int32),
        "new_starts": np.array([0, 0, 1, 3]),
        "new_columns": np.zeros(3, np.int32),
        "new_weights": np.zeros(3),
        "threads": 1,
    }
    refuses(_native.permute_edges, good, CHANGED_ORDERS)

"""The self-organizing map against Kohonen's rules written out, k-means, and known surfaces."""

import functools

import numpy as np
import pytest
import scipy.sparse

from lowland import SOM
from lowland.errors import DataError, LowlandError
from support.cases import each

EITHER = [np.float32, np.float64]
GRIDS = [("hexagon", False), ("hexagon", True), ("rectangle", False), ("rectangle", True)]
SHAPES = {
    "gaussian": lambda d, r: np.exp(-(d**2) / (2 * r**2)),
    "bubble": lambda d, r: float(d <= r + 1e-6),
    "epanechnikov": lambda d, r: max(0.0, 1 - d**2 / r**2),
}


def irregular(n=120, p=4, seed=0):
    mix = np.random.default_rng(99).standard_normal((p, p))
    X = np.random.default_rng(seed).gamma(2.0, size=(n, p)) @ mix
    return X + np.exp(X[:, :1] / 8)


def with_gaps(X, share=0.2):
    rng = np.random.default_rng(5)
    Z = np.where(rng.random(X.shape) < share, np.nan, X)
    Z[:, 0] = X[:, 0]
    return Z


def sheet(n=1500, seed=0):
    P = np.random.default_rng(seed).random((n, 2)) * [3, 2]
    return np.column_stack([P, P @ [0.3, -0.2], np.ones(n)])


# --- the rules written out -----------------------------------------------------------------------


def grid_distance(sides, grid, toroidal, i, j):
    """The shortest way from unit to unit, also to the images of a closed grid."""

    def place(number):
        a, b = divmod(number, sides[1])
        return (
            np.array([a + b % 2 / 2, b * np.sqrt(3) / 2]) if grid == "hexagon" else np.array([a, b])
        )

    turns = [-1, 0, 1] if toroidal else [0]
    height = np.sqrt(3) / 2 if grid == "hexagon" else 1.0
    x, y = place(i) - place(j)
    images = [(x + a * sides[0], y + b * sides[1] * height) for a in turns for b in turns]
    return min(np.hypot(*image) for image in images)


@functools.cache
def grid_distances(sides, grid, toroidal):
    m = range(sides[0] * sides[1])
    return np.array([[grid_distance(sides, grid, toroidal, i, j) for j in m] for i in m])


def winner(x, M):
    """The nearest unit; of units that are equal but for rounding the first."""
    known = ~np.isnan(x)
    squares = np.array([((x - m)[known] ** 2).sum() for m in M])
    return int(np.argmax(squares <= squares.min() * (1 + 1e-9) + 1e-18))


def radius_at(epoch, first, last, n_epochs):
    """Falls by a constant factor in the first 70 % of the epochs."""
    steps = max(1, round(0.7 * n_epochs) - 1)
    return last if epoch >= steps else first * (last / first) ** (epoch / steps)


def naive_batch(X, M, sides, grid, toroidal, kind, first, last, n_epochs):
    M = M.copy()
    D = grid_distances(tuple(sides), grid, toroidal)
    for epoch in range(n_epochs):
        r = radius_at(epoch, first, last, n_epochs)
        winners, old = [winner(x, M) for x in X], M.copy()
        for j in range(len(M)):
            h = np.array([SHAPES[kind](D[c][j], r) for c in winners])
            for k in range(X.shape[1]):
                known = ~np.isnan(X[:, k])
                weight = h[known].sum()
                M[j, k] = h[known] @ X[known, k] / weight if weight > 0 else old[j, k]
    return M


START = irregular(20, 4, seed=3)
TRIED = {"sides": [5, 4], "radius": (2.5, 0.9), "max_iter": 4, "init": START}


@each("kind", list(SHAPES))
@each(("grid", "toroidal"), GRIDS)
@each("table", ["rows", "gaps", "sparse"])
def test_the_batch_rule_is_the_mean_over_the_neighborhood(kind, grid, toroidal, table):
    X = irregular(150)
    X = with_gaps(X) if table == "gaps" else np.where(X > -1, X, 0) if table == "sparse" else X
    given = scipy.sparse.csr_array(X) if table == "sparse" else X
    som = SOM(grid=grid, toroidal=toroidal, neighborhood=kind, **TRIED).fit(given)
    wanted = naive_batch(X, START, (5, 4), grid, toroidal, kind, 2.5, 0.9, 4)
    np.testing.assert_allclose(som.codebook_, wanted, rtol=1e-9, atol=1e-9)


def test_large_sparse_tables_are_never_made_dense():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((1200, 1800), density=0.003, rng=rng, format="csr")
    som = SOM(sides=[6, 4], max_iter=3, random_state=0).fit(X)
    dense = SOM(
        sides=[6, 4],
        max_iter=3,
        init=SOM(sides=[6, 4], max_iter=0, random_state=0).fit(X).codebook_,
    )
    np.testing.assert_allclose(som.codebook_, dense.fit(X.toarray()).codebook_, atol=1e-9)
    np.testing.assert_allclose(som.embedding_, dense.embedding_, atol=1e-5)
    np.testing.assert_array_equal(som.predict(X), dense.predict(X.toarray()))


@each("dtype", EITHER)
@each("missing", [False, True])
@each("kind", list(SHAPES))
def test_the_online_rule_moves_units_row_by_row(dtype, missing, kind):
    X = (with_gaps(irregular(30)) if missing else irregular(30)).astype(dtype)
    som = SOM(rule="online", neighborhood=kind, random_state=7, learning_rate=0.4, **TRIED).fit(X)
    stream = np.random.default_rng(np.random.default_rng(7).integers(2**63))
    M, n = START.copy(), len(X)
    for epoch in range(4):
        r = radius_at(epoch, 2.5, 0.9, 4)
        for t, i in enumerate(stream.permutation(n)):
            x, rate = X[i].astype(float), 0.4 * (1 - (epoch * n + t) / (4 * n))
            c = winner(x, M)
            for j in range(20):
                h = SHAPES[kind](grid_distances((5, 4), "hexagon", False)[c, j], r)
                M[j] += np.nan_to_num(rate * h * (x - M[j]))
    np.testing.assert_allclose(som.codebook_, M, rtol=1e-8, atol=1e-8)


# --- limits ---------------------------------------------------------------------------------------


@each("kind", list(SHAPES))
def test_a_radius_of_zero_is_a_step_of_k_means(kind):
    X, start = irregular(80), irregular(80)[:12] + 0.1
    start[5] += 100  # no row is near
    som = SOM(sides=[4, 3], init=start, radius=0, neighborhood=kind, max_iter=1).fit(X)
    nearest = np.array([winner(x, start) for x in X])
    for j in range(12):
        mean = X[nearest == j].mean(axis=0) if (nearest == j).any() else start[j]
        np.testing.assert_allclose(som.codebook_[j], mean, atol=1e-12)


def test_a_quiet_epoch_at_a_large_radius_does_not_end_the_fit():
    """Two far groups have the same winners in the first epochs; smaller radii still change them."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [100.0, 0.0], [100.0, 1.0]])
    som = SOM(sides=[4, 2], grid="rectangle", radius=(3.0, 0.3), max_iter=30).fit(X)
    assert som.n_iter_ >= 20  # the radius falls in the first 20 epochs
    assert som.quantization_error_ < 0.1 < som.loss_history_[2]


@each("kind", list(SHAPES))
@each("radius", [1e6, 1e300])
def test_an_infinite_radius_puts_all_units_on_the_mean(kind, radius):
    for X in (irregular(), with_gaps(irregular())):
        som = SOM(sides=[5, 4], radius=radius, neighborhood=kind, max_iter=3).fit(X)
        np.testing.assert_allclose(
            som.codebook_, np.tile(np.nanmean(X, axis=0), (20, 1)), rtol=1e-6
        )


@each("grid", ["hexagon", "rectangle"])
@each("neighborhood", list(SHAPES))
def test_a_flat_sheet_is_mapped_without_a_fold(grid, neighborhood):
    """The two nearest units of a point of a flat grid are always neighbors."""
    X = sheet()
    som = SOM(grid=grid, neighborhood=neighborhood, max_iter=60).fit(X)
    assert som.topographic_error_ < 0.02
    ratio = som.unit_sides_[0] / (som.unit_sides_[1] * (0.75**0.5 if grid == "hexagon" else 1))
    assert abs(ratio / 1.5 - 1) < 0.15  # the sides of the sheet, up to whole units
    back = som.inverse_transform(som.embedding_)
    pitch = np.sqrt(6 / len(som.codebook_))
    inner = ((X[:, :2] > 2 * pitch) & (X[:, :2] < np.array([3, 2]) - 2 * pitch)).all(axis=1)
    assert np.linalg.norm(back - X, axis=1)[inner].mean() < 0.35 * pitch


def test_a_torus_is_covered_without_a_rim():
    """Of all rows on a torus, none has its two nearest units apart but by chance; a plane tears."""
    rng = np.random.default_rng(0)
    a, b = 2 * np.pi * rng.random((2, 2000))
    X = np.column_stack([np.cos(a), np.sin(a), 0.9 * np.cos(b), 0.9 * np.sin(b)])
    closed = SOM(sides=[14, 14], toroidal=True, max_iter=40).fit(X)
    plane = SOM(sides=[14, 14], max_iter=40).fit(X)
    assert closed.topographic_error_ < 0.05 < plane.topographic_error_
    assert closed.quantization_error_ < plane.quantization_error_
    assert (closed.hits_ > 0).all()
    periods = closed._torus_sides()
    np.testing.assert_allclose(periods, [14, 14 * np.sqrt(0.75)])
    assert ((closed.embedding_ >= 0) & (closed.embedding_ < periods)).all()
    around = closed.inverse_transform(closed.embedding_ + periods)
    np.testing.assert_allclose(around, closed.inverse_transform(closed.embedding_), atol=1e-9)


# --- what is told of the fit ----------------------------------------------------------------------


@each(("grid", "toroidal"), GRIDS)
def test_errors_hits_and_u_matrix_are_as_defined(grid, toroidal):
    X = irregular(200)
    som = SOM(sides=[6, 4], grid=grid, toroidal=toroidal).fit(X)
    M, D = som.codebook_, np.linalg.norm(X[:, None] - som.codebook_, axis=2)
    two = np.argsort(D, axis=1)[:, :2]
    np.testing.assert_array_equal(som.predict(X), two[:, 0])
    np.testing.assert_array_equal(som.hits_, np.bincount(two[:, 0], minlength=24))
    np.testing.assert_allclose(som.quantization_error_, D.min(axis=1).mean(), rtol=1e-12)
    assert som.loss_history_[-1] == som.quantization_error_
    assert len(som.loss_history_) == som.n_iter_ + 1
    steps = grid_distances((6, 4), grid, toroidal)
    near = 1 if grid == "hexagon" else np.sqrt(2)
    apart = [steps[a, b] > near + 1e-9 for a, b in two]
    np.testing.assert_allclose(som.topographic_error_, np.mean(apart), atol=1e-12)
    for j in range(24):
        around = np.flatnonzero(np.abs(steps[j] - 1) < 1e-9)
        wanted = np.linalg.norm(M[around] - M[j], axis=1).mean()
        np.testing.assert_allclose(som.u_matrix_[j], wanted, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(som.unit_places_[0] - som.unit_places_[4]), 1)


def test_labels_are_those_of_the_majority():
    X = irregular(60)
    som = SOM(sides=[9, 9]).fit(X)
    y = np.array(["b", "a", "c"])[np.arange(60) % 3]
    labels, shares = som.label_units(X, y)
    nearest = som.predict(X)
    for j in range(81):
        own = list(y[nearest == j])
        if not own:
            assert labels[j] is None
            assert shares[j] == 0
            continue
        best = max(sorted(set(own)), key=own.count)
        assert (labels[j], shares[j]) == (best, own.count(best) / len(own))
    with pytest.raises(DataError):
        som.label_units(X, y[:5])


@each(("n", "units"), [(2, 2), (9, 9), (100, 50), (10_000, 500), (60_000, 1000)])
def test_the_number_of_units_is_about_five_roots_of_n_but_at_most_n(n, units):
    X = np.random.default_rng(0).standard_normal((n, 2))
    som = SOM(max_iter=0 if n > 1000 else 3).fit(X)
    assert 0.6 * units <= len(som.codebook_) <= 1.4 * units


@each("grid", ["hexagon", "rectangle"])
def test_rows_on_a_line_get_a_chain_and_equal_rows_one_unit(grid):
    line = np.outer(np.random.default_rng(0).random(100), [3.0, -1.0, 0.0])
    som = SOM(grid=grid).fit(line + 5)
    np.testing.assert_array_equal(som.unit_sides_, [50, 1])
    assert som.topographic_error_ < 0.05
    np.testing.assert_array_equal(SOM(grid=grid).fit(np.full((40, 3), 0.1)).unit_sides_, [1, 1])


def test_rows_of_one_unit_do_not_share_a_place():
    X = irregular(400)
    smooth, units = SOM().fit(X), SOM(places="units").fit(X)
    assert len(np.unique(smooth.embedding_, axis=0)) == 400
    assert len(np.unique(units.embedding_, axis=0)) <= len(units.codebook_)
    np.testing.assert_array_equal(units.embedding_, units.unit_places_[units.predict(X)])
    gaps = np.linalg.norm(smooth.embedding_ - units.embedding_, axis=1)
    assert gaps.max() < 1.5
    assert gaps.mean() < 0.6


# --- bad input and odd tables ---------------------------------------------------------------------

ODD = {
    "two rows": np.array([[0.0, 1.0], [2.0, 5.0]]),
    "three rows": np.eye(3),
    "two equal rows": np.ones((2, 3)),
    "constant columns": np.column_stack([irregular(30), np.full(30, 7.0)]),
    "constant rows": np.full((20, 3), 4.0),
    "copies": np.repeat(irregular(5), 20, axis=0),
    "one column": irregular(50)[:, :1],
    "one binary column": np.repeat([[0.0], [1.0]], 10, axis=0),
    "gaps": with_gaps(irregular(30), 0.6),
    "heavy tails": np.random.default_rng(0).standard_cauchy((200, 3)),
    "wide": np.random.default_rng(0).standard_normal((10, 500)),
}


@each("X", ODD.values(), ids=list(ODD))
@each(
    "params",
    [
        {},
        {"sides": [8, 6]},
        {"rule": "online"},
        {"toroidal": True},
        {"n_components": 1},
        {"init": "random", "neighborhood": "bubble"},
    ],
)
@each("dtype", EITHER)
def test_odd_tables_have_a_map(X, params, dtype):
    X = X.astype(dtype)
    som = SOM(random_state=0, **params).fit(X)
    assert som.embedding_.dtype == dtype
    assert np.isfinite(som.embedding_).all()
    assert np.isfinite(som.codebook_).all()
    assert som.hits_.sum() == len(X)
    np.testing.assert_array_equal(som.transform(X), som.embedding_)
    # units are means of rows, and places are among units
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    if params.get("rule") is None and "init" not in params:
        slack = 1e-6 * np.nanmax(np.abs(X))
        assert (som.codebook_ >= low - slack).all() or som.n_iter_ == 0 or "sides" in params
        assert (som.codebook_ <= high + slack).all() or som.n_iter_ == 0 or "sides" in params


@each("rule", ["batch", "online"])
@each("table", ["rows", "gaps"])
@each("dtype", EITHER)
def test_threads_change_no_byte(rule, table, dtype):
    X = irregular(2500, 9).astype(dtype)
    X = with_gaps(X) if table == "gaps" else X
    one, two = (SOM(rule=rule, max_iter=3, n_jobs=n, random_state=0).fit(X) for n in (1, 2))
    assert one.codebook_.tobytes() == two.codebook_.tobytes()
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.loss_history_.tobytes() == two.loss_history_.tobytes()


REFUSED = [
    ({"n_components": 3}, "at most 2"),
    ({"sides": [3, 4, 5]}, "one for each axis"),
    ({"sides": [4, 5], "toroidal": True}, "even number"),
    ({"radius": (1.0, 2.0, 3.0)}, "first and"),
    ({"radius": (2.0, 0.0)}, "radius"),
    ({"radius": -1.0}, "radius"),
    ({"learning_rate": 1.5}, "learning_rate"),
    ({"init": np.zeros((5, 4)), "sides": [3, 2]}, "init has shape"),
    ({"init": np.full((6, 4), np.nan), "sides": [3, 2]}, "finite"),
    ({"grid": "triangle"}, "grid"),
    ({"sides": [100_000, 100_000]}, "smaller sides"),
]


@each(("params", "message"), REFUSED)
def test_parameters_that_do_not_fit_are_refused(params, message):
    with pytest.raises(LowlandError, match=message):
        SOM(**params).fit(irregular(30))


def test_a_missing_value_is_placed_by_the_others():
    X = np.repeat(irregular(40), 2, axis=1)  # every column twice
    som = SOM(random_state=0).fit(X)
    gaps = X.copy()
    gaps[::2, 0] = np.nan
    gaps[1::2, 5] = np.nan
    assert np.mean(som.predict(gaps) == som.predict(X)) > 0.7
    moved = np.linalg.norm(som.transform(gaps) - som.embedding_, axis=1)
    assert np.median(moved) < 0.3

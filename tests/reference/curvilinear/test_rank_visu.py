"""RankVisu: its stress by double loops, its invariances, and the pseudo-force recipe in numpy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lowland._base.errors import DataError, ParameterError
from lowland.methods.curvilinear.rank_visu import RankVisu
from reference.chance import not_below
from support.cases import each

GIVEN = {"metric": "precomputed"}


def ranks_of(D):
    """The rank of each j in the list of each i, 1 the nearest, ties by row number; 0 for i = j."""
    n = len(D)
    ranks = np.zeros((n, n), int)
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: (D[i, j], j))
        for rank, j in enumerate(others, 1):
            ranks[i, j] = rank
    return ranks


def naive_stress(D, Y, k, length=None):
    """S_i = sum_j |r_ij - r*_ij| over min(r, r*) <= k, for distances without ties."""
    n = len(D)
    length = n - 1 if length is None else length
    inside, outside = ranks_of(D), ranks_of(cdist(Y, Y))
    stress = np.zeros(n)
    for i in range(n):
        for j in range(n):
            if i != j and min(inside[i, j], outside[i, j]) <= k:
                stress[i] += abs(min(inside[i, j], length + 1) - min(outside[i, j], length + 1))
    return stress


def recipe(D, Y, k, n_steps=600):
    """Pseudo-forces W (r* - r) / (n - 1), symmetrized; steps of the mean nearest distance."""
    n, r = len(D), ranks_of(D)
    best = np.inf
    for step in range(n_steps + 1):
        d = cdist(Y, Y)
        np.fill_diagonal(d, np.inf)
        order = np.argsort(d, axis=1, kind="stable")
        s = np.empty((n, n), int)
        np.put_along_axis(s, order, np.arange(1, n + 1)[None], axis=1)
        counts = np.minimum(r, s) <= k
        np.fill_diagonal(counts, False)
        best = min(best, np.abs(r - s)[counts].sum())
        pull = np.where(counts, (s - r) / (n - 1), 0.0)
        pull = (pull + pull.T) / d
        forces = pull @ Y - pull.sum(axis=1)[:, None] * Y
        Y = Y + (1 - step / n_steps) * d.min(axis=1).mean() * forces
        Y = (Y - Y.mean(axis=0)) / Y.std()
    return best


def sphere(n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    return X / np.linalg.norm(X, axis=1)[:, None]


def start_of(X, q=2):
    return RankVisu(q, max_iter=0).fit(X)


@each("q", [1, 2, 3])
@each("max_rank", ["auto", None, 9])
@each("dtype", [np.float32, np.float64])
def test_the_stress_is_that_of_the_definition(q, max_rank, dtype, irregular):
    X = irregular(70, 5).astype(dtype)
    model = RankVisu(q, n_neighbors=4, max_rank=max_rank, max_iter=20, random_state=0).fit(X)
    length = {"auto": 40, None: 69}.get(max_rank, 9)
    each_row = naive_stress(cdist(X, X), model.embedding_.astype(float), 4, length)
    assert model.stress_ == each_row.sum() > 0
    share = model.stress_per_point_ / model.stress_per_point_.sum()
    np.testing.assert_allclose(share, each_row / each_row.sum(), rtol=1e-12)


def test_the_stress_per_point_of_random_maps_is_one(irregular):
    X, rng = irregular(120, 4), np.random.default_rng(0)
    found = [
        RankVisu(init=rng.standard_normal((120, 2)), max_iter=0).fit(X).stress_per_point_.mean()
        for _ in range(20)
    ]
    # neighbors in a plane are near each other, so the rows of one map are not independent: the
    # error of the mean is that of the maps
    assert abs(np.mean(found) - 1) < 3 * np.std(found, ddof=1) / np.sqrt(len(found))


def test_ties_of_the_data_may_lie_in_any_order():
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(8.0)), -1).reshape(-1, 2)
    turned = grid @ np.array([[0.6, 0.8], [-0.8, 0.6]])  # rounding breaks ties
    D = np.abs(grid[:, None] - grid[None]).max(axis=2)
    for given, X in (({}, grid), (GIVEN, cdist(grid, grid).round(12))):
        assert RankVisu(init=turned, max_iter=0, max_rank=None, **given).fit(X).stress_ == 0
    assert RankVisu(init=turned, max_iter=0, max_rank=None, **GIVEN).fit(D).stress_ > 0


@each("function", [np.sqrt, np.square, lambda D: D**3 + D, np.log1p])
def test_an_increasing_function_of_the_distances_changes_no_stress(function, irregular):
    D = cdist(irregular(60, 4), irregular(60, 4))
    Y = irregular(60, 2, seed=1)
    settings = {"init": Y, "max_iter": 30, "random_state": 0, **GIVEN}
    one, other = RankVisu(**settings).fit(D), RankVisu(**settings).fit(function(D))
    assert one.loss_history_[0] == naive_stress(D, Y, 10).sum()
    np.testing.assert_array_equal(one.loss_history_, other.loss_history_)
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


@each("q", [1, 2, 3])
def test_a_similarity_of_the_start_changes_no_stress(q, irregular):
    X, Y = irregular(60, 4), irregular(60, q, seed=1)
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((q, q)))[0]
    first = RankVisu(q, init=Y, max_iter=0).fit(X)
    for unit in (1.0, 1e-150, 1e200):
        again = RankVisu(q, init=unit * (Y @ turn + 3), max_iter=0).fit(X)
        assert again.stress_ == first.stress_
        np.testing.assert_array_equal(again.stress_per_point_, first.stress_per_point_)


@each("q", [1, 2, 3])
def test_rows_of_as_many_dimensions_as_the_map_are_kept(q, irregular):
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((6, 6)))[0][:q]
    X = irregular(90, q) @ turn
    model = RankVisu(q, random_state=0).fit(X)
    assert model.stress_ == 0
    assert model.n_iter_ == 0
    assert (model.stress_per_point_ == 0).all()


@each("q", [1, 2, 3])
def test_the_best_map_visited_is_kept(q, irregular):
    X = irregular(150, 6)
    model = RankVisu(q, random_state=0).fit(X)
    assert (np.diff(model.loss_history_) <= 0).all()
    assert model.loss_history_[0] == start_of(X, q).stress_
    assert model.stress_ == model.loss_history_[-1] < model.loss_history_[0]
    assert len(model.loss_history_) == model.n_iter_ + 1
    from_end = RankVisu(q, init=model.embedding_, max_iter=3).fit(X)
    assert from_end.stress_ <= model.stress_


@each("data", ["sphere", "irregular"])
def test_it_ends_lower_than_pseudo_forces(data, irregular):
    X = sphere(80) if data == "sphere" else irregular(150, 6)
    D, start = cdist(X, X), start_of(X)
    found = RankVisu(random_state=0, max_rank=None).fit(X).stress_
    assert found <= recipe(D, start.embedding_, 10)
    if data == "sphere":
        assert start.stress_ == 11286  # the trial in which a recipe with other steps reached 7172
        assert found <= 7172


def test_groups_keep_a_size():
    # without a force that makes the map even, groups shrink to dots and outliers fly away
    rng = np.random.default_rng(0)
    wide = [rng.standard_normal((100, 8)) * s + 9 * rng.standard_normal(8) for s in (1, 3)]
    X = np.concatenate(wide)
    Y = RankVisu(random_state=0).fit_transform(X)
    for group in (Y[:100], Y[100:]):
        spread = np.median(np.linalg.norm(group - np.median(group, axis=0), axis=1))
        assert spread > 0.1  # of the root mean squared distance of all


def test_equal_rows_share_a_place(irregular):
    X = irregular(40, 4)[np.r_[:40, :10, :10, 0, 0]]
    model = RankVisu(random_state=0).fit(X)
    for copy, row in zip(range(40, 62), [*range(10), *range(10), 0, 0], strict=True):
        np.testing.assert_array_equal(model.embedding_[copy], model.embedding_[row])
    distinct = np.unique(model.embedding_, axis=0)
    assert len(distinct) == 40
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


@each("n", [3, 4, 12])
@each("q", [1, 2, 3])
@each("kind", ["irregular", "constant", "two places", "integers"])
def test_few_rows_and_few_places(n, q, kind, irregular):
    X = irregular(n, 3)
    if kind == "constant":
        X[:] = 7
    elif kind == "two places":
        X[:] = np.arange(n)[:, None] % 2
    elif kind == "integers":
        X = np.round(X)
    for settings in ({}, {"n_neighbors": 1}, {"n_neighbors": 50, "max_rank": 60}):
        model = RankVisu(q, random_state=0, **settings).fit(X)
        assert np.isfinite(model.embedding_).all()
        assert model.stress_ <= model.loss_history_[0]
        assert np.isfinite(model.transform(X + 0.1)).all()
        if kind in ("constant", "two places"):
            assert model.stress_ == 0


def test_a_map_has_a_mean_squared_distance_of_one(irregular):
    Y = RankVisu(random_state=0).fit_transform(irregular(50, 4))
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-12)
    assert np.square(cdist(Y, Y)).sum() / (50 * 49) == pytest.approx(1, rel=1e-12)


def test_no_jump_between_sizes():
    """Ranks are cut at 100 from 102 rows on, which changes no more than other samples do."""
    short, long = (
        [RankVisu(random_state=0).fit(sphere(n, s)).stress_per_point_.mean() for s in range(3)]
        for n in (101, 104)
    )
    assert not_below(np.log(short), np.log(long))
    assert not_below(np.log(long), np.log(short))


def test_wrong_parameters_are_refused(irregular):
    X = irregular(30, 3)
    with pytest.raises(ParameterError, match=r"max_rank=4 is below n_neighbors=10; set it to 10"):
        RankVisu(max_rank=4).fit(X)
    with pytest.raises(DataError, match="init has shape"):
        RankVisu(init=np.zeros((4, 2))).fit(X)
    with pytest.raises(DataError, match="finite"):
        RankVisu(init=np.full((30, 2), np.nan)).fit(X)

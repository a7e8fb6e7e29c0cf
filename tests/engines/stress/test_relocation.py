"""Points that a descent cannot move are put to places where their own stress is lower."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

from lowland import MDS, Sammon
from lowland._engines.stress.objective import AllPairs
from lowland.methods.mds._stress import SIDES, _grid, can_relocate, relocated
from support.cases import each


def table(q=2, n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, q)) * np.arange(q, 0, -1)


@each("q", [1, 2, 3])
@each("dtype", [np.float32, np.float64])
def test_a_point_on_the_wrong_side_comes_home(q, dtype):
    Y = table(q)
    far = int(Y[:, 0].argmax())
    objective = AllPairs(squareform(pdist(Y)).astype(dtype), None, 0, 1)
    wrong = Y.copy()
    wrong[far] *= -1
    mended = relocated(objective, wrong)
    assert objective(mended).loss < objective(wrong).loss
    places, others = _grid(wrong, SIDES[q]), np.arange(60) != far
    gaps = np.linalg.norm(places[:, None] - Y[others], axis=2) - objective.delta[far][others]
    np.testing.assert_array_equal(mended[far], places[(gaps**2).sum(axis=1).argmin()])
    assert relocated(objective, Y) is None  # nothing is better than no stress


def test_the_stress_never_rises_and_ends_lower_than_without():
    X = load_digits().data[:400]
    found = MDS(2, random_state=0).fit(X)
    start = MDS(2, random_state=0, max_iter=0).fit(X).embedding_
    followed = MDS(2, init=start).fit(X)  # a given start is followed to its own minimum
    assert found.stress_ < followed.stress_ * (1 - 1e-4)
    assert (np.diff(found.loss_history_) <= 0).all()
    assert len(found.loss_history_) == found.n_iter_ + 1
    assert found.stress_ == pytest.approx(((pdist(X) - pdist(found.embedding_)) ** 2).sum())


def test_max_iter_bounds_all_steps_and_a_callback_sees_them_once():
    X = load_digits().data[:400]
    steps = []
    whole = MDS(2, random_state=0, callback=lambda i, Y, loss: steps.append(i)).fit(X)
    assert steps == sorted(set(steps))
    assert steps[-1] == whole.n_iter_
    for most in (1, 7, whole.n_iter_ - 1):
        assert MDS(2, random_state=0, max_iter=most).fit(X).n_iter_ <= most


def test_only_the_raw_stress_of_all_pairs_is_relocated():
    delta = squareform(pdist(table()))
    unknown = np.where(delta > delta.max() * 0.9, np.nan, delta)
    assert can_relocate(AllPairs(delta, None, 0, 1), 2)
    assert not can_relocate(AllPairs(delta, None, 0, 1), 4)
    assert not can_relocate(AllPairs(delta, None, 1, 1), 2)
    assert not can_relocate(AllPairs(delta, np.ones_like(delta), 0, 1), 2)
    assert not can_relocate(AllPairs(unknown, None, 0, 1), 2)
    assert Sammon(2, random_state=0).fit(table(5)).stress_ >= 0

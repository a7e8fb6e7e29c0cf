"""The descent: its steps, when it ends, what it reports, and that its order of points is hidden."""

import itertools
import math

import numpy as np
import pytest

from lowland._base.monitor import Monitor
from lowland._engines.embedding import descent
from lowland._engines.embedding.affinity import joint_affinities
from lowland._engines.embedding.descent import LONGEST, LOOK, Divergence, Stage, descend, entropy_of
from lowland._engines.embedding.repulsion import pairwise_repulsion
from lowland._engines.neighbors.search import neighbor_graph


@pytest.fixture
def start(irregular):
    """A divergence of 60 rows in float64, and a small map."""
    P = joint_affinities(neighbor_graph(irregular(60, 5), 20), 6)
    divergence = Divergence(P, 1.0, pairwise_repulsion(1.0, 1), entropy_of(P.weights), 1)
    Y = 1e-4 * irregular(60, 2, seed=1)
    return divergence, Y - Y.mean(axis=0)


def go(start, *stages, tol=0.0, learning_rate=None, monitor=None):
    divergence, Y = start
    return descend(
        divergence,
        Y,
        [Stage(*stage) for stage in stages],
        learning_rate=learning_rate,
        tol=tol,
        monitor=monitor or Monitor(),
    )


def naive(divergence, Y, n_iter, exaggeration, momentum):
    """The loop in numpy; learning rate n / exaggeration."""
    Y, velocity, gains = Y.copy(), np.zeros_like(Y), np.ones_like(Y)
    for step in range(n_iter):
        attraction, repulsion, total, _ = divergence(Y)
        gradient = exaggeration * attraction - repulsion / total
        gains = np.where((gradient > 0) != (velocity > 0), gains + 0.2, gains * 0.8)
        gains = np.maximum(gains, 0.01)
        velocity = momentum * velocity - len(Y) / exaggeration * gains * gradient
        length = np.linalg.norm(velocity, axis=1, keepdims=True)
        velocity *= np.minimum(1, LONGEST / np.maximum(length, 1e-300))
        Y = Y + velocity
        if step % LOOK == 0:
            Y -= Y.mean(axis=0)
    return Y


@pytest.mark.parametrize(("exaggeration", "momentum"), [(1.0, 0.8), (12.0, 0.5)])
def test_the_loop_is_as_defined(start, exaggeration, momentum):
    found = go(start, (60, exaggeration, momentum, False))
    expected = naive(*start, 60, exaggeration, momentum)
    np.testing.assert_allclose(found.Y, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("n_iter", [0, 1, 49, 50, 51, 120])
def test_losses_are_those_every_fifty_steps_and_the_last(start, n_iter):
    found = go(start, (n_iter, 1.0, 0.8, False))
    assert found.n_iter == n_iter
    assert len(found.losses) == math.ceil(n_iter / LOOK) + 1
    assert found.losses[-1] == pytest.approx(start[0].loss(found.Y), rel=1e-12)
    if n_iter == 0:
        assert np.array_equal(found.Y, start[1])


def test_the_start_is_not_written_to_and_steps_are_bounded(start):
    before, places = start[1].copy(), [start[1]]
    monitor = Monitor(callback=lambda step, Y, loss: places.append(Y.copy()))
    go(start, (60, 1.0, 0.9, False), learning_rate=1e5, monitor=monitor)
    assert np.array_equal(start[1], before)
    moved = [np.linalg.norm(b - a, axis=1).max() for a, b in itertools.pairwise(places)]
    assert LONGEST * 0.999 < max(moved[1:50]) < LONGEST * 1.001


def test_it_stops_when_the_loss_has_settled(start):
    everything = go(start, (2000, 1.0, 0.8, True))
    assert everything.n_iter == 2000  # tol=0 never stops
    stopped = go(start, (2000, 1.0, 0.8, True), tol=1e-5)
    assert LOOK < stopped.n_iter < 1500
    assert stopped.n_iter % LOOK == 1
    last, loss = stopped.losses[-3:-1]
    assert abs(last - loss) <= 1e-5 * LOOK * loss
    assert abs(stopped.losses[-4] - last) > 1e-5 * LOOK * last
    assert go(start, (2000, 1.0, 0.8, True), tol=1e-3).n_iter < stopped.n_iter
    assert go(start, (2000, 1.0, 0.8, False), tol=1e-3).n_iter == 2000  # not in this stage


@pytest.mark.parametrize("stop", ["answer", "cancel"])
@pytest.mark.parametrize("at", [1, 7, 70])
def test_a_run_that_is_stopped_keeps_its_map(start, stop, at):
    seen = {}

    def callback(step, Y, loss):
        seen[step] = Y.copy(), loss
        if step == at and stop == "cancel":
            monitor.cancel()
        return step == at and stop == "answer"

    monitor = Monitor(callback=callback)
    found = go(start, (50, 12.0, 0.8, False), (100, 1.0, 0.8, True), monitor=monitor)
    assert found.n_iter == at == max(seen)
    assert list(seen) == list(range(1, at + 1))
    assert np.array_equal(found.Y, seen[at][0])
    assert found.losses[-1] == pytest.approx(start[0].loss(found.Y), rel=1e-12)
    assert seen[1][1] == found.losses[0]


def test_a_run_cancelled_before_it_began_makes_one_step(start):
    monitor = Monitor()
    monitor.cancel()
    assert go(start, (50, 1.0, 0.8, False), monitor=monitor).n_iter == 1


def test_rearranging_the_points_is_hidden(start, irregular, monkeypatch):
    maps = {}

    def run(name):
        P = joint_affinities(neighbor_graph(irregular(60, 5), 20), 6)
        divergence = Divergence(P, 1.0, pairwise_repulsion(1.0, 1), entropy_of(P.weights), 1)
        frames = maps[name] = []
        monitor = Monitor(callback=lambda step, Y, loss: frames.append(Y.copy()))
        return divergence, go((divergence, start[1]), (240, 1.0, 0.8, False), monitor=monitor)

    _, plain = run("plain")
    monkeypatch.setattr(descent, "ARRANGED_ROWS", 10)
    divergence, arranged = run("arranged")
    assert not np.array_equal(arranged.rows, np.arange(60))
    assert np.array_equal(plain.rows, np.arange(60))
    for early, late in zip(maps["plain"], maps["arranged"], strict=True):  # rounding may grow
        np.testing.assert_allclose(late, early, atol=1e-6 * np.abs(early).max())
    np.testing.assert_allclose(arranged.losses, plain.losses, rtol=1e-8)
    by_place = np.ascontiguousarray(arranged.Y[arranged.rows])
    assert divergence.loss(by_place) == pytest.approx(arranged.losses[-1], rel=1e-12)

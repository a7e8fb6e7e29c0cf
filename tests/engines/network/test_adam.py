"""Training by Adam: schedules, held-out rows, penalties, and what may go wrong."""

import numpy as np
import pytest

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.network import adam
from lowland._engines.network.adam import Adam, Plan, mean_loss, rate_at, train
from lowland._engines.network.layers import Network, apply, first_weights
from lowland.errors import DataError
from support.cases import each

NETWORK = Network((5, 8, 2, 8, 5), ("tanh", "linear", "tanh", "linear"))
PLAN = Plan(n_epochs=20, batch_size=16, learning_rate=0.01)


def rows(n=100, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n, 2))
    return np.hstack([t, t**2, t[:, :1] * t[:, 1:]]).astype(np.float32)


def context(threads=1, **monitor):
    return FitContext(np.random.default_rng(1), threads, Monitor(**monitor))


def trained(plan=PLAN, X=None, network=NETWORK, seed=0, run=None, **more):
    X = rows() if X is None else X
    start = first_weights(network, np.random.default_rng(seed))
    return train(network, start, X, X, plan, run or context(), owner="Method", **more)


def test_training_reconstructs_what_two_numbers_describe():
    found = trained(PLAN._replace(n_epochs=300))
    assert found.losses[-1] < 0.05 * found.losses[0]
    assert len(found.losses) == 301


def test_the_learning_rate_falls_along_half_a_cosine_or_stays():
    done = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(rate_at(PLAN, done), [0.01, 0.005, 0], atol=1e-17)
    np.testing.assert_array_equal(rate_at(PLAN._replace(schedule="constant"), done), 0.01)


def test_the_first_step_has_the_whole_rate_and_the_last_hardly_any(monkeypatch):
    rates, kernel = [], _native.network_train

    def recording(*given):
        rates.extend(given[10])
        return kernel(*given)

    monkeypatch.setattr(_native, "network_train", recording)
    trained()
    assert len(rates) == 20 * 7
    assert rates[0] == PLAN.learning_rate
    assert 0 < rates[-1] < 1e-3 * PLAN.learning_rate


def test_the_best_epoch_on_held_out_rows_is_kept():
    X, other = rows(30), rows(40, seed=5)
    plan = PLAN._replace(n_epochs=60, learning_rate=0.05, schedule="constant")
    found = trained(plan, X, held_out=(other, other))
    assert found.best_epoch == np.argmin(found.held_out) < len(found.held_out) - 1
    kept = mean_loss(NETWORK, found.weights, other, other, 1)
    assert kept == pytest.approx(found.held_out.min(), rel=1e-6)


def test_training_ends_when_patience_does():
    other = rows(40, seed=5)
    plan = PLAN._replace(n_epochs=500, learning_rate=0.05, schedule="constant", patience=4)
    found = trained(plan, rows(20), held_out=(other, other))
    assert len(found.losses) - 1 == found.best_epoch + 4 < 500


@each("stop", ["callback", "cancel"])
def test_interrupted_training_keeps_the_best_weights(stop):
    if stop == "callback":
        run = context(callback=lambda i, Y, loss: i == 5)
    else:
        run = context(callback=lambda i, Y, loss: run.monitor.cancel() if i == 5 else None)
    found = trained(run=run)
    assert len(found.losses) == 6
    assert found.best_epoch == np.argmin(found.losses)
    assert np.isfinite(found.weights).all()


def test_a_cancellation_within_an_epoch_ends_it(monkeypatch):
    monkeypatch.setattr(adam, "CALL_PRODUCTS", 1.0)  # one batch per call
    calls, run, kernel = [], context(), _native.network_train

    def counting(*given):
        calls.append(len(given))
        run.monitor.cancel()
        return kernel(*given)

    monkeypatch.setattr(_native, "network_train", counting)
    found = trained(run=run)
    assert len(calls) == 1
    assert found.losses[1] == pytest.approx(found.losses[0], rel=0.5)  # of the rows seen


def test_batches_in_several_calls_are_those_of_one(monkeypatch):
    whole = trained().weights
    monkeypatch.setattr(adam, "CALL_PRODUCTS", 1.0)
    assert trained().weights.tobytes() == whole.tobytes()


@each("rate", [30.0, 1e38, 1e300])
def test_an_exploding_learning_rate_is_an_error_that_says_so(rate):
    """A step of Adam is about as long as its rate, so that a loss of 1 becomes one of rate^4.

    At 30 that is beyond what counts as exploded; the largest rates overflow.
    """
    assert min(rate, 30.0) ** 4 * rows().var() > adam.EXPLODED
    linear = Network((5, 2, 5), ("linear", "linear"))
    with pytest.raises(DataError, match=r"Method: training diverged in epoch \d+.*learning_rate="):
        trained(PLAN._replace(learning_rate=rate), network=linear)


def test_losses_with_a_tail_are_as_defined():
    X, weights = rows(40), first_weights(NETWORK, np.random.default_rng(0)).astype(np.float32)
    squares = np.sum((apply(NETWORK, weights, X, 1) - X) ** 2, axis=1)
    expected = np.sum(0.09 * np.log1p(squares / 0.09)) / X.size
    assert mean_loss(NETWORK, weights, X, X, 1, 0.3) == pytest.approx(expected, rel=1e-6)
    still = trained(PLAN._replace(n_epochs=1, learning_rate=1e-30, tail=0.3), X)
    np.testing.assert_allclose(still.losses, expected, rtol=1e-6)


def test_corruption_changes_what_the_network_sees_and_not_the_target():
    def zeros(seen, numbers, rng):
        assert not np.shares_memory(seen, X)
        np.testing.assert_array_equal(seen, X[numbers])
        return np.zeros_like(seen)

    X = rows()
    found = trained(PLAN._replace(n_epochs=200, corrupt=zeros), X)
    blind = mean_loss(NETWORK, found.weights, np.zeros_like(X), X, 1)
    assert blind == pytest.approx(float(X.var(axis=0).mean()), rel=0.02)  # the mean is the best


def test_no_epochs_give_the_start():
    found = trained(PLAN._replace(n_epochs=0))
    start = first_weights(NETWORK, np.random.default_rng(0)).astype(np.float32)
    np.testing.assert_array_equal(found.weights, start)
    assert found.best_epoch == 0


def test_the_published_cost_grows_with_rows_units_and_epochs():
    here = adam.training_cost(1000, (500, 200, 2), 10)
    for more in [(2000, (500, 200, 2), 10), (1000, (500, 400, 2), 10), (1000, (500, 200, 2), 20)]:
        assert adam.training_cost(*more).seconds > 1.3 * here.seconds
    assert here.n_bytes > 3 * 4 * (500 * 200 + 200 * 2)  # weights, means and squares


def test_steps_down_a_given_gradient_are_those_of_adam():
    rng = np.random.default_rng(0)
    start, decays = rng.standard_normal(5), np.array([1, 1, 0, 1, 0])
    taken = Adam(start.astype(np.float32), decays)
    w, m, v = start.copy(), 0, 0
    for t in range(1, 6):
        g = rng.standard_normal(5)
        taken.step(g.astype(np.float32), 0.1 / t, 0.03)
        g = g + 2 * 0.03 * decays * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - 0.1 / t * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(taken.weights, w, rtol=1e-5, atol=1e-6)

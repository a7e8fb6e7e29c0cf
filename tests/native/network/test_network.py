"""Passes and training of networks against their definitions in numpy."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lowland import _native
from lowland._engines.network.layers import ACTIVATIONS, Network
from support.cases import each
from support.kernels import each_isa, each_kind

SHAPES = [
    (1, 1),
    (3, 2),
    (5, 1, 4),
    (7, 24, 25, 2),
    (30, 13, 2, 13, 30),
    (300, 50, 3, 49, 5),
    (2, 600, 1),
]


def activations_of(sizes, first="tanh"):
    """Each activation comes at some layer."""
    start = ACTIVATIONS.index(first)
    return tuple(ACTIVATIONS[(start + k) % len(ACTIVATIONS)] for k in range(len(sizes) - 1))


def task(sizes, n, dtype=np.float64, tied=False, first="tanh", seed=0):
    rng = np.random.default_rng(seed)
    network = Network(sizes, activations_of(sizes, first), tied)
    weights = rng.standard_normal(network.n_weights) / np.sqrt(np.mean(sizes))
    return network, weights.astype(dtype), rng.standard_normal((n, sizes[0])).astype(dtype)


def activated(x, name):
    return {
        "linear": lambda: x,
        "tanh": lambda: np.tanh(x),
        "relu": lambda: np.where(x > 0, x, 0),
        "elu": lambda: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        "sigmoid": lambda: 1 / (1 + np.exp(-x)),
    }[name]()


def slope_of(x, name):
    return {
        "linear": lambda: np.ones_like(x),
        "tanh": lambda: 1 / np.cosh(x) ** 2,
        "relu": lambda: np.where(x > 0, 1.0, 0.0),
        "elu": lambda: np.where(x > 0, 1.0, np.exp(np.minimum(x, 0))),
        "sigmoid": lambda: np.exp(-x) / (1 + np.exp(-x)) ** 2,
    }[name]()


def oracle_forward(network, weights, X):
    """Values before and after the activation, of each layer, in double precision."""
    before, after, h = [], [], X.astype(np.float64)
    for W, b, name in network.layers(weights.astype(np.float64)):
        before.append(h @ W + b)
        h = activated(before[-1], name)
        after.append(h)
    return before, after


def oracle_backward(network, weights, X, slope):
    """The chain rule, layer by layer."""
    layers = network.layers(weights.astype(np.float64))
    before, after = oracle_forward(network, weights, X)
    gradient = np.zeros(network.n_weights)
    into = network.layers(gradient)
    slope = slope.astype(np.float64)
    for k in reversed(range(network.n_layers)):
        g = slope * slope_of(before[k], layers[k].activation)
        below = after[k - 1] if k else X.astype(np.float64)
        into[k].W[...] += below.T @ g
        into[k].b[...] += g.sum(axis=0)
        slope = g @ layers[k].W.T
    return gradient, slope


def found_forward(network, weights, X, first=1, threads=1, isa="auto"):
    widths = network.sizes[first:]
    values = np.full(len(X) * sum(widths), np.nan, dtype=X.dtype)
    _native.network_forward(*network.described(), weights, X, first, values, threads, isa)
    return values


def found_backward(network, weights, X, slope, threads=1, isa="auto", with_x=True):
    values = found_forward(network, weights, X, 1, threads, isa)
    gradient = np.full_like(weights, np.nan)
    slope_x = np.full_like(X, np.nan) if with_x else np.empty((0, X.shape[1]), X.dtype)
    _native.network_backward(
        *network.described(), weights, X, values, slope, gradient, slope_x, threads, isa
    )
    return gradient, slope_x


def assert_close(found, expected, dtype):
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@each_kind
def test_values_of_all_layers_are_as_defined(dtype, isa):
    for sizes, n in itertools.product(SHAPES, [1, 4, 33, 70]):
        network, weights, X = task(sizes, n, dtype)
        expected = np.concatenate([h.ravel() for h in oracle_forward(network, weights, X)[1]])
        assert_close(found_forward(network, weights, X, isa=isa), expected, dtype)
        last = found_forward(network, weights, X, network.n_layers, isa=isa)
        assert last.tobytes() == found_forward(network, weights, X, isa=isa)[-len(last) :].tobytes()


@each_kind
def test_slopes_are_those_of_the_chain_rule(dtype, isa):
    for (sizes, n), tied in itertools.product(itertools.product(SHAPES, [1, 37]), [False, True]):
        if tied and (len(sizes) % 2 == 0 or sizes != sizes[::-1]):
            continue
        network, weights, X = task(sizes, n, dtype, tied, first="sigmoid")
        slope = np.random.default_rng(1).standard_normal((n, sizes[-1])).astype(dtype)
        expected = oracle_backward(network, weights, X, slope)
        for found, wanted in zip(
            found_backward(network, weights, X, slope, isa=isa), expected, strict=True
        ):
            assert_close(found, wanted, dtype)


def test_sums_over_many_rows_go_through_several_chunks():
    network, weights, X = task((3, 4, 2), 5000, np.float32)
    slope = np.random.default_rng(1).standard_normal((5000, 2)).astype(np.float32)
    expected = oracle_backward(network, weights, X, slope)
    for found, wanted in zip(found_backward(network, weights, X, slope), expected, strict=True):
        assert_close(found, wanted, np.float32)


@each("dtype", [np.float32, np.float64])
def test_threads_and_company_do_not_change_a_bit(dtype, same_for_threads, same_alone):
    network, weights, X = task((70, 30, 2, 30, 70), 300, dtype, tied=True)
    slope = np.random.default_rng(1).standard_normal((300, 70)).astype(dtype)
    same_for_threads(lambda threads: found_backward(network, weights, X, slope, threads))
    same_for_threads(lambda threads: found_forward(network, weights, X, 4, threads))
    same_alone(
        lambda rows: [found_forward(network, weights, X[rows], 4).reshape(-1, 70)], (0, 33, 299)
    )


def test_extreme_rows_are_saturated_not_nan():
    network = Network((1, 3), ("tanh",))
    weights = np.array([1e300, -1e300, 0.0, 0.0, 0.0, 1e300])
    rows = np.array([[1e300], [-1e300], [0.0]])
    values = found_forward(network, weights, rows).reshape(3, 3)
    np.testing.assert_array_equal(values, [[1, -1, 1], [-1, 1, 1], [0, 0, 1]])


@each_isa
def test_tanh_and_elu_are_precise_near_zero_and_far_out(isa):
    x = np.concatenate([s * 10.0 ** np.arange(-12, 3) for s in (-1, 1)])[:, None]
    for name, exact in [("tanh", np.tanh(x)), ("elu", np.where(x > 0, x, np.expm1(x)))]:
        network = Network((1, 1), (name,))
        found = found_forward(network, np.array([1.0, 0.0]), x, isa=isa)
        np.testing.assert_allclose(found, exact.ravel(), rtol=1e-15)


# --- training -----------------------------------------------------------------------------------


def train(network, weights, inputs, targets, order, batch, rates, isa="auto", threads=1, **more):
    weights, state = weights.copy(), np.zeros((2, network.n_weights), weights.dtype)
    errors = np.full(len(rates), np.nan)
    options = {"decay": 0.0, "sparsity": 0.0, "code": 0, "tail": 0.0, "before": 0} | more
    _native.network_train(
        *network.described(),
        *(weights, state[0], state[1], inputs, targets, order, batch, rates),
        *(options["before"], options["decay"], options["sparsity"], options["code"]),
        *(options["tail"], errors, threads, isa),
    )
    return weights, errors


def oracle_train(network, weights, inputs, targets, order, batch, rates, penalties, code):
    """Adam as in the paper, in double precision."""
    decay, sparsity, tail = penalties
    w = weights.astype(np.float64)
    m, v = np.zeros_like(w), np.zeros_like(w)
    errors = []
    for k, rate in enumerate(rates):
        rows = order[k * batch : (k + 1) * batch]
        X, target = inputs[rows].astype(np.float64), targets[rows]
        after = oracle_forward(network, w, X)[1]
        error = after[-1] - target
        squares = np.sum(error**2, axis=1, keepdims=True)
        errors.append(np.sum(tail**2 * np.log(1 + squares / tail**2) if tail else squares))
        forgiven = error / (1 + squares / tail**2) if tail else error
        g = oracle_backward(network, w, X, 2 * forgiven / error.size)[0]
        if sparsity:  # the slope of the layers below the code, from that of the mean |code|
            below = Network(network.sizes[: code + 1], network.activations[:code])
            part = slice(0, network.offsets()[code - 1][2])
            h = after[code - 1]
            g[part] += oracle_backward(below, w[part], X, sparsity * np.sign(h) / h.size)[0]
        g += 2 * decay * network.decays() * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        t = k + 1
        w = w - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w, np.array(errors)


@each("tied", [False, True])
@each("penalties", [(0.0, 0.0, 0.0), (0.01, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 2.0)])
@each_isa
def test_steps_are_those_of_adam(isa, penalties, tied):
    decay, sparsity, tail = penalties
    network, weights, X = task((30, 13, 2, 13, 30), 90, tied=tied)
    targets = np.random.default_rng(5).standard_normal((90, 30))
    order, rates = np.random.default_rng(6).permutation(90), np.linspace(0.01, 0.001, 4)
    given = (network, weights, X, targets, order, 25, rates)
    found, errors = train(*given, isa=isa, decay=decay, sparsity=sparsity, code=2, tail=tail)
    expected, wanted = oracle_train(*given, penalties, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(errors, wanted, rtol=1e-9)


def test_float32_training_stays_near_that_in_double_precision():
    network, weights, X = task((50, 20, 3, 20, 50), 128, seed=2)
    order, rates = np.arange(128), np.full(8, 0.003)
    exact = train(network, weights, X, X, order, 16, rates)[1]
    single = X.astype(np.float32)
    errors = train(network, weights.astype(np.float32), single, single, order, 16, rates)[1]
    np.testing.assert_allclose(errors, exact, rtol=1e-4)


def a_training():
    network, weights, X = task((200, 90, 2, 90, 200), 256, np.float32)  # large enough for two
    order, rates = np.random.default_rng(0).permutation(256), np.full(8, 0.01)
    return network, weights, X, X, order, 32, rates


def test_threads_do_not_change_the_training(same_for_threads):
    same_for_threads(lambda threads: train(*a_training(), threads=threads), (2, 3, 16))


def test_trainings_in_several_threads_at_once_do_not_disturb_each_other():
    expected = train(*a_training(), threads=1)[0].tobytes()
    with ThreadPoolExecutor(5) as pool:  # more than there are cores: some wait for their crew
        found = pool.map(lambda threads: train(*a_training(), threads=threads), [1, 2, 2, 4, 2] * 4)
        assert {weights.tobytes() for weights, _ in found} == {expected}


def test_a_training_in_two_calls_is_the_same():
    network, weights, X = task((6, 4, 6), 40)
    order, rates = np.arange(40), np.full(4, 0.01)
    whole = train(network, weights, X, X, order, 10, rates)[0]
    halves, state = weights.copy(), np.zeros((2, network.n_weights))
    for k in (0, 2):
        _native.network_train(
            *network.described(),
            *(halves, state[0], state[1], X, X, order[10 * k : 10 * k + 20], 10, rates[k : k + 2]),
            *(k, 0.0, 0.0, 0, 0.0, np.empty(2), 1),
        )
    assert halves.tobytes() == whole.tobytes()


@each(
    "wrong",
    [
        {"sizes": np.array([3, 0, 3])},
        {"sizes": np.array([3, 2])},
        {"sizes": np.array([4, 2, 3])},
        {"activations": np.array([1, 5])},
        {"activations": np.array([-1, 0])},
        {"order": np.array([0, 1, 2, 3, 4, 6])},
        {"order": np.array([0, 1, 2, 3, 4, -1])},
        {"batch": 0},
        {"batch": 7},
        {"targets": np.zeros((6, 2))},
        {"targets": np.zeros((5, 3))},
        {"rates": np.zeros(2)},
        {"code": 3},
        {"steps_before": -1},
        {"weights": np.zeros(16)},
        {"threads": 0},
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    given = {
        "sizes": np.array([3, 2, 3]),
        "activations": np.array([1, 0]),
        "tied": False,
        "weights": np.zeros(17),
        "means": np.zeros(17),
        "squares": np.zeros(17),
        "inputs": np.zeros((6, 3)),
        "targets": np.zeros((6, 3)),
        "order": np.arange(6),
        "batch": 2,
        "rates": np.zeros(3),
        "steps_before": 0,
        "decay": 0.0,
        "sparsity": 0.0,
        "code": 1,
        "tail": 0.0,
        "errors": np.zeros(3),
        "threads": 1,
    }
    _native.network_train(**given)
    with pytest.raises(ValueError, match=r"network|layer|sizes|activation|threads"):
        _native.network_train(**given | wrong)


def test_a_tied_network_must_mirror_itself():
    rows, values = np.zeros((5, 3)), np.zeros(5 * 7)
    for sizes, named in [((3, 2, 5), "mirror"), ((3, 3), "even")]:
        network = Network(sizes, ("tanh",) * (len(sizes) - 1), tied=True)
        weights = np.zeros(network.n_weights)
        with pytest.raises(ValueError, match=named):
            _native.network_forward(*network.described(), weights, rows, 1, values, 1)

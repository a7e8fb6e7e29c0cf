"""Networks beside PyTorch and scikit-learn: the same layers, batches, epochs and learning rate.

"epoch" and "digits" time the training alone: 784-256-64-2-64-256-784 on MNIST and 64-32-2-32-64 on
digits, tanh, Adam, batches of 256 rows, PyTorch with 2 threads. "loss" is the mean squared error of
held-out rows after it. "first" is a new process: import, a network, one step. "--torch" compares
values and slopes for the same weights. "maps" prints the quality of the methods with their
defaults; "growth" prints times for more and more rows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main

import lowland
from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._engines.network.adam import Plan, mean_loss, train
from lowland._engines.network.layers import Network, backward, first_weights, forward, mirrored
from lowland.datasets import digits
from lowland.metrics import trustworthiness

BATCH = 256


def network(*encoder: int) -> Network:
    half = len(encoder) - 1
    return Network(mirrored(encoder), (*["tanh"] * (half - 1), "linear") * 2)


IMAGES, SMALL = network(784, 256, 64, 2), network(64, 32, 2)


def mnist(n: int = 70_000) -> np.ndarray:
    """Pixels from 0 to 1, minus the mean image."""
    X = np.load(DATA / "mnist.npz")["X"][:n].reshape(n, -1).astype(np.float32) / 255
    return np.ascontiguousarray(X - X.mean(axis=0))


def small_digits() -> np.ndarray:
    """Centered, with mean variance 1."""
    X = digits().X.astype(np.float32)
    X -= X.mean(axis=0)
    return np.ascontiguousarray(X / X.std())


def parts(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and every tenth row, which is held out."""
    held = np.arange(len(X)) % 10 == 9
    return X[~held], X[held]


# --- the same training three times --------------------------------------------------------------


def ours(net: Network, epochs: int, rate: float, X: np.ndarray) -> float:
    rows, held = parts(X)
    run = FitContext(np.random.default_rng(0), 2, Monitor())
    plan = Plan(epochs, BATCH, rate, schedule="constant")
    done = train(net, first_weights(net, run.rng), rows, rows, plan, run)
    return mean_loss(net, done.weights, held, held, 2)


def torch(net: Network, epochs: int, rate: float, X: np.ndarray) -> float:
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(2)
    rows, held = (torch.from_numpy(part) for part in parts(X))
    model = torch_model(net)
    adam = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        order = torch.randperm(len(rows))
        for begin in range(0, len(rows), BATCH):
            batch = rows[order[begin : begin + BATCH]]
            adam.zero_grad(set_to_none=True)
            torch.nn.functional.mse_loss(model(batch), batch).backward()
            adam.step()
    with torch.no_grad():
        return float(torch.nn.functional.mse_loss(model(held), held))


def torch_model(net: Network) -> Any:
    import torch

    layers: list[Any] = []
    for index, activation in enumerate(net.activations):
        layers.append(torch.nn.Linear(net.sizes[index], net.sizes[index + 1]))
        if activation != "linear":
            layers.append({"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[activation]())
    return torch.nn.Sequential(*layers)


def scikit_learn(net: Network, epochs: int, rate: float, X: np.ndarray) -> float:
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    rows, held = parts(X)
    model = MLPRegressor(
        hidden_layer_sizes=net.sizes[1:-1],
        activation="tanh",
        batch_size=BATCH,
        learning_rate_init=rate,
        max_iter=epochs,
        tol=0.0,
        n_iter_no_change=epochs + 1,
        alpha=0.0,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, rows)
    return float(np.mean((model.predict(held) - held) ** 2))


def training_case(
    name: str, net: Network, epochs: int, rate: float, load: Any, peers: dict[str, Any]
) -> Case:
    candidates = {"lowland": ours, **peers}
    return Case(
        name,
        load,
        {who: partial(work, net, epochs, rate) for who, work in candidates.items()},
        lambda X, loss: loss,
        "held-out loss",
    )


def same_numbers() -> None:
    """Values and slopes of PyTorch and of ours for the same weights, float64."""
    import torch

    rng = np.random.default_rng(0)
    for net in (IMAGES, SMALL, Network((20, 30, 3), ("relu", "linear"))):
        weights = first_weights(net, rng)
        X, target = (
            rng.standard_normal((50, net.sizes[0])),
            rng.standard_normal((50, net.sizes[-1])),
        )
        model = torch_model(net).double()
        with torch.no_grad():
            linear = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
            for layer, (W, b, _) in zip(linear, net.layers(weights), strict=True):
                layer.weight[...] = torch.from_numpy(W.T.copy())
                layer.bias[...] = torch.from_numpy(b)
        output = model(torch.from_numpy(X))
        ((output - torch.from_numpy(target)) ** 2).sum().backward()
        passed = forward(net, weights, X, 2)
        slopes = backward(net, weights, passed, 2 * (passed.output - target), 2).weights
        peer = [part for layer in linear for part in (layer.weight.grad.T, layer.bias.grad)]
        expected = np.concatenate([part.numpy().ravel() for part in peer])
        off = np.abs(passed.output - output.detach().numpy()).max()
        wrong = np.abs(slopes - expected).max() / np.abs(expected).max()
        print(f"{net.sizes}: values differ by {off:.1e}, slopes by {wrong:.1e} of the largest")


FIRST = {
    "lowland": "import numpy as np, lowland\n"
    "lowland.Autoencoder(hidden=[32], solver='adam', max_iter=1).fit(np.random.rand(256, 64))",
    "torch": "import torch\nm = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(),"
    " torch.nn.Linear(32, 2), torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 64))\n"
    "a = torch.optim.Adam(m.parameters()); x = torch.rand(256, 64)\n"
    "((m(x) - x) ** 2).mean().backward(); a.step()",
    "scikit-learn": "import numpy as np\nfrom sklearn.neural_network import MLPRegressor\n"
    "x = np.random.rand(256, 64); import warnings; warnings.simplefilter('ignore')\n"
    "MLPRegressor(hidden_layer_sizes=(32, 2, 32), batch_size=256, max_iter=1).fit(x, x)",
}


def first() -> None:
    """Import and first step in a new process, best of 5."""
    for name, code in FIRST.items():
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            taken.append(time.perf_counter() - start)
        print(f"first step, {name}: {min(taken):.2f} s", flush=True)


# --- the methods --------------------------------------------------------------------------------


def maps() -> None:
    """Times and quality of the defaults, on fitted and on held-out rows."""
    tables = {"digits": digits().X, "mnist 10 000": np.asarray(mnist(10_000))}
    methods = {
        "PCA": lowland.PCA(2),
        "Autoencoder": lowland.Autoencoder(random_state=0),
        "NonlinearPCA": lowland.NonlinearPCA(random_state=0),
        "ParametricTSNE": lowland.ParametricTSNE(random_state=0),
        "TSNE": lowland.TSNE(random_state=0),
    }
    for table, X in tables.items():
        held = np.random.default_rng(0).permutation(len(X)) < len(X) // 5
        for name, method in methods.items():
            start = time.perf_counter()
            Y = method.fit_transform(X[~held])
            taken = time.perf_counter() - start
            new = method.transform(X[held])
            print(
                f"{table}, {name}: {taken:.2f} s, trust {float(trustworthiness(X[~held], Y)):.3f}, "
                f"held out {float(trustworthiness(X[held], new)):.3f}",
                flush=True,
            )


def helix() -> None:
    """One value missing in each row of a helix: squared error of the imputed values."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 400)
    X = np.column_stack([np.sin(np.pi * t), np.cos(np.pi * t), t])
    X += 0.05 * rng.standard_normal(X.shape)
    gaps = X.copy()
    gaps[np.arange(len(X)), rng.integers(0, 3, len(X))] = np.nan
    missing = np.isnan(gaps)
    start = time.perf_counter()
    model = lowland.NonlinearPCA(1, variant="inverse", random_state=0).fit(gaps)
    taken = time.perf_counter() - start
    filled = model.inverse_transform(model.transform(gaps))
    mean = np.where(missing, np.nanmean(gaps, axis=0), gaps)
    linear = mean
    for _ in range(100):  # PCA whose gaps are filled again and again
        pca = lowland.PCA(1).fit(linear)
        linear = np.where(missing, pca.inverse_transform(pca.transform(linear)), gaps)
    for name, guess in {"NonlinearPCA": filled, "PCA": linear, "means": mean}.items():
        print(f"helix, {name}: squared error {np.mean((guess - X)[missing] ** 2):.4f}")
    print(f"helix: {taken:.2f} s")


def wave(n: int, p: int) -> np.ndarray:
    """A bent surface in p columns, with noise."""
    rng = np.random.default_rng(1)
    s, t = rng.uniform(-1, 1, (2, n))
    X = np.column_stack([np.sin((j % 4 + 1) * s + j) + np.cos(j * t) for j in range(p)])
    return (X + 0.1 * rng.standard_normal((n, p))).astype(np.float32)


def growth() -> None:
    """Times for more and more rows of 10 columns, and for wide tables."""
    methods = {
        "Autoencoder": lowland.Autoencoder(random_state=0),
        "NonlinearPCA": lowland.NonlinearPCA(random_state=0),
        "NonlinearPCA inverse": lowland.NonlinearPCA(variant="inverse", random_state=0),
        "ParametricTSNE": lowland.ParametricTSNE(random_state=0),
    }
    shapes = [(n, 10) for n in (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000)]
    shapes += [(n, 2) for n in (1000, 10_000)] + [(2000, 200), (2000, 2000), (500, 20_000)]
    for n, p in shapes:
        X = wave(n, p)
        for name, method in methods.items():
            start = time.perf_counter()
            method.fit(X)
            taken = time.perf_counter() - start
            guess = type(method).estimate(n, p).seconds
            print(f"{name}: {n} x {p}: {taken:.2f} s (estimate {guess:.2f} s)", flush=True)


PEERS = {"torch": torch, "scikit-learn": scikit_learn}
CASES = [
    training_case("epoch", IMAGES, 1, 1e-3, mnist, {"torch": torch}),
    training_case("10-epochs", IMAGES, 10, 1e-3, mnist, {"torch": torch}),
    training_case("digits", SMALL, 100, 5e-3, small_digits, PEERS),
]


if __name__ == "__main__":
    others = {
        "--torch": same_numbers,
        "--first": first,
        "--maps": maps,
        "--helix": helix,
        "--growth": growth,
    }
    chosen = [work for option, work in others.items() if option in sys.argv]
    for work in chosen:
        work()
    if not chosen:
        main(CASES, repeats=3)
    if len(sys.argv) == 1:
        for work in others.values():
            work()

"""Latent variable models beside GPy and pyppca.

"exact-300" and "exact-500": GPLVM of digits, two axes, 100 iterations from principal components,
with the log-likelihood that is reached. "sparse": 10 000 rows of 50 columns. "gaps" and
"many-gaps": probabilistic PCA of digits and of MNIST with 10 % of the values missing; the quality
is the root mean squared error of the missing values. "--maps" prints errors and quality of the
defaults, "--same" the likelihood at the same parameters as GPy's, "--growth" times for more and
more rows.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main

import lowland
from lowland.datasets import digits
from lowland.metrics import trustworthiness

# --- the same model twice -------------------------------------------------------------------------


def some_digits(n: int) -> np.ndarray:
    """Gray values from 0 to 1, centered."""
    X = digits().X[:n] / 16
    return X - X.mean(axis=0)


def ours(max_iter: int, X: np.ndarray) -> float:
    model = lowland.GPLVM(2, inference="exact", max_iter=max_iter, tol=0.0, random_state=0)
    return float(model.fit(X).log_likelihood_)


def gpy(max_iter: int, X: np.ndarray) -> float:
    import GPy

    model = GPy.models.GPLVM(X, 2)  # principal components, rbf with a length per axis, and a bias
    model.optimize(max_iters=max_iter)
    return float(model.log_likelihood())


def same_value() -> None:
    """The log-likelihood and its slope by the places at the same parameters."""
    import GPy

    from lowland._engines.gaussian_processes.covariance import Covariance
    from lowland._engines.gaussian_processes.exact import log_likelihood

    X, Y = np.random.default_rng(0).standard_normal((60, 2)), some_digits(60)
    covariance = Covariance("rbf", 2)
    theta = covariance.vector(variance=0.7, lengths=np.array([0.8, 1.9]), bias=0.05)
    found = log_likelihood(covariance, theta, float(np.log(0.02)), X, Y)
    kernel = GPy.kern.RBF(2, variance=0.7, lengthscale=[0.8, 1.9], ARD=True)
    peer = GPy.models.GPLVM(Y, 2, X=X, kernel=kernel + GPy.kern.Bias(2, 0.05))
    peer.likelihood.variance = 0.02 - 1e-8  # GPy adds this to the noise
    off = abs(found.value - float(peer.log_likelihood()))
    wrong = np.abs(found.X - np.asarray(peer.X.gradient)).max() / np.abs(found.X).max()
    print(
        f"value {found.value:.6f}, GPy differs by {off:.1e}, slopes by {wrong:.1e} of the largest"
    )


# --- missing values -------------------------------------------------------------------------------


def with_gaps(X: np.ndarray, share: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    gaps = np.random.default_rng(0).random(X.shape) < share
    gaps[gaps.all(axis=1), 0] = False  # a row needs a value
    return X, np.where(gaps, np.nan, X)


def mnist(n: int = 70_000) -> np.ndarray:
    return np.load(DATA / "mnist.npz")["X"][:n].reshape(n, -1).astype(np.float32) / 255


def filled(q: int, data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return lowland.PPCA(q, random_state=0).fit(data[1]).impute(data[1])


def pyppca(q: int, data: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    from pyppca import ppca

    np.random.seed(0)  # noqa: NPY002  its start is random and takes no generator
    given = data[1].copy()
    return np.where(np.isnan(given), ppca(given, q, False)[4], given)


def error_of_gaps(data: tuple[np.ndarray, np.ndarray], guess: np.ndarray) -> float:
    gaps = np.isnan(data[1])
    return float(np.sqrt(np.mean((np.asarray(guess)[gaps] - data[0][gaps]) ** 2)))


# --- maps -----------------------------------------------------------------------------------------


def principal(n: int, q: int = 50) -> np.ndarray:
    return lowland.PCA(q).fit_transform(mnist(n)).astype(np.float64)


def sparse(X: np.ndarray) -> np.ndarray:
    return lowland.GPLVM(2, random_state=0).fit_transform(X)


def oil() -> tuple[np.ndarray, np.ndarray]:
    data = np.load(DATA / "oil_flow.npz")
    train = data["split"] == 0
    return data["X"][train], data["y"][train]


def wrong_neighbors(Y: np.ndarray, labels: np.ndarray) -> int:
    """Rows whose nearest other row in the map has another label."""
    squares = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    return int(np.sum(labels[np.argmin(squares, axis=1)] != labels))


METHODS: dict[str, Any] = {
    "PCA": lowland.PCA(2),
    "PPCA": lowland.PPCA(2),
    "GPLVM": lowland.GPLVM(random_state=0),
    "BackConstrainedGPLVM": lowland.BackConstrainedGPLVM(random_state=0),
    "BayesianGPLVM": lowland.BayesianGPLVM(random_state=0),
    "GTM": lowland.GTM(),
    "TSNE": lowland.TSNE(random_state=0),
}


def maps() -> None:
    """Errors in the map of oil flow; quality of fitted and of held-out rows elsewhere."""
    X, labels = oil()
    for name, method in METHODS.items():
        start = time.perf_counter()
        Y = method.fit_transform(X)
        taken = time.perf_counter() - start
        print(
            f"oil flow, {name}: {wrong_neighbors(Y, labels)} of 1 000 ({taken:.1f} s)", flush=True
        )
    for table, X in {"digits": digits().X, "mnist 3 000": mnist(3000)}.items():
        held = np.random.default_rng(0).permutation(len(X)) < len(X) // 5
        for name, method in METHODS.items():
            start = time.perf_counter()
            Y = method.fit_transform(X[~held])
            taken = time.perf_counter() - start
            new = method.transform(X[held])
            print(
                f"{table}, {name}: {taken:.2f} s, trust {float(trustworthiness(X[~held], Y)):.3f}, "
                f"held out {float(trustworthiness(X[held], new)):.3f}",
                flush=True,
            )


def wave(n: int, p: int) -> np.ndarray:
    """A bent surface in p columns, with noise."""
    rng = np.random.default_rng(1)
    s, t = rng.uniform(-1, 1, (2, n))
    X = np.column_stack([np.sin((j % 4 + 1) * s + j) + np.cos(j * t) for j in range(p)])
    return X + 0.1 * rng.standard_normal((n, p))


def growth() -> None:
    """Times of fits for more and more rows of 10 columns, and for wide tables."""
    shapes = [(n, 10) for n in (100, 300, 1000, 1500, 2000, 2500, 3000, 5000, 9000, 10_000)]
    shapes += [(n, 10) for n in (30_000, 100_000, 1_000_000)]
    shapes += [(1000, 2), (2000, 200), (2000, 2000), (500, 20_000)]
    for n, p in shapes:
        X = wave(n, p)
        gaps = with_gaps(X)[1]
        for name, method in METHODS.items():
            if name in ("PCA", "GTM", "TSNE"):
                continue
            start = time.perf_counter()
            method.fit(gaps if name == "PPCA" else X)
            taken = time.perf_counter() - start
            guess = type(method).estimate(n, p).seconds
            print(f"{name}: {n} x {p}: {taken:.2f} s (estimate {guess:.2f} s)", flush=True)


def likelihood_case(n: int) -> Case:
    return Case(
        f"exact-{n}",
        partial(some_digits, n),
        {"lowland": partial(ours, 100), "GPy": partial(gpy, 100)},
        lambda X, value: value,
        "log-likelihood",
    )


CASES = [
    likelihood_case(300),
    likelihood_case(500),
    Case(
        "sparse",
        partial(principal, 10_000),
        {"lowland": sparse},
        lambda X, Y: float(trustworthiness(X, Y)),
        "trustworthiness",
    ),
    Case(
        "gaps",
        lambda: with_gaps(digits().X / 16),
        {"lowland": partial(filled, 10), "pyppca": partial(pyppca, 10)},
        error_of_gaps,
        "error",
    ),
    Case(
        "many-gaps",
        lambda: with_gaps(mnist()),
        {"lowland": partial(filled, 2)},
        error_of_gaps,
        "error",
    ),
]


if __name__ == "__main__":
    others = {"--same": same_value, "--maps": maps, "--growth": growth}
    chosen = [work for option, work in others.items() if option in sys.argv]
    for work in chosen:
        work()
    if not chosen:
        main(CASES, repeats=5, patience=60.0)
    if len(sys.argv) == 1:
        for work in others.values():
            work()

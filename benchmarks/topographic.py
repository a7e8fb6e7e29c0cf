"""Grids and curves laid through the data, beside the packages that have them.

SOM: the same number of epochs, and the same first and last radius (that of minisom falls to 1).
"QE" is the mean distance of a row to its nearest unit, "TE" the share of rows whose two nearest
units are not neighbors on the square grid. minisom takes minutes on all of MNIST: it gets 7 000
rows. Principal curves run on a noisy 3/4 circle with known arc lengths and on many rows; "msd" is
the mean squared distance to the curve. GTM: "log-likelihood" is computed by one formula from the
nodes and the noise that each package has found. "oil" counts rows of oil flow whose nearest
neighbor in the map has another class. "growth" prints times for more and more rows.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from functools import partial
from typing import Any

import numpy as np
from _harness import DATA, Case, main

import lowland
from lowland._engines.grids.nearest_units import nearest_units
from lowland.datasets import digits
from lowland.metrics import trustworthiness

EPOCHS, LAST_RADIUS = 20, 0.7


def mnist(n: int) -> np.ndarray:
    X = np.load(DATA / "mnist.npz")["X"][:n].astype(np.float32)
    return np.ascontiguousarray(lowland.PCA(50).fit_transform(X))


# --- self-organizing maps -----------------------------------------------------------------------


def our_som(side: int, X: np.ndarray) -> np.ndarray:
    radius = [side / 2, LAST_RADIUS]
    som = lowland.SOM(sides=[side, side], grid="rectangle", radius=radius, max_iter=EPOCHS)
    return som.fit(X).codebook_


def xpysom(side: int, X: np.ndarray) -> np.ndarray:
    with contextlib.redirect_stdout(None):
        from xpysom import XPySom

        radii = {"sigma": side / 2, "sigmaN": LAST_RADIUS, "std_coeff": 1.0}
        som = XPySom(side, side, X.shape[1], **radii, random_seed=0)
        som.train(X, EPOCHS)
    return np.asarray(som.get_weights()).reshape(side * side, -1)


def minisom(side: int, X: np.ndarray) -> np.ndarray:
    from minisom import MiniSom

    decay = {"sigma": side / 2, "sigma_decay_function": "linear_decay_to_one"}
    som = MiniSom(side, side, X.shape[1], random_seed=0, **decay)
    som.pca_weights_init(X[:5000])
    som.train_batch_offline(X, EPOCHS)
    return np.asarray(som.get_weights()).reshape(side * side, -1)


def of_codebook(side: int, X: np.ndarray, codebook: np.ndarray) -> dict[str, float]:
    best, second = nearest_units(X, codebook, 2, 2).T
    off = X - codebook[best].astype(X.dtype)
    apart = np.abs(best // side - second // side), np.abs(best % side - second % side)
    return {
        "QE": float(np.sqrt((off.astype(np.float64) ** 2).sum(axis=1)).mean()),
        "TE": float((np.maximum(*apart) > 1).mean()),
    }


def som_case(name: str, side: int, load: Any, peers: dict[str, Any]) -> Case:
    candidates = {"lowland": our_som, **peers}
    return Case(
        name,
        load,
        {who: partial(work, side) for who, work in candidates.items()},
        partial(of_codebook, side),
        "QE TE",
    )


# --- principal curves ---------------------------------------------------------------------------


def three_quarters(n: int = 1000) -> np.ndarray:
    """A noisy 3/4 circle, and beside it the angle."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 1.5 * np.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.standard_normal((n, 2))
    return np.column_stack([X, angle])


def wave(n: int, p: int = 10) -> np.ndarray:
    """A bent curve in p columns, with noise, and beside it its parameter."""
    rng = np.random.default_rng(1)
    t = rng.uniform(-1, 1, n)
    X = np.column_stack([np.sin((j % 4 + 1) * t + j) for j in range(p)])
    return np.column_stack([X + 0.1 * rng.standard_normal((n, p)), t])


def our_curve(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X = data[:, :-1]
    model = lowland.PrincipalCurve(random_state=0).fit(X)
    arc = model.transform(X)
    return arc[:, 0], model.inverse_transform(arc)


def pcurvepy2(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import pcurvepy2

    X = data[:, :-1]
    curve = pcurvepy2.PrincipalCurve(k=3)
    with contextlib.redirect_stdout(None):
        curve.fit(X)
    return np.asarray(curve.pseudotimes_interp), np.asarray(curve.points_interp)


def of_curve(data: np.ndarray, found: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    arc, points = found
    X, truth = data[:, :-1], data[:, -1]
    return {
        "correlation": float(abs(np.corrcoef(arc, truth)[0, 1])),
        "msd": float(((X - points) ** 2).sum(axis=1).mean()),
    }


# --- elastic maps -------------------------------------------------------------------------------


def our_elastic(X: np.ndarray) -> lowland.ElasticMap:
    return lowland.ElasticMap(n_nodes=[20, 20], random_state=0).fit(X)


def our_elastic_curve(X: np.ndarray) -> lowland.ElasticMap:
    return lowland.ElasticMap(1, n_nodes=50, random_state=0).fit(X)


def elpigraph(X: np.ndarray) -> Any:
    import elpigraph as package

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        return package.computeElasticPrincipalCurve(X, NumNodes=50)[0]


def of_elastic(X: np.ndarray, model: Any) -> dict[str, float]:
    """The mean squared distance to the nearest node: all that both have in common."""
    nodes = model["NodePositions"] if isinstance(model, dict) else model.nodes_
    nearest = nearest_units(X, np.asarray(nodes), 2)[:, 0]
    return {"msd to nodes": float(((X - nodes[nearest]) ** 2).sum(axis=1).mean())}


# --- generative topographic mapping -------------------------------------------------------------


def standardized_digits() -> np.ndarray:
    X = digits().X
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def our_gtm(X: np.ndarray) -> tuple[np.ndarray, float]:
    """With the basis of ugtm, whose width is 0.55 steps; it ends by its own rule."""
    return _fitted_gtm(lowland.GTM(n_nodes=16, n_basis=4, width=0.55, alpha=0.1), X)


def our_gtm_200(X: np.ndarray) -> tuple[np.ndarray, float]:
    same = {"n_nodes": 16, "n_basis": 4, "width": 0.55, "alpha": 0.1}
    return _fitted_gtm(lowland.GTM(**same, max_iter=200, tol=0.0), X)


def dcekit(X: np.ndarray) -> tuple[np.ndarray, float]:
    from dcekit.generative_model import GTM

    model = GTM([16, 16], [4, 4], 0.5, 0.1, 200, display_flag=False)
    model.fit(X)
    ones = np.ones((len(model.phi_of_map_rbf_grids), 1))
    nodes = np.hstack([model.phi_of_map_rbf_grids, ones]) @ np.vstack([model.W, model.bias])
    return nodes, 1 / model.beta


def ugtm(X: np.ndarray) -> tuple[np.ndarray, float]:
    import ugtm as package

    found = package.runGTM(X, k=16, m=4, s=0.3, regul=0.1, niter=200)
    return np.asarray(found.matY).T, float(found.betaInv)


def of_nodes(X: np.ndarray, model: tuple[np.ndarray, float]) -> dict[str, float]:
    """Mean log-likelihood of a row under equal Gaussians around the nodes."""
    nodes, variance = model
    p = X.shape[1]
    total = 0.0
    for rows in np.array_split(X, max(1, len(X) // 2000)):
        D2 = (rows**2).sum(axis=1)[:, None] - 2 * rows @ nodes.T + (nodes**2).sum(axis=1)
        logs = -0.5 * D2 / variance
        top = logs.max(axis=1)
        total += float((top + np.log(np.exp(logs - top[:, None]).mean(axis=1))).sum())
    return {"log-likelihood": total / len(X) - 0.5 * p * float(np.log(2 * np.pi * variance))}


# --- maps ---------------------------------------------------------------------------------------


def oil() -> None:
    """Rows of oil flow whose nearest neighbor in the map has another class."""
    with np.load(DATA / "oil_flow.npz") as stored:
        X, y = stored["X"][stored["split"] == 0], stored["y"][stored["split"] == 0]
    for name, method in {
        "PCA": lowland.PCA(2),
        "SOM": lowland.SOM(),
        "ElasticMap": lowland.ElasticMap(random_state=0),
        "GTM": lowland.GTM(),
        "our TSNE": lowland.TSNE(random_state=0),
    }.items():
        start = time.perf_counter()
        Y = method.fit_transform(X)
        taken = time.perf_counter() - start
        D = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
        np.fill_diagonal(D, np.inf)
        wrong = int((y[D.argmin(axis=1)] != y).sum())
        trust = float(trustworthiness(X, Y))
        print(f"oil flow, {name}: {wrong} errors, trust {trust:.3f}, {taken:.2f} s", flush=True)


def growth() -> None:
    """Times for more and more rows of 10 columns, and for wide tables."""
    methods = {
        "SOM": lowland.SOM(),
        "PrincipalCurve": lowland.PrincipalCurve(random_state=0),
        "ElasticMap": lowland.ElasticMap(random_state=0),
        "GTM": lowland.GTM(),
    }
    shapes = [(n, 10) for n in (100, 1000, 10_000, 100_000, 1_000_000)]
    shapes += [(n, 2) for n in (1000, 10_000)] + [(2000, 200), (2000, 2000), (500, 20_000)]
    for n, p in shapes:
        X = wave(n, p)[:, :-1].astype(np.float32)
        for name, method in methods.items():
            start = time.perf_counter()
            method.fit(X)
            taken = time.perf_counter() - start
            guess = type(method).estimate(n, p).seconds
            print(f"{name}: {n} x {p}: {taken:.2f} s (estimate {guess:.2f} s)", flush=True)


CASES = [
    som_case("som-digits", 15, lambda: digits().X, {"xpysom": xpysom, "minisom": minisom}),
    som_case("som-mnist-7000", 30, partial(mnist, 7000), {"xpysom": xpysom, "minisom": minisom}),
    som_case("som-mnist", 30, partial(mnist, 70_000), {"xpysom": xpysom}),
    Case(
        "curve-3/4-circle",
        three_quarters,
        {"lowland": our_curve, "pcurvepy2": pcurvepy2},
        of_curve,
        "correlation msd",
    ),
    Case("curve-100000", partial(wave, 100_000), {"lowland": our_curve}, of_curve, "correlation"),
    Case(
        "elastic-curve",
        lambda: three_quarters()[:, :2],
        {"lowland": our_elastic_curve, "elpigraph": elpigraph},
        of_elastic,
        "msd to nodes",
    ),
    Case("elastic-mnist", partial(mnist, 70_000), {"lowland": our_elastic}, of_elastic, "msd"),
    Case(
        "gtm-digits",
        standardized_digits,
        {"lowland": our_gtm, "lowland, 200 steps": our_gtm_200, "ugtm": ugtm, "dcekit": dcekit},
        of_nodes,
        "log-likelihood",
    ),
    Case(
        "gtm-mnist",
        partial(mnist, 70_000),
        {"lowland": lambda X: _fitted_gtm(lowland.GTM(), X)},
        of_nodes,
        "log-likelihood",
    ),
]


def _fitted_gtm(model: lowland.GTM, X: np.ndarray) -> tuple[np.ndarray, float]:
    model.fit(X)
    return model.inverse_transform(model.nodes_), model.noise_**2


if __name__ == "__main__":
    if "--growth" in sys.argv:
        growth()
    elif "--oil" in sys.argv:
        oil()
    else:
        main(CASES, repeats=3)
        if len(sys.argv) == 1:
            oil()
            growth()

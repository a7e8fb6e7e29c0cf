"""Are the defaults good on every table? Rules for one parameter side by side, on many tables.

Each section prints one line per table: trustworthiness and, where two numbers stand together,
neighbor recall, both of 12 neighbors. The last lines are the mean over the tables, and the worst
difference to the best rule of the same table. Peers that are not installed are left out.

    python benchmarks/defaults.py kernel_pca --rows 800
    python benchmarks/defaults.py laplacian_eigenmaps modified_lle mds tsne copies
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.manifold
from _tables import tables
from scipy.spatial.distance import pdist

import lowland
from lowland.metrics import neighbor_recall, trustworthiness
from lowland.neighbors import knn_graph

Rule = Callable[[np.ndarray], np.ndarray]

K = 12


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def kept(X: np.ndarray, Y: np.ndarray) -> list[float]:
    return [
        float(trustworthiness(X, Y, n_neighbors=K)),
        float(neighbor_recall(X, Y, n_neighbors=K)),
    ]


def compare(rules: dict[str, Rule], rows: int) -> None:
    """One line per table, and the mean and the worst loss of every rule."""
    print(f"{'':24}" + "".join(f"{name:>20}" for name in rules))
    found = []
    for name, X in tables(rows):
        line = [kept(X, rule(X)) for rule in rules.values()]
        found.append(line)
        print(f"{name:24}" + "".join(f"{t:14.3f} {r:5.3f}" for t, r in line), flush=True)
    A = np.array(found)
    summaries = {
        "mean": A.mean(axis=0),
        "worst loss": (A - A.max(axis=1, keepdims=True)).min(axis=0),
    }
    for title, line in summaries.items():
        print(f"{title:24}" + "".join(f"{t:14.3f} {r:5.3f}" for t, r in line))


def kernel_pca(rows: int) -> None:
    """The scale of the rbf kernel."""

    def rule(gamma: Any) -> Rule:
        def fitted(X: np.ndarray) -> np.ndarray:
            value = gamma(X) if callable(gamma) else gamma
            return lowland.KernelPCA(2, gamma=value, random_state=0).fit_transform(X)

        return fitted

    compare(
        {
            "default": rule(None),
            "median": rule("median"),
            "1/p": rule("1/p"),
            "1/variance": rule(lambda X: 1 / X.var(axis=0).sum()),
            "4 / s^2": rule(lambda X: 4 / np.median(pdist(X[:1000])) ** 2),
        },
        rows,
    )
    print("\ntwo rings: share of the rows on their side of a line, by radius of the inner ring")
    for radius in (0.2, 0.25, 0.3, 0.35, 0.4):
        line = []
        for gamma in (None, "median", "1/p"):
            rng = np.random.default_rng(0)
            inner, angle = np.arange(600) % 2 == 1, 2 * np.pi * rng.random(600)
            circle = np.column_stack([np.cos(angle), np.sin(angle)])
            X = np.where(inner, radius, 1)[:, None] * circle + 0.05 * rng.standard_normal((600, 2))
            Y = lowland.KernelPCA(2, gamma=gamma).fit_transform(X)
            design = np.column_stack([Y, np.ones(600)])
            side = design @ np.linalg.lstsq(design, 2.0 * inner - 1, rcond=None)[0] > 0
            line.append(f"gamma={gamma} {(side == inner).mean():.3f}")
        print(f"{radius:5}  " + "   ".join(line))


def laplacian_eigenmaps(rows: int) -> None:
    """The weights of the edges."""

    def rule(**options: Any) -> Rule:
        return lambda X: lowland.LaplacianEigenmaps(2, random_state=0, **options).fit_transform(X)

    def scikit_learn(X: np.ndarray) -> np.ndarray:  # there a row is one of its own neighbors
        peer = sklearn.manifold.SpectralEmbedding(
            2, affinity="nearest_neighbors", n_neighbors=11, random_state=0
        )
        return peer.fit_transform(X)

    compare(
        {
            "default, local": rule(),
            "heat, median": rule(bandwidth="median"),
            "binary": rule(weights="binary"),
            "scikit-learn": scikit_learn,
        },
        rows,
    )


def modified_lle(rows: int) -> None:
    """ModifiedLLE beside scikit-learn, whose number of weights per row has no upper bound."""

    def scikit_learn(X: np.ndarray) -> np.ndarray:
        peer = sklearn.manifold.LocallyLinearEmbedding(
            n_neighbors=12, method="modified", eigen_solver="dense", random_state=0
        )
        return peer.fit_transform(X)

    compare({"lowland": lowland.ModifiedLLE(2).fit_transform, "scikit-learn": scikit_learn}, rows)


def mds(rows: int) -> None:
    """Raw stress of MDS above that of s_gd2 (the best of three seeds), in percent."""
    if not installed("s_gd2"):
        print("s_gd2 is not installed")
        return
    import s_gd2

    for name, X in tables(rows):
        d = pdist(X)
        ours = lowland.MDS(2, random_state=0).fit(X)
        theirs = []
        for seed in range(3):
            Y = s_gd2.mds_direct(len(X), d, w=np.ones(len(d)), random_seed=seed)
            theirs.append(float(((pdist(Y) - d) ** 2).sum()))
        print(f"{name:24}{100 * (ours.stress_ / min(theirs) - 1):+9.4f} %", flush=True)


def tsne(rows: int) -> None:
    """TSNE beside openTSNE, three seeds each: trustworthiness, recall, KL divergence."""
    seeds = range(3)
    for name, X in tables(rows):
        if len(X) < 500:
            continue
        line = []
        for seed in seeds:
            model = lowland.TSNE(2, random_state=seed).fit(X)
            line.append([*kept(X, model.embedding_), model.kl_divergence_])
        text = "lowland {:.4f} {:.4f} {:.4f}".format(*np.mean(line, axis=0))
        if installed("openTSNE"):
            import openTSNE

            line = []
            for seed in seeds:
                peer = openTSNE.TSNE(random_state=seed).fit(X)
                line.append([*kept(X, np.asarray(peer)), peer.kl_divergence])
            text += "   openTSNE {:.4f} {:.4f} {:.4f}".format(*np.mean(line, axis=0))
        print(f"{name:24}{text}", flush=True)


def copies(rows: int) -> None:
    """CPU seconds of a neighbor search with copies of rows, and with a jitter instead."""
    rng = np.random.default_rng(0)
    cases: dict[str, np.ndarray] = {}
    for share in (0.0, 0.02, 0.05, 0.23, 0.5, 0.9, 0.99):
        rest = rng.standard_normal((max(100, round(25_000 * (1 - share))), 18))
        cases[f"{share:.0%} of 25000 x 18"] = rest[rng.integers(0, len(rest), 25_000)]
        cases[f"{share:.0%} of 25000 x 18"][: len(rest)] = rest
    cases["survey 100000 x 5"] = rng.integers(1, 6, (100_000, 5)).astype(float)
    cases["yes or no 20000 x 12"] = rng.integers(0, 2, (20_000, 12)).astype(float)
    cases["rounded 20000 x 3"] = np.round(rng.standard_normal((20_000, 3)), 1)
    cases["rounded 20000 x 10"] = np.round(rng.standard_normal((20_000, 10)))
    cases["one-hot 20000 x 40"] = np.eye(40)[rng.integers(0, 40, 20_000)]
    for name, X in cases.items():
        line = []
        for k in (15, 90):
            for rows_of in (X, X + 1e-3 * rng.standard_normal(X.shape)):
                start = time.process_time()
                knn_graph(rows_of, k)
                line.append(time.process_time() - start)
        text = "k=15 {:6.2f} jittered {:6.2f}   k=90 {:6.2f} jittered {:6.2f}".format(*line)
        print(f"{name:24}{text}", flush=True)


SECTIONS = (kernel_pca, laplacian_eigenmaps, modified_lle, mds, tsne, copies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("section", nargs="*", help=", ".join(f.__name__ for f in SECTIONS))
    parser.add_argument("--rows", type=int, default=1000, help="most rows of a table")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for section in SECTIONS:
        if not options.section or section.__name__ in options.section:
            print(f"\n{section.__name__}: {(section.__doc__ or '').splitlines()[0]}")
            section(options.rows)


if __name__ == "__main__":
    main()

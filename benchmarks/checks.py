"""What the checks at the door cost, beside the work that they protect.

The time of the check is compared with that of the fit, the search or the reading without it; the
peer of scipy's own ``check_format`` (full) looks at the same arrays.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse

import lowland
from lowland._base.models import codec
from lowland._base.sparse_input import compressed_rows
from lowland._base.threads import limit_blas
from lowland.neighbors import NeighborGraph, knn_graph

REPEATS = 5


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The best of several runs."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def show(what: str, check: float, work: float, beside: str) -> None:
    print(f"{what:42} {check * 1e3:10.3f} ms   {beside}: {work * 1e3:10.1f} ms")


def sparse() -> None:
    for n, p, share in ((1000, 100, 0.1), (70_000, 784, 0.19), (200_000, 5_000, 0.01)):
        rng = np.random.default_rng(0)
        X = scipy.sparse.random(n, p, share, format="csr", random_state=rng)
        what = f"sparse {n} x {p}, {X.nnz} stored"
        fit = seconds(lambda X=X: lowland.PCA(2, random_state=0).fit(X), repeats=1)
        show(what, seconds(lambda X=X: compressed_rows(X)), fit, "PCA")
        peer = seconds(lambda X=X: X.check_format(full_check=True))
        print(f"{'':42} {peer * 1e3:10.3f} ms   by check_format of scipy, which believes its flags")


def graphs() -> None:
    for n, k in ((1000, 15), (20_000, 90), (200_000, 15)):
        X = np.random.default_rng(0).standard_normal((n, 10))
        graph = knn_graph(X, k)
        check = seconds(lambda g=graph: NeighborGraph(g.indices, g.distances, g.n_points))
        search = seconds(lambda X=X, k=k: knn_graph(X, k), repeats=1)
        show(f"neighbor graph {n} x {k}", check, search, "search")


def models() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lowland"
        for n in (500, 5000):
            X = np.random.default_rng(0).standard_normal((n, 20))
            for method in (lowland.PCA, lowland.Isomap, lowland.TSNE):
                quick = {"max_iter": 10} if "max_iter" in method.parameters() else {}
                method(2, random_state=0, **quick).fit(X).save(path)
                whole = seconds(lambda: lowland.load(path))
                reading = seconds(lambda: codec.read_model(path))
                what = f"load {method.__name__} of {n} rows"
                show(what, whole - reading, reading, "reading alone")


def threads() -> None:
    def bounded() -> None:
        for _ in range(1000):
            with limit_blas(1):
                pass

    print(f"{'bound on BLAS, one block':42} {seconds(bounded):10.3f} ms")


if __name__ == "__main__":
    for part in (sparse, graphs, models, threads):
        part()

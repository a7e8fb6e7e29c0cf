"""The cost that engines publish beside the time that they take: ratios should be within 0.5 to 2.

    python benchmarks/engine_costs.py

CPU time of one thread is measured, because it is reproducible on a busy machine; the estimates
are for two cores, so threaded engines are expected to need about 1.8 times the estimate.
"""

# ruff: noqa: B023 (the functions are called before the loop goes on)
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._base.traits import Estimate
from lowland._engines.kernels.kernel_operators import (
    Kernel,
    kernel_matrix,
    kernel_matrix_cost,
    kernel_product_cost,
)
from lowland._engines.linalg import eigen, principal_axes, products
from lowland._engines.linalg.moments import moments, moments_cost
from lowland._engines.linalg.principal_axes import orthonormal_basis, orthonormal_basis_cost
from lowland._engines.stress import classical_scaling
from lowland._engines.stress.majorization import majorization_cost, majorize
from lowland._engines.stress.objective import AllPairs, ListedPairs

TWO_CORES = 1.8  # speed of two threads relative to one
monitor = Monitor()


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def compare(name: str, work: Callable[[], Any], cost: Estimate, threaded: bool = True) -> None:
    best = np.inf
    for _ in range(2):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    expected = cost.seconds * (TWO_CORES if threaded else 1.0)
    print(f"{name:44s} {1e3 * best:9.1f} ms, estimate x {expected / best:5.2f}", flush=True)


def linear_algebra() -> None:
    for n, p in ((50_000, 50), (20_000, 400), (200_000, 10)):
        X, V, zero = rng().standard_normal((n, p)), rng().standard_normal((p, 10)), np.zeros(p)
        name = f"{n} x {p}"
        compare(f"moments {name}", lambda: moments(X, 1, monitor), moments_cost(n, p))
        cost = products.times_cost(n, p, 10)
        compare(f"times {name}", lambda: products.times(X, zero, V, 1), cost)
        cost = principal_axes.principal_axes_cost(n, p, 2)
        compare(
            f"principal axes {name}",
            lambda: principal_axes.leading_axes(X, 2, 1, rng(), monitor),
            cost,
        )
    for n, p in ((600, 5000), (2500, 5000)):
        X = rng().standard_normal((n, p)) * np.r_[np.full(5, 9.0), np.ones(p - 5)]
        cost = principal_axes.principal_axes_cost(n, p, 5)
        compare(
            f"principal axes {n} x {p}",
            lambda: principal_axes.leading_axes(X, 5, 1, rng(), monitor),
            cost,
        )
    X = rng().standard_normal((20_000, 50))
    cost = orthonormal_basis_cost(20_000, 50)
    compare("orthonormal basis", lambda: orthonormal_basis(X, 1, monitor), cost)


def eigenpairs() -> None:
    for n in (100, 300, 1000):
        A = rng().standard_normal((n, n))
        A = A + A.T
        cost = eigen.all_pairs_cost(n)
        compare(f"all eigenpairs {n}", lambda: eigen.all_eigenpairs(A), cost, threaded=False)
    stack = rng().standard_normal((20_000, 12, 12))
    stack = stack + stack.transpose(0, 2, 1)
    cost = eigen.all_pairs_cost(12, 20_000)
    compare("all eigenpairs 20 000 of 12", lambda: eigen.all_eigenpairs(stack), cost, False)
    S = rng().standard_normal((1500, 100))
    A = (S * 0.8 ** np.arange(100)) @ S.T
    cost = eigen.largest_pairs_cost(1500, 5)
    compare("largest pairs 1500", lambda: eigen.largest_eigenpairs(A, 5), cost, threaded=False)


def kernels() -> None:
    for n, p in ((4000, 10), (4000, 100)):
        X, V, kernel = rng().standard_normal((n, p)), rng().standard_normal((n, 16)), Kernel("rbf")

        def five_products() -> None:
            K = kernel_matrix(X, kernel, 1)
            for _ in range(5):
                K.times(V)

        compare(f"five kernel products {n} x {p}", five_products, kernel_product_cost(n, p, 5))
        cost = kernel_matrix_cost(n, p)
        compare(f"kernel matrix {n} x {p}", lambda: kernel_matrix(X, kernel, 1).matrix(), cost)


def stress() -> None:
    for n in (390, 2000, 4000):
        X = rng().standard_normal((n, 5))
        D = cdist(X, X)
        compare(
            f"classical scaling {n}",
            lambda: classical_scaling.of_distances(D, 2, FitContext(rng(), 1, monitor)),
            classical_scaling.classical_scaling_cost(n, 2),
            threaded=n > 400,
        )
        Y = np.ascontiguousarray(X[:, :2])
        objective = AllPairs(D.astype(np.float32), None, 0, 1)
        compare(
            f"20 steps of majorization {n}",
            lambda: majorize(objective, Y, max_iter=20, tol=0.0, monitor=monitor),
            majorization_cost(n, 2, 20),
        )
    i, j = np.triu_indices(4000, 1)
    some = rng().random(i.size) < 0.05
    i, j = i[some].astype(np.int32), j[some].astype(np.int32)
    listed = ListedPairs(4000, i, j, D[i, j].astype(np.float32), np.ones(i.size, np.float32), 1)
    compare(
        f"20 steps over {i.size} listed pairs",
        lambda: majorize(listed, Y, max_iter=20, tol=0.0, monitor=monitor),
        majorization_cost(4000, 2, 20, i.size),
    )


if __name__ == "__main__":
    linear_algebra()
    eigenpairs()
    kernels()
    stress()

"""What the hand-written parts gain over the libraries that could replace them.

    python benchmarks/ablations.py npy         the reader of arrays in model files, against numpy's
    python benchmarks/ablations.py skyline     Cholesky factors along a line, against SuperLU
    python benchmarks/ablations.py products    products with centered data, against BLAS
    python benchmarks/ablations.py network     training of a network, against BLAS and numpy
    python benchmarks/ablations.py convolve    the field of a map on a grid, against scipy.fft

Each part prints time (best of several runs, candidates in turn) and the property that the part
exists for. A part that shows no gain here has to go.
"""

from __future__ import annotations

import io
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _harness import DATA

Times = dict[str, tuple[float, float]]


def best(candidates: dict[str, Callable[[], Any]], repeats: int = 5) -> Times:
    """Wall and CPU seconds of each candidate, the best of several rounds."""
    found = dict.fromkeys(candidates, (np.inf, np.inf))
    for _ in range(repeats):
        for name, work in candidates.items():
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            found[name] = min(found[name][0], wall), min(found[name][1], cpu)
    return found


def show(title: str, times: Times, **notes: Any) -> None:
    own = times["own"]
    print(f"\n{title}")
    for name, (wall, cpu) in times.items():
        print(
            f"  {name:18s} {1e3 * wall:9.1f} ms  CPU {1e3 * cpu:9.1f} ms   "
            f"x{wall / own[0]:5.2f} wall  x{cpu / own[1]:5.2f} CPU"
        )
    for name, note in notes.items():
        print(f"  {name.replace('_', ' ')}: {note}")


# --- .npy -----------------------------------------------------------------------------------------


def npy() -> None:
    from lowland._base.models.archive import Declaration, read_array, write_array

    X = np.random.default_rng(0).random((250_000, 50))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive, archive.open("a.npy", "w") as member:
        write_array(member, X)
    size = zipfile.ZipFile(packed).getinfo("a.npy").file_size
    declared = Declaration(X.dtype, X.shape)

    def own() -> np.ndarray:
        with zipfile.ZipFile(packed).open("a.npy") as member:
            return read_array(member, size, declared)

    def numpys() -> np.ndarray:
        with zipfile.ZipFile(packed).open("a.npy") as member:
            return np.lib.format.read_array(member, allow_pickle=False, max_header_size=1000)

    assert np.array_equal(own(), numpys())
    show("100 MB of float64 from a model file", best({"own": own, "numpy": numpys}))

    def header(shape: str) -> str:
        return f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"

    hostile = {
        "shape of 1 GB, no data": header("(134217728,)"),
        "negative size": header("(-1,)"),
        "product beyond int64": header("(4294967296, 4294967296)"),
        "900 unary minuses": header(f"({'-' * 900}1,)"),
        "unfinished string": "{'descr': '",
        "bad indentation": "  {'descr': '<f8'\n,}",
        "shape of True": header("(True,)"),
        "object dtype": "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
        "sub-array dtype": "{'descr': ('<f8', (1000000,)), 'fortran_order': False, 'shape': (9,)}",
    }
    print("\nhostile headers: what happens, and the peak of memory meanwhile")
    for name, text in hostile.items():
        raw = text.encode() + b"\n"
        data = b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw

        def by_own(data: bytes = data) -> None:
            read_array(io.BytesIO(data), len(data), Declaration(np.dtype("<f8"), (3,)))

        def by_numpy(data: bytes = data) -> None:
            np.lib.format.read_array(io.BytesIO(data), allow_pickle=False, max_header_size=1000)

        print(f"  {name:24s} own: {_outcome(by_own):34s} numpy: {_outcome(by_numpy)}")


def _outcome(work: Callable[[], None]) -> str:
    tracemalloc.start()
    try:
        work()
        result = "accepted"
    except BaseException as error:
        result = type(error).__name__
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{result} ({peak / 1e6:.1f} MB)"


# --- skyline --------------------------------------------------------------------------------------


def skyline() -> None:
    from lowland import LTSA, HessianLLE, ModifiedLLE
    from lowland._base.threads import limit_blas
    from lowland._engines.linalg import smallest_solvers
    from lowland._engines.linalg.skyline import SkylineCholesky, plan_skyline
    from lowland.datasets import swiss_roll

    captured: list[Any] = []

    def spy(problem: Any, M: Any, solver: str, ordering: Any, threads: int) -> Any:
        captured.append((M, ordering, problem.norm))
        return solve(problem, M, solver, ordering, threads)

    solve = smallest_solvers.solve_smallest
    box = np.random.default_rng(0).random((8000, 3)) * [4, 1, 1]  # three dimensions in four
    box = np.column_stack([box, np.sin(box[:, 0])])
    cases = (
        (HessianLLE, swiss_roll(3000, random_state=0).X, 12),
        (ModifiedLLE, swiss_roll(10000, random_state=0).X, 20),
        (LTSA, box, 16),
    )
    for method, X, k in cases:
        n = len(X)
        smallest_solvers.solve_smallest = spy
        method(2, n_neighbors=k).fit(X)
        smallest_solvers.solve_smallest = solve
        M, ordering, norm = captured.pop()
        plan, shift = plan_skyline(M, ordering), 1e-12 * norm
        V = np.random.default_rng(0).standard_normal((n, 4))

        def own(M: Any = M, plan: Any = plan, shift: float = shift, V: Any = V) -> Any:
            inverse = SkylineCholesky(M, plan, shift, 2)
            return [inverse.solve(V) for _ in range(10)][-1]

        def superlu(M: Any = M, shift: float = shift, V: Any = V) -> Any:
            inverse = smallest_solvers._superlu(M, shift)
            return [inverse(V) for _ in range(10)][-1]

        thin = (
            M.nnz <= smallest_solvers.FEW_ENTRIES * n
            and plan.n_bytes <= 8 * smallest_solvers.LOW * n
        )
        with limit_blas(1):
            times = best({"own": own, "SuperLU": superlu}, repeats=3)
        show(
            f"{method.__name__}, n = {n}, k = {k}: factors and ten solves of 4 vectors",
            times,
            entries_per_row=f"{M.nnz / n:.0f}, mean height {plan.n_bytes / 8 / n:.0f}",
            chosen="SuperLU" if thin else "own",
        )


# --- products -------------------------------------------------------------------------------------


def products() -> None:
    from lowland._base.monitor import Monitor
    from lowland._base.threads import limit_blas
    from lowland._engines.linalg import products as own_products
    from lowland._engines.linalg.moments import moments

    rng = np.random.default_rng(0)
    tables = {
        "30 000 x 784 float32": rng.random((30_000, 784), dtype=np.float32),
        "200 000 x 30 float64": rng.standard_normal((200_000, 30)),
    }
    if (DATA / "mnist.npz").exists():
        with np.load(DATA / "mnist.npz") as stored:
            images = next(stored[name] for name in stored.files if stored[name].ndim > 1)
        tables["30 000 images of MNIST"] = images[:30_000].reshape(30_000, -1).astype(np.float32)
    for name, X in tables.items():
        p = X.shape[1]
        mean = X.mean(axis=0, dtype=np.float64)

        def blas(threads: int, X: Any = X, mean: Any = mean) -> Any:
            with limit_blas(threads):
                Z = X - mean.astype(X.dtype)
                return Z.T @ Z

        show(
            f"covariance of {name}",
            best(
                {
                    "own": lambda X=X: moments(X, 2, Monitor()),
                    "own, 1 thread": lambda X=X: moments(X, 1, Monitor()),
                    "BLAS, 1 thread": lambda blas=blas: blas(1),
                    "BLAS, 2 threads": lambda blas=blas: blas(2),
                }
            ),
            same_bytes_for_1_and_2_threads=_both(
                lambda threads, X=X: moments(X, threads, Monitor()).scatter, blas
            ),
        )
        V = rng.standard_normal((p, 10)).astype(X.dtype)

        def project(threads: int, X: Any = X, V: Any = V, mean: Any = mean) -> Any:
            with limit_blas(threads):
                return X @ V - (mean.astype(X.dtype) @ V)

        def centered(X: Any = X, V: Any = V, mean: Any = mean) -> Any:
            with limit_blas(1):
                return (X - mean.astype(X.dtype)) @ V

        whole, alone = project(1), np.vstack([project(1, X[i : i + 1]) for i in range(50)])
        own_whole = own_products.times(X, mean, V, 2)
        own_alone = np.vstack([own_products.times(X[i : i + 1], mean, V, 1) for i in range(50)])
        show(
            f"projection of {name} on 10 axes",
            best(
                {
                    "own": lambda X=X, V=V, mean=mean: own_products.times(X, mean, V, 2),
                    "own, 1 thread": lambda X=X, V=V, mean=mean: own_products.times(X, mean, V, 1),
                    "BLAS, 1 thread": lambda project=project: project(1),
                    "BLAS, 2 threads": lambda project=project: project(2),
                    "BLAS, centered": centered,
                }
            ),
            a_row_alone_has_the_same_bytes=f"own {_same(own_whole[:50], own_alone)}, "
            f"BLAS {_same(whole[:50], alone)}",
        )
    wide = rng.standard_normal((800, 20_000))
    mean = wide.mean(axis=0)

    def gram(threads: int) -> Any:
        with limit_blas(threads):
            Z = wide - mean
            return Z @ Z.T

    show(
        "inner products of 800 x 20 000 float64",
        best(
            {
                "own": lambda: own_products.sample_gram(wide, mean, 2),
                "own, 1 thread": lambda: own_products.sample_gram(wide, mean, 1),
                "BLAS, 1 thread": lambda: gram(1),
                "BLAS, 2 threads": lambda: gram(2),
            },
            repeats=3,
        ),
        same_bytes_for_1_and_2_threads=_both(
            lambda threads: own_products.sample_gram(wide, mean, threads), gram
        ),
    )


# --- networks -------------------------------------------------------------------------------------


def network() -> None:
    """Steps of Adam by the kernel, and by BLAS and numpy on fixed halves of each batch.

    Two threads of BLAS within a product may change the last digits, so that is no option: each
    half of a batch is a task of one thread, and the slopes of the halves are added in their order.
    """
    from concurrent.futures import ThreadPoolExecutor

    from lowland import _native
    from lowland._base.threads import limit_blas
    from lowland._engines.network.layers import Network, first_weights

    def slopes(net: Network, weights: np.ndarray, X: np.ndarray) -> np.ndarray:
        layers, h = net.layers(weights), [X]
        for W, b, activation in layers:
            h.append(h[-1] @ W + b if activation == "linear" else np.tanh(h[-1] @ W + b))
        gradient = np.empty_like(weights)
        into, slope = net.layers(gradient), (h[-1] - X) * np.float32(2 / X.size)
        for index in reversed(range(net.n_layers)):
            W, _, activation = layers[index]
            if activation == "tanh":
                slope = slope * (1 - h[index + 1] ** 2)
            np.matmul(h[index].T, slope, out=into[index].W)
            into[index].b[...] = slope.sum(axis=0)
            slope = slope @ W.T if index else slope
        return gradient

    def by_blas(net: Network, X: np.ndarray, n_steps: int, pool: ThreadPoolExecutor) -> np.ndarray:
        weights = first_weights(net, np.random.default_rng(0)).astype(np.float32)
        m, v = np.zeros_like(weights), np.zeros_like(weights)
        with limit_blas(1):
            for t in range(1, n_steps + 1):
                first, second = pool.map(slopes, [net] * 2, [weights] * 2, np.split(X, 2))
                g = (first + second) * np.float32(0.5)
                m += np.float32(0.1) * (g - m)
                v += np.float32(0.001) * (g * g - v)
                root = np.sqrt(v * np.float32(1 / (1 - 0.999**t)))
                weights -= np.float32(1e-3 / (1 - 0.9**t)) * m / (root + np.float32(1e-8))
        return weights

    def own(net: Network, X: np.ndarray, n_steps: int, threads: int) -> np.ndarray:
        weights = first_weights(net, np.random.default_rng(0)).astype(np.float32)
        state, order = np.zeros((2, len(weights)), np.float32), np.tile(np.arange(len(X)), n_steps)
        _native.network_train(
            *net.described(),
            *(weights, state[0], state[1], X, X, order, len(X), np.full(n_steps, 1e-3)),
            *(0, 0.0, 0.0, 0, 0.0, np.empty(n_steps), threads),
        )
        return weights

    for sizes, n_steps in [((784, 256, 64, 2, 64, 256, 784), 40), ((64, 32, 2, 32, 64), 500)]:
        half = len(sizes) // 2
        net = Network(sizes, (*["tanh"] * (half - 1), "linear") * 2)
        X = np.random.default_rng(0).standard_normal((256, sizes[0])).astype(np.float32)
        one, two = ThreadPoolExecutor(1), ThreadPoolExecutor(2)
        found, other = own(net, X, n_steps, 2), by_blas(net, X, n_steps, two)
        show(
            f"{n_steps} steps of {sizes}, batches of 256",
            best(
                {
                    "own": lambda: own(net, X, n_steps, 2),  # noqa: B023
                    "own, 1 thread": lambda: own(net, X, n_steps, 1),  # noqa: B023
                    "BLAS, 1 thread": lambda: by_blas(net, X, n_steps, one),  # noqa: B023
                    "BLAS, 2 threads": lambda: by_blas(net, X, n_steps, two),  # noqa: B023
                },
                repeats=3,
            ),
            weights_differ_by=f"{np.abs(found - other).max():.1e}",
            same_bytes_for_1_and_2_threads=_both(
                lambda threads: own(net, X, n_steps, threads),  # noqa: B023
                lambda threads: by_blas(net, X, n_steps, two if threads == 2 else one),  # noqa: B023
            ),
        )


# --- convolution of a plane -----------------------------------------------------------------------


def convolve() -> None:
    """The step of the particle mesh that scipy's transforms could do, and did."""
    from lowland._engines.embedding import particle_mesh

    def cauchy(squares: np.ndarray) -> np.ndarray:
        return 1 / (1 + squares)

    for shape in [(35, 30), (128, 128), (300, 250), (631, 589), (1200, 1000)]:
        charges = np.random.default_rng(0).random(shape, dtype=np.float32)
        corner = particle_mesh.corrected_spectrum(particle_mesh.padded_nodes(shape), 0.45, cauchy)
        own = {t: particle_mesh.GridConvolution(shape, 0.45, cauchy, t) for t in (1, 2)}
        by_scipy = {t: particle_mesh.GridConvolution(shape, 0.45, cauchy, t) for t in (1, 2)}
        for convolution in by_scipy.values():
            convolution.spectrum = particle_mesh._mirrored(corner)
        repeats = max(1, 2_000_000 // charges.size)

        def again(work: Callable[[np.ndarray], Any], times: int, X: np.ndarray) -> None:
            for _ in range(times):
                work(X)

        expected = by_scipy[1]._transformed(charges)
        error = np.abs(own[2](charges) - expected).max() / np.abs(expected).max()
        works = {"own": own[2], "own, 1 thread": own[1]}
        works |= {"scipy": by_scipy[2]._transformed, "scipy, 1 thread": by_scipy[1]._transformed}
        show(
            f"{repeats} fields of {shape[0]} x {shape[1]} nodes",
            best({name: partial(again, work, repeats, charges) for name, work in works.items()}),
            fields_differ_by=f"{error:.1e}",
        )


def _both(own: Callable[[int], Any], blas: Callable[[int], Any]) -> str:
    return f"own {_same(own(1), own(2))}, BLAS {_same(blas(1), blas(2))}"


def _same(a: np.ndarray, b: np.ndarray) -> str:
    return "yes" if a.tobytes() == b.tobytes() else "no"


if __name__ == "__main__":
    parts = {"npy": npy, "skyline": skyline, "products": products, "network": network}
    parts["convolve"] = convolve
    for name in sys.argv[1:] or parts:
        parts[name]()

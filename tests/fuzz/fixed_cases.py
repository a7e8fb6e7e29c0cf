"""Cases that once failed; they run first each time, and in the test suite."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import lowland
from fuzz.command_cases import run_here
from fuzz.parameters import FUNCTIONS
from fuzz.rules import REFUSED, attempt, require, same_bytes
from lowland import metrics
from lowland._base.models.codec import read_model, write_model
from lowland.errors import LowlandError, ModelFileError
from lowland.neighbors import NeighborGraph, knn_graph

FIXED: dict[str, Callable[[], None]] = {}


def fixed(*variants: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a case under its name, once for each of the variants."""

    def enter(case: Callable[..., None]) -> Callable[..., None]:
        name = case.__name__.replace("_", "-")
        for number, variant in enumerate(variants):
            FIXED[f"{name}-{number + 1}"] = lambda variant=variant: case(*variant)
        if not variants:
            FIXED[name] = case
        return case

    return enter


def rows(n: int = 40, p: int = 4) -> np.ndarray:
    return np.abs(np.random.default_rng(0).standard_normal((n, p)))


def refused(function: Callable[..., Any], *args: Any, **keywords: Any) -> None:
    result = attempt(function, *args, **keywords)
    require(result is REFUSED, f"accepted: {type(result).__name__}")


def finite_or_refused(function: Callable[..., Any], *args: Any, **keywords: Any) -> None:
    result = attempt(function, *args, **keywords)
    fine = result is REFUSED or np.isfinite(np.asarray(result, float)).all()
    require(fine, "numbers that are not finite")


# --- model files whose contents are out of bounds -------------------------------------------------


@fixed(
    ("edge_starts_", 30, 100_000),
    ("edge_starts_", 0, -1),
    ("edge_starts_", -1, 2**31 - 1),
    ("edge_ends_", 3, -1),
    ("edge_ends_", 3, 40),
    ("edge_ends_", 3, 2**31 - 1),
    ("landmarks_", 0, -1),
    ("landmarks_", 0, 40),
    ("row_numbers_", 0, 41),
)
def isomap_file(name: str, place: int, value: int) -> None:
    kind = {"landmarks": 10} if name == "landmarks_" else {}
    X = rows()
    if name == "row_numbers_":
        X[25:] += 1000
        kind = {"on_disconnected": "largest"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.lowland"
        lowland.Isomap(n_neighbors=5, **kind).fit(X).save(path)
        model = read_model(path)
        if model.state.get(name) is None:
            return  # this fit has no such attribute any more
        model.state[name] = model.state[name].copy()
        model.state[name][place] = value
        write_model(path, model.class_name, model.params, model.state)
        loaded = attempt(lowland.load, path)
        require(loaded is REFUSED, f"{name}[{place}] = {value} is loaded")


# --- graphs and sparse tables whose indices are out of bounds -------------------------------------


@fixed(*[(name, value) for name in ("Isomap", "LaplacianEigenmaps") for value in (10**6, -7, 40)])
def graph_index(method: str, value: int) -> None:
    graph = knn_graph(rows(), 5)
    indices = graph.indices.copy()
    indices[3, 2] = value
    refused(_fit_graph, method, indices, graph.distances)


@fixed(*[(name, d) for name in ("Isomap", "LaplacianEigenmaps") for d in (-1.0, float("nan"))])
def graph_distance(method: str, value: float) -> None:
    graph = knn_graph(rows(), 5)
    distances = graph.distances.copy()
    distances[3, 2] = value
    refused(_fit_graph, method, graph.indices, distances)


def _fit_graph(method: str, indices: np.ndarray, distances: np.ndarray) -> Any:
    graph = NeighborGraph(indices, distances, len(indices))
    return getattr(lowland, method)().fit(graph)


@fixed(*[(name, part) for name in ("PCA", "TSNE", "KernelPCA") for part in ("indices", "indptr")])
def malformed_csr(method: str, part: str) -> None:
    X = scipy.sparse.csr_matrix(np.where(rows() > 0.5, rows(), 0.0))
    X.has_sorted_indices = X.has_canonical_format = True
    getattr(X, part)[7] = 10**6
    refused(getattr(lowland, method)().fit, X)


# --- several threads ------------------------------------------------------------------------------


@fixed(("PCA",), ("LLE",), ("LDA",), ("MDS",))
def one_model_in_threads(method: str) -> None:
    from fuzz.thread_cases import _one_model

    y = np.arange(40) % 3
    model = getattr(lowland, method)(n_jobs=2).fit(rows(), y)
    for seed in range(5):
        _one_model(np.random.default_rng(seed), model, rows())


@fixed(("NonmetricMDS",), ("KernelPCA",), ("Sammon",))
def fits_in_threads(method: str) -> None:
    from fuzz.thread_cases import _concurrent_fits

    cls = getattr(lowland, method)
    few = {"max_iter": 20} if "max_iter" in cls.parameters() else {}
    _concurrent_fits(cls, {"random_state": 0, **few}, rows(60, 8), np.arange(60) % 3)


# --- wrong or missing answers ---------------------------------------------------------------------


@fixed((["info", "t.npz"],), (["info", "t.npz", "--json"],))
def info_on_sparse(arguments: list[str]) -> None:
    scipy.sparse.save_npz("t.npz", scipy.sparse.csr_matrix(np.where(rows() > 0.5, rows(), 0.0)))
    run_here(arguments)


@fixed(("-m", "pca"), ("-m", "isomap"))
def drop_rows_without_labels(*method: str) -> None:
    X = rows()
    X[3, 1] = np.nan
    np.save("t.npy", X)
    run_here(["map", "t.npy", "--impute", "drop-rows", "--no-report", "-o", "out", *method])
    require(Path("out/map.csv").exists(), "no map")


@fixed(*[(m, f) for m in ("LLE", "LTSA", "Isomap", "MDS") for f in ("always negative", "nan")])
def impossible_metric(method: str, function: str) -> None:
    refused(getattr(lowland, method)(metric=FUNCTIONS[function]).fit_transform, rows())


@fixed(("MDS",), ("ClassicalMDS",))
def largest_float32(method: str) -> None:
    X = (rows() * np.finfo(np.float32).max / 8).astype(np.float32)
    finite_or_refused(getattr(lowland, method)().fit_transform, X)


@fixed(("PrincipalVariables", 1e100), ("FisherScore", 1e200), ("MRMR", 1e200), ("MRMR", 1e-200))
def selector_at_scale(method: str, scale: float) -> None:
    model = getattr(lowland, method)()
    if attempt(model.fit, rows() * scale, np.arange(40) % 3) is REFUSED:
        return
    require(np.isfinite(np.asarray(getattr(model, "scores_", 0.0))).all(), "scores are not finite")


@fixed(*[
    (name, scale)
    for name in ("explained_variance", "kruskal_stress1", "reconstruction_error", "raw_stress")
    for scale in (1e200, 1e-200, 1e300)
])  # fmt: skip
def measure_at_scale(name: str, scale: float) -> None:
    finite_or_refused(getattr(metrics, name), rows() * scale, rows()[:, :2] * scale)


@fixed((1e200,), (1e300,))
def silhouette_at_scale(scale: float) -> None:
    finite_or_refused(metrics.silhouette, rows() * scale, np.arange(40) % 3)


@fixed()
def giant_regularization() -> None:
    finite_or_refused(lowland.ModifiedLLE(reg=1e308).fit_transform, rows())


@fixed(("PCA",), ("TSNE",), ("VarianceScore",))
def masked_rows(method: str) -> None:
    X = np.ma.masked_greater(rows(), 1.0)
    refused(getattr(lowland, method)().fit, X)


@fixed()
def giant_matrix_market() -> None:
    header = "%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 1 2.5\n"
    Path("t.mtx").write_text(header)
    refused(lowland.tables.read_table, "t.mtx")


@fixed(("2 2\n1\n2\n3\n4   ",), ("2 2\n1\n2\n3   ",), ("2 2\n1\n2\0\n3\n4\n",), ("2 2\n1\n2\0",))
def odd_end_of_matrix_market(text: str) -> None:
    Path("t.mtx").write_text(f"%%MatrixMarket matrix array real general\n{text}")
    attempt(lowland.tables.read_table, "t.mtx")


@fixed()
def score_of_a_sparse_map() -> None:
    refused(lowland.workflow.score_map, rows(), scipy.sparse.csr_matrix(rows()[:, :2]))


@fixed(([10**400] * 40,), ([[1], [2, 3]],), ([None, "a", 1, 2] * 10,))
def odd_labels(labels: Any) -> None:
    refused(lowland.workflow.make_map, rows(), "pca", labels=labels, measure=False)


@fixed()
def parameter_of_a_batch() -> None:
    model = lowland.LDA(shrinkage=np.array([0.1, 0.2]))
    refused(model.partial_fit, rows(), np.arange(40) % 3)


@fixed(({"p": float("nan")},), ({"q": 1},))
def metric_of_a_radius(params: dict[str, Any]) -> None:
    refused(lowland.Isomap(radius=1.0, metric_params=params).fit, rows())


@fixed(*[(name,) for name in ("text", "none", "array", "complex", "integer", "nan")])
def kernel_without_a_number(function: str) -> None:
    refused(lowland.KernelPCA(kernel=FUNCTIONS[function]).fit, rows())


@fixed(("LLE",), ("LTSA",), ("ModifiedLLE",))
def inverse_far_away(method: str) -> None:
    model = getattr(lowland, method)(n_jobs=2).fit(rows())
    far = model.transform(rows()) + 1e200 * np.random.default_rng(0).standard_normal((40, 2))
    finite_or_refused(model.inverse_transform, far)


@fixed((1e-12,), (5e-324,))
def width_below_the_unit(bandwidth: float) -> None:
    X = rows()
    X[0, 0] = 1e300
    finite_or_refused(lowland.LaplacianEigenmaps(bandwidth=bandwidth).fit_transform, X)


@fixed((2**31,), (10**6,), (2**63,), (10**30,))
def many_jobs(n_jobs: int) -> None:
    finite_or_refused(lowland.PCA(2, n_jobs=n_jobs).fit_transform, rows())
    attempt(knn_graph, rows(), 3, n_jobs=n_jobs)


@fixed(
    ([[1.0, 10**400], [2.0, 3.0]],),
    (np.array([[1.0, 10**400], [2.0, 3.0]], object),),
    ([[1.0], [2.0, 3.0]],),
    ([[1.0, [2.0]], [2.0, 3.0]],),
)
def odd_cells(X: Any) -> None:
    refused(lowland.PCA().fit, X)


@fixed(("minkowski", {"q": 2}), ("euclidean", {"q": 2}), (FUNCTIONS["constant"], {"q": 2}))
def unknown_keyword_of_a_metric(metric: Any, params: dict[str, Any]) -> None:
    refused(knn_graph, rows(), 3, metric=metric, metric_params=params)
    refused(lowland.MDS(metric=metric, metric_params=params, max_iter=3).fit, rows())


@fixed(("ClassicalMDS",), ("NonmetricMDS",))
def more_components_than_rows(method: str) -> None:
    refused(getattr(lowland, method)(10**5).fit, rows())


@fixed(("RecursiveElimination", "nonsense"), ("SequentialSelection", "nonsense"))
def unknown_scorer(method: str, scoring: str) -> None:
    refused(getattr(lowland, method)(scoring=scoring).fit, rows(), np.arange(40) % 3)


@fixed()
def inverse_of_a_row_alone() -> None:
    X = np.random.default_rng(1).standard_normal((60, 12)) @ np.diag(np.arange(1.0, 13.0))
    model = lowland.PrincipalVariables(n_features=5).fit(X)
    kept = model.transform(X)
    whole = model.inverse_transform(kept)
    for i in range(20):
        alone = model.inverse_transform(kept[i : i + 1])
        same_bytes(alone, whole[i : i + 1], "inverse_transform of a row alone")


@fixed(*[(place,) for place in range(8, 700, 40)])
def damaged_arrow(place: int) -> None:
    from fuzz.whole_files import whole_file

    content = bytearray(whole_file("table.arrow"))
    content[-place] ^= 0x80
    Path("t.arrow").write_bytes(bytes(content))
    attempt(lowland.tables.read_table, "t.arrow")


@fixed((lowland.tables.read_table,), (lowland.load,))
def named_pipe(read: Callable[[str], Any]) -> None:
    os.mkfifo("t.csv")
    refused(read, "t.csv")


@fixed()
def damaged_model_names_its_file() -> None:
    Path("m.lowland").write_bytes(b"PK\x03\x04" + bytes(100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            lowland.load("m.lowland")
        except ModelFileError as error:
            require("m.lowland" in str(error), "the error does not name the file")
        except LowlandError as error:
            require(False, f"another error: {type(error).__name__}")

"""Random calls of functions: measures, neighbor searches, preparation, studies, data sets."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.data import chance, labels, pick, random_distances, random_shape, random_table
from fuzz.parameters import FOREIGN, FUNCTIONS, GIANTS, random_seed
from fuzz.rules import REFUSED, attempt, contents, require, same_bytes, unchanged
from lowland import datasets, metrics, neighbors, workflow
from lowland._base import registry
from lowland.preparation.preparation import Preparation

MEASURES = [name for name in metrics.__all__ if name[0].islower() and name != "selection_curve"]
GENERATORS = [
    "bent_sheet",
    "blobs",
    "branching_tree",
    "helix",
    "s_curve",
    "sphere",
    "swiss_roll",
    "torus",
]
GENERATORS += ["two_rings", "load_dataset", "breakfast", "drawn_faces"]
METRICS = ["euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev"]
METRICS += ["minkowski", "canberra", "braycurtis", "hamming", "jaccard", "gower", "precomputed"]
METRICS += ["l3"]


def function_case(rng: np.random.Generator) -> None:
    kinds: list[tuple[float, Callable[[np.random.Generator], None]]] = [
        (0.45, measure_case),
        (0.2, search_case),
        (0.15, preparation_case),
        (0.12, study_case),
        (0.08, generator_case),
    ]
    weights = [weight for weight, _ in kinds]
    kinds[int(rng.choice(len(kinds), p=weights))][1](rng)


def random_options(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Keywords that measures and searches share."""
    options: dict[str, Any] = {}
    if chance(rng, 0.3):
        functions = list(FUNCTIONS.values())
        options["metric"] = pick(rng, [*METRICS * 3, *functions, *FOREIGN])
    named = options["metric"] if isinstance(options.get("metric"), str) else ""
    if named == "minkowski" or chance(rng, 0.03):
        options["metric_params"] = pick(rng, [{"p": 3}, {"p": 0.5}, {}, None, {"q": 2}, {"p": 0}])
    if chance(rng, 0.15):
        options["n_jobs"] = pick(rng, [1, 2, 3, -1, 0, "2", 1.0, *GIANTS])
    if chance(rng, 0.1):
        options["random_state"] = random_seed(rng)
    return options


def _neighbors(rng: np.random.Generator, n: int) -> Any:
    if chance(rng, 0.12):
        return pick(rng, [*GIANTS, *FOREIGN, [1, 2], [], np.array([1, 3]), range(1, 4)])
    fair = [1, 2, rng.integers(1, max(2, n // 2)), rng.integers(1, max(2, n))]
    return int(pick(rng, fair if chance(rng, 0.8) else [n - 1, n, n // 2, n // 2 + 1, 0]))


def measure_case(rng: np.random.Generator) -> None:
    """A measure of a map, which is related to the table, or not."""
    name = pick(rng, MEASURES)
    n, _ = random_shape(rng)
    options = random_options(rng, n)
    square = isinstance(options.get("metric"), str) and options["metric"] == "precomputed"
    shape = (n, random_shape(rng)[1])
    data = random_distances(rng, n) if square else random_table(rng, shape, fair=0.65)
    Y = data.plain[:, :2] if chance(rng, 0.3) else rng.standard_normal((n, int(rng.integers(1, 4))))
    if chance(rng, 0.3):
        other = n if chance(rng, 0.7) else int(rng.integers(1, 50))
        Y = random_table(rng, (other, 2), fair=0.4).X
    if chance(rng, 0.2):
        options["sample"] = pick(
            rng, ["auto", None, 1, 2, n, n + 1, 0, -1, "all", 10**9, 2.5, True]
        )
    if chance(rng, 0.04):
        options["unknown"] = 1
    measure(rng, name, data.X, Y, options, n, data.ordinary)


def measure(
    rng: np.random.Generator, name: str, X: Any, Y: Any, options: dict[str, Any], n: int, fair: bool
) -> None:
    """Call a measure with what its signature asks for."""
    function = getattr(metrics, name)
    accepted = inspect.signature(function).parameters
    known = {"X": X, "Y": Y, "Y1": Y, "Y2": X, "labels": labels(rng, n), **_of_islands(rng, n)}
    first = next(iter(accepted))
    arguments: list[Any] = [known.get(first, X) if first != "Y" else X]
    later = [each for each in list(accepted)[1:] if each in known]
    if not any(each.kind is each.VAR_KEYWORD for each in accepted.values()):
        options = {key: value for key, value in options.items() if key in accepted}
    options = {**_fitting(rng, accepted, options, n), **{each: known[each] for each in later}}
    before = contents([arguments, options])
    value = attempt(function, *arguments, **options)
    unchanged(before, [arguments, options])
    if value is REFUSED:
        return
    repr(value)
    # rows that are not measured are NaN, and so are gaps of islands that cannot be tested
    unknown = name.startswith("point_") or name in ("missing_neighbors", "strangers", "gap_test")
    if fair and not unknown and not callable(options.get("metric")):
        _check_finite(value, name)
    seeded = isinstance(options.get("random_state", 0), int)  # a generator goes on
    if seeded and isinstance(value, float | np.ndarray):
        same_bytes(value, attempt(function, *arguments, **options), f"{name} again")


def _of_islands(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """What measures of islands and of chance take: islands of a map, those of others, numbers."""

    def codes() -> Any:
        fair = [np.zeros(n, int), rng.integers(0, 4, n), rng.integers(0, 3, n).astype(np.int8)]
        hostile = [labels(rng, n), rng.integers(-2, 9, n), np.full(n, 10**9), None, "1"]
        return pick(rng, fair if chance(rng, 0.7) else hostile)

    return {
        "islands": codes(),
        "others": [codes() for _ in range(int(rng.integers(0, 4)))],
        "missing": rng.random(n) if chance(rng, 0.8) else labels(rng, n),
        "n": n if chance(rng, 0.8) else pick(rng, [*GIANTS, *FOREIGN]),
        "reach": pick(rng, [None, 1, 5, n // 4, n - 1, n, 0, *GIANTS, *FOREIGN]),
    }


def _fitting(
    rng: np.random.Generator, accepted: Any, options: dict[str, Any], n: int
) -> dict[str, Any]:
    """The options that a measure knows, and some that only it has."""
    if "X" not in accepted or "Y" not in accepted:
        options = {key: options[key] for key in options if key not in ("sample", "graph")}
    for keyword, choices in (
        ("n_neighbors", [_neighbors(rng, n)]),
        ("disparities", ["primary", "secondary", "linear", "none", "x"]),
        ("n_pairs", [1, 10, None, 0, -1, 10**9, "all"]),
        ("discard", [0.0, 0.1, 0.5, 0.99, 1.0, -0.1, np.nan, "x"]),
        ("angles", [[0.5], [0.0, 1.0], [], [2.0], "x", None, np.array([0.1, np.nan])]),
        ("n_repeats", [1, 2, 0, -1, 1.5, "x"]),
        ("n_draws", [1, 3, 0, -1, 1.5, "x"]),
        ("rule", ["parallel", "broken_stick", "x", None]),
        ("scale", [True, False, 1, "x"]),
        ("method", ["twonn", "mle", "correlation", "spearman", "pearson", "x"]),
    ):
        if keyword in accepted and chance(rng, 0.6):
            options[keyword] = pick(rng, choices)
    return options


def _check_finite(value: Any, name: str) -> None:
    if isinstance(value, float):
        require(np.isfinite(value), f"{name} is not finite")
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        require(np.isfinite(value).all(), f"{name} has values that are not finite")
    elif isinstance(value, list | tuple) and name != "intrinsic_dimension":
        for item in value:
            _check_finite(item, name)


def search_case(rng: np.random.Generator) -> None:
    """Neighbors of the rows, or of new rows; each row alone has the same neighbors."""
    n, p = random_shape(rng)
    options = random_options(rng, n)
    if chance(rng, 0.3):
        options["method"] = pick(rng, ["auto", "exact", "tree", "cells", "x", None])
    square = isinstance(options.get("metric"), str) and options["metric"] == "precomputed"
    data = random_distances(rng, n) if square else random_table(rng, (n, p))
    k = _neighbors(rng, n)
    if chance(rng, 0.5):
        before = contents(data.X)
        graph = attempt(neighbors.knn_graph, data.X, k, **options)
        unchanged(before, data.X)
    else:
        options.pop("random_state", None)
        width = n if square else p
        queries = random_table(rng, (int(rng.integers(1, 5)), width)).X
        before = contents([data.X, queries])
        graph = attempt(neighbors.knn_query, data.X, queries, k, **options)
        unchanged(before, [data.X, queries])
        if graph is not REFUSED and isinstance(queries, np.ndarray) and queries.ndim == 2:
            alone = attempt(neighbors.knn_query, data.X, queries[:1], k, **options)
            require(alone is not REFUSED, "knn_query: a query refused only when alone")
            same_bytes(alone.indices, graph.indices[:1], "indices of a query alone")
            same_bytes(alone.distances, graph.distances[:1], "distances of a query alone")
    if graph is not REFUSED:
        _check_graph(graph, ordinary=not callable(options.get("metric")))


def _check_graph(graph: Any, ordinary: bool) -> None:
    repr(graph)
    inside = (graph.indices >= -1) & (graph.indices < graph.n_points)
    require(inside.all(), "a neighbor that does not exist")
    known = graph.distances[graph.indices >= 0]
    require(not np.isnan(known).any(), "a distance is NaN")
    if ordinary:
        require((known >= 0).all(), "a distance is negative")
        with np.errstate(invalid="ignore"):
            require(not (np.diff(graph.distances) < 0).any(), "neighbors are not sorted")
    require(graph.to_csr().shape == graph.shape, "to_csr has another shape")


def preparation_case(rng: np.random.Generator) -> None:
    """Preparation of arrays, sparse matrices and polars frames."""
    data = random_table(rng, fair=0.9)
    fits = isinstance(data.X, np.ndarray) or data.container.startswith(("polars", "csr", "csc"))
    if not fits or np.ndim(data.X) != 2 or data.container == "polars lazy":
        return  # the command line makes tables of these kinds only
    scale = pick(rng, ["auto", "none", "standard", "robust", "gower", "x", None])
    plan = pick(rng, ["mean", "median", "neighbors", "refuse", "x"])
    steps = pick(rng, [None, ["log1p"], ["cpm", "l2"], "x"])
    codes = pick(rng, [None, None, ["0", "1"], ["a=0"], ["="]])
    model = Preparation(scale=scale, missing=plan, normalize=steps, missing_values=codes)
    before = contents(data.X)
    ready = attempt(model.fit_transform, data.X)
    unchanged(before, data.X)
    if ready is REFUSED:
        return
    again = attempt(model.transform, data.X)
    if isinstance(ready, np.ndarray):
        same_bytes(ready, again, "Preparation again")
        if np.isfinite(np.asarray(data.plain)).all() and data.ordinary:
            require(np.isfinite(ready).all(), "Preparation gives numbers that are not finite")


def study_case(rng: np.random.Generator) -> None:
    """What the commands do, on tables in memory."""
    n, p = random_shape(rng)
    data = random_table(rng, (min(n, 80), p), fair=0.7)
    name = pick(rng, ["make_map", "make_map", "compare_methods", "describe_table"])
    name = pick(rng, [name, name, "select_columns", "score_map"])
    options: dict[str, Any] = {}
    arguments: list[Any] = [data.X]
    if name == "make_map":
        arguments.append(pick(rng, [*registry.names(), "nonsense", None]))
        options = {
            "measure": chance(rng, 0.2),
            "missing": pick(rng, ["refuse", "mean", "neighbors", "drop", "x"]),
            "normalize": pick(rng, [None, None, "cpm,log1p", ["l2"], "x"]),
            "transpose": chance(rng, 0.1),
        }
        options["scale"] = pick(rng, ["auto", "none", "standard", "robust", "x"])
        options["pca"] = pick(rng, ["auto", "none", 2, 50, 0, -1])
        options["labels"] = labels(rng, len(data.plain)) if chance(rng, 0.4) else None
    elif name == "compare_methods":
        known = ["pca", "isomap", "lle", "classical_mds", "lda", "nonsense"]
        arguments.append([pick(rng, known) for _ in range(int(rng.integers(0, 3)))])
        options = {
            "scale": pick(rng, ["auto", "none"]),
            "missing": pick(rng, ["refuse", "mean", "neighbors"]),
        }
    elif name == "select_columns":
        arguments.append(pick(rng, [None, *registry.selector_names(), "x"]))
        options["n_features"] = pick(rng, [None, 1, 2, 0.5, 0, 100, "2"])
    elif name == "score_map":
        arguments.append(random_table(rng, (len(data.plain), 2), fair=0.8).X)
    before = contents(arguments)
    attempt(getattr(workflow, name), *arguments, **options)
    if data.container != "generator":
        unchanged(before, arguments)


def generator_case(rng: np.random.Generator) -> None:
    """A generator of data: the asked number of rows, finite, the same for the same seed."""
    name = pick(rng, GENERATORS)
    function = getattr(datasets, name)
    accepted = inspect.signature(function).parameters
    choices = {
        "n_samples": [1, 2, 3, 10, 500, 0, -1, 1.5, "5", None, True, np.int64(7)],
        "noise": [0.0, 0.1, -1.0, np.nan, 1e300, "x", np.inf],
        "hole": [True, False, None, "x"],
        "bend": [0.0, 3.0, 1e-8, 1e300, np.nan, -1.0],
        "n_clusters": [1, 2, 20, 0, -1, 2.5, "x"],
        "n_features": [1, 2, 50, 0, -1, 1.5],
        "n_persons": [1, 2, 5, 0, -1, 1.5, "x"],
        "n_pictures": [1, 3, 0, -1, None, True],
        "spread": [0.0, 1.0, 1e300, -1.0, np.nan],
        "turns": [0.0, 3.0, -1.0, 1e300, np.nan],
        "pitch": [0.0, 1.0, -1.0, 1e300, np.nan],
        "ratio": [0.5, 0.01, 0.0, 1.0, -1.0, np.nan, "x"],
        "tube": [0.0, 0.4, 1.0, 2.0, -1.0, np.nan],
        "judge": [0, 1, 41, 42, 43, -1, 1.5, "x", None],
        "name": [*datasets.names(), "x", "", 3, None],
        "random_state": [0, 1, 2**64, -1, "x", 1.5],
    }
    used = [key for key in accepted if key in choices and (key == "name" or chance(rng, 0.4))]
    arguments = {key: pick(rng, choices[key]) for key in used}
    made = attempt(function, **arguments)
    if made is REFUSED or name in ("load_dataset", "breakfast"):
        return
    require(np.isfinite(made.X).all(), f"{name} gives numbers that are not finite")
    if "random_state" in arguments:
        same_bytes(made.X, function(**arguments).X, f"{name} again")

"""Neighbor graphs with random contents, fair and hostile, and all that takes a graph."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

from fuzz.data import chance, labels, pick
from fuzz.function_cases import measure
from fuzz.parameters import random_parameters
from fuzz.rules import REFUSED, UserFault, attempt, contents, require, unchanged
from lowland import metrics
from lowland._base import registry
from lowland.neighbors import NeighborGraph, knn_graph

INDEX_FAULTS = (-1, -2, -7, 10**6, 2**31 - 1, -(2**31))
DISTANCE_FAULTS = (np.nan, np.inf, -1.0, -0.0, 1e300, 5e-324, -np.inf)
OTHERS: tuple[Any, ...] = (None, 0, -1, 1.5, "x", 10**30, True, np.array([3]), "precomputed", [])


def graph_case(rng: np.random.Generator) -> None:
    graph, n = random_graph(rng)
    if graph is REFUSED:
        return
    attempt(repr, graph)
    attempt(len, graph)
    for name in ("to_csr", "in_distances"):
        attempt(getattr(graph, name))
    if chance(rng, 0.5):
        _fit(rng, graph)
    else:
        names = [name for name in metrics.__all__ if name[0].islower()]
        Y, X = rng.standard_normal((n, 2)), rng.standard_normal((n, 3))
        options = {"graph": graph} if chance(rng, 0.7) else {}
        measure(rng, pick(rng, names), X if options else graph, Y, options, n, fair=False)


def _fit(rng: np.random.Generator, graph: Any) -> None:
    cls = pick(
        rng, [cls for cls in registry.all_methods() if cls.accepts_graph or chance(rng, 0.1)]
    )
    n = np.shape(graph.indices)[0] if np.ndim(graph.indices) else 3
    params = random_parameters(rng, cls, n, 3, share=0.1)
    model = cls(**params)
    before = contents([graph.indices, graph.distances])
    Y = attempt(model.fit_transform, graph, labels(rng, n) if cls.needs_target else None)
    unchanged(before, [graph.indices, graph.distances])
    if Y is REFUSED:
        return
    placed = np.delete(np.asarray(Y), getattr(model, "excluded_", []), axis=0)
    require(np.isfinite(placed).all(), "a map with numbers that are not finite")
    require(len(Y) == len(graph), f"a map of shape {np.shape(Y)}")
    attempt(model.transform, graph)
    attempt(model.transform, np.ones((2, n)))


def random_graph(rng: np.random.Generator) -> tuple[Any, int]:
    """A graph made by the constructor, and the number of its rows."""
    n = int(rng.integers(1, 60))
    k = int(rng.integers(1, max(2, min(n, 12))))
    fields = _fields(rng, n, k)
    for _ in range(int(pick(rng, [0, 1, 1, 1, 2]))):
        with contextlib.suppress(UserFault):
            pick(rng, [_spoil_indices, _spoil_distances, _spoil_shapes, _spoil_fields])(rng, fields)
    before = contents([fields["indices"], fields["distances"]])
    graph = attempt(NeighborGraph, **fields)
    unchanged(before, [fields["indices"], fields["distances"]])
    return graph, n


def _fields(rng: np.random.Generator, n: int, k: int) -> dict[str, Any]:
    if n > k and chance(rng, 0.6):
        found = knn_graph(rng.standard_normal((n, 2)), k)
        return {"indices": found.indices.copy(), "distances": found.distances.copy(), "n_points": n}
    return {
        "indices": rng.integers(0, n, (n, k)).astype(np.int32),
        "distances": np.sort(rng.random((n, k)), axis=1),
        "n_points": n,
    }


def _spoil_indices(rng: np.random.Generator, fields: dict[str, Any]) -> None:
    indices = np.array(fields["indices"])
    if indices.dtype.kind != "i" or not indices.size or indices.ndim != 2:
        return
    place = int(rng.integers(indices.size))
    known = [*INDEX_FAULTS, len(indices), len(indices) - 1]
    least, most = np.iinfo(indices.dtype).min, np.iinfo(indices.dtype).max
    wrong = pick(rng, [number for number in known if least <= number <= most])
    kind = pick(rng, ["one", "one", "itself", "twice", "all", "row"])
    if kind == "one":
        indices.flat[place] = wrong
    elif kind == "itself":
        indices[:, 0] = np.arange(len(indices))
    elif kind == "twice":
        indices[:] = indices[:, :1]
    elif kind == "all":
        indices[:] = wrong
    else:
        indices[rng.integers(len(indices))] = -1
    fields["indices"] = indices


def _spoil_distances(rng: np.random.Generator, fields: dict[str, Any]) -> None:
    distances = np.array(fields["distances"])
    if distances.dtype.kind != "f" or not distances.size or distances.ndim != 2:
        return
    kind = pick(rng, ["one", "one", "all", "unsorted", "scaled"])
    with np.errstate(all="ignore"):
        if kind == "one":
            distances.flat[rng.integers(distances.size)] = pick(rng, DISTANCE_FAULTS)
        elif kind == "all":
            distances[:] = pick(rng, [*DISTANCE_FAULTS, 0.0])
        elif kind == "unsorted":
            distances = distances[:, ::-1].copy()
        else:
            distances *= 10.0 ** float(rng.integers(-300, 300))
    fields["distances"] = distances


def _spoil_shapes(rng: np.random.Generator, fields: dict[str, Any]) -> None:
    name = pick(rng, ["indices", "distances"])
    array = np.asarray(fields[name])
    changes = [
        lambda: array[:-1],
        lambda: array[..., :-1],
        lambda: array.ravel(),
        lambda: array[..., None],
        lambda: array[:0],
        lambda: array[..., :0],
        lambda: array.astype(float),
        lambda: array.astype(np.float32),
        lambda: array.astype(np.int8),
        lambda: array.astype(np.uint64),
        lambda: array.astype(object),
        lambda: array.astype(str),
        lambda: array.astype(complex),
        lambda: array.astype(bool),
        lambda: array.tolist(),
        lambda: np.asfortranarray(array),
        lambda: array.astype(array.dtype.newbyteorder(">")),
        lambda: np.float64(3.0),
        lambda: None,
    ]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fields[name] = pick(rng, changes)()
    except (TypeError, ValueError, IndexError) as error:
        raise UserFault from error


def _spoil_fields(rng: np.random.Generator, fields: dict[str, Any]) -> None:
    name = pick(rng, ["n_points", "n_points", "metric", "recall_", "recall_sample_"])
    n = np.shape(fields["indices"])[0] if np.ndim(fields["indices"]) else 3
    near: list[Any] = [n + 1, n - 1] if name == "n_points" else ["sqeuclidean", "cosine", np.nan]
    fields[name] = pick(rng, [*near, *OTHERS])

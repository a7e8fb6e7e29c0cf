"""Model files: damaged ones, and whole archives with hostile parameters and arrays."""

from __future__ import annotations

import functools
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fuzz.damage import damage
from fuzz.data import chance, pick
from fuzz.parameters import FOREIGN
from fuzz.rules import REFUSED, attempt, require
from lowland import PCA, load
from lowland._base import registry
from lowland._base.chain import Chain
from lowland._base.models.codec import read_model, write_model
from lowland.errors import ModelFileError
from lowland.preparation.preparation import Preparation

ROWS, COLUMNS = 40, 4


class Saved(NamedTuple):
    """The bytes of a saved model, and rows for it."""

    content: bytes
    rows: np.ndarray


def model_case(rng: np.random.Generator) -> None:
    saved = saved_model(pick(rng, variants()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.lowland"
        path.write_bytes(saved.content)
        kind = pick(rng, [_damaged, _rezipped, _altered, _altered, _altered])
        if not kind(rng, path):
            return
        model = attempt(_loaded, path, warned=True)
        if model is not REFUSED:
            use_loaded(model, saved.rows, Path(folder))


def _loaded(path: Path) -> Any:
    """``load`` either gives a model or blames the file."""
    try:
        return load(path)
    except ModelFileError as error:
        require(str(path) in str(error), "the error does not name the file")
        raise


def use_loaded(model: Any, rows: np.ndarray, folder: Path) -> None:
    """A model that was accepted works or refuses; it never fails otherwise."""
    repr(model)
    if getattr(model, "verbose", False):  # progress is not a finding
        model.verbose = False
    width = getattr(model, "n_features_in_", rows.shape[1])
    rows = np.resize(rows, (len(rows), min(abs(int(width)), 1000)))
    placed = attempt(model.transform, rows, warned=True)
    for name in ("predict", "predict_proba", "decision_function", "get_feature_names_out"):
        if hasattr(model, name):
            attempt(getattr(model, name), *([rows] if name[0] != "g" else []), warned=True)
    if hasattr(model, "inverse_transform") and isinstance(placed, np.ndarray):
        attempt(model.inverse_transform, placed, warned=True)
    if attempt(model.save, folder / "again.lowland", warned=True) is not REFUSED:
        load(folder / "again.lowland")


# --- models ---------------------------------------------------------------------------------------


@functools.cache
def variants() -> tuple[tuple[str, str], ...]:
    """A class and a kind of fit: on rows, on distances, on sparse rows, on named columns."""
    made: list[tuple[str, str]] = []
    for cls in registry.all_methods():
        made.append((cls.__name__, "rows"))
        made += [(cls.__name__, "distances")] * cls.accepts_distances
        made += [(cls.__name__, "graph")] * cls.accepts_graph
    made += [(cls.__name__, "rows") for cls in registry.all_selectors()]
    made += [("PCA", "named"), ("PCA", "sparse"), ("KernelPCA", "sparse"), ("TSNE", "sparse")]
    made += [("KernelPCA", "landmarks"), ("Isomap", "landmarks"), ("Isomap", "groups")]
    made += [("LaplacianEigenmaps", "groups"), ("Isomap", "scaled"), ("MDS", "scaled")]
    made += [("Preparation", "rows"), ("Preparation", "text"), ("Chain", "rows")]
    made += [("Preparation", "mixed"), ("MDS", "gower")]
    return tuple(made)


@functools.cache
def saved_model(variant: tuple[str, str]) -> Saved:
    """A small fitted model as bytes; made once in a process."""
    model, rows = _fitted(*variant)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.lowland"
        if variant[0] == "Preparation":  # saved only as a step of a chain
            model = Chain([model])
        model.save(path)
        return Saved(path.read_bytes(), rows)


def _fitted(name: str, kind: str) -> tuple[Any, np.ndarray]:
    from lowland.neighbors import knn_graph

    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((ROWS, COLUMNS)))
    X[20:] += 100 if kind == "groups" else 0
    X *= 1e140 if kind == "scaled" else 1
    y = np.arange(ROWS) % 3
    if name == "Chain":
        ready = Preparation(scale="standard").fit(X)
        return Chain([ready, PCA(2).fit(ready.transform(X))]), X[:5]
    if name == "Preparation":
        return _preparation(X, kind)
    cls = registry.get_any(name)
    small = {"max_iter": 15, "n_neighbors": 8, "perplexity": 5.0, "cv": 2, "random_state": 0}
    if kind == "landmarks":
        small |= {"solver": "nystroem", "n_landmarks": 10, "landmarks": 10}
    params = {key: value for key, value in small.items() if key in cls.parameters()}
    if kind == "distances":
        D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
        return cls(**params, metric="precomputed").fit(D), D[:5]
    if kind == "gower":
        return cls(**params, metric="gower").fit(X), X[:5]
    if kind == "graph":
        return cls(**params).fit(knn_graph(X, 20)), X[:5]
    if kind == "sparse":
        return cls(**params).fit(scipy.sparse.csr_matrix(np.where(X > 1, X, 0)), y), X[:5]
    if kind == "named":
        import pandas

        return cls(**params).fit(pandas.DataFrame(X, columns=list("abcd"))), X[:5]
    return cls(**params).fit(X, y if cls.needs_target else None), X[:5]


def _preparation(X: np.ndarray, kind: str) -> tuple[Any, np.ndarray]:
    import polars

    if kind == "rows":
        return Preparation(scale="robust").fit(X), X[:5]
    frame = polars.DataFrame(X[:, :3], schema=list("abc"))
    if kind == "text":
        return Preparation().fit(frame.with_columns(d=polars.Series(["u", "v"] * 20))), X[:5]
    mixed = frame.with_columns(
        d=polars.Series(["no", "yes"] * 20),
        e=polars.Series(["low", "high"] * 20),
        f=polars.Series([f"2020-01-{1 + i % 28:02d}" for i in range(ROWS)]),
    )
    encoding = {"order": {"e": ["low", "high"]}, "cyclic": {"c": 2.5}, "dates": ["f"]}
    return Preparation(**encoding).fit(mixed), X[:5]


# --- ways to spoil a model file -------------------------------------------------------------------


def _damaged(rng: np.random.Generator, path: Path) -> bool:
    path.write_bytes(damage(rng, path.read_bytes()))
    return True


def _rezipped(rng: np.random.Generator, path: Path) -> bool:
    """Members swapped, lost, renamed, doubled, or damaged one by one; the checksums are right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = list(members)
    one, other = pick(rng, names), pick(rng, names)
    kind = pick(rng, ["swap", "lose", "rename", "damage", "damage", "json", "json", "pack"])
    if kind == "swap":
        members[one], members[other] = members[other], members[one]
    elif kind == "lose":
        del members[one]
    elif kind == "rename":
        members[pick(rng, ["../x.npy", "arrays/..", "x", "arrays/\x00.npy"])] = members.pop(one)
    elif kind == "damage":
        members[one] = damage(rng, members[one])
    elif kind == "json":
        members["manifest.json"] = _other_json(rng, members["manifest.json"])
    packed = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if kind == "pack" else zipfile.ZIP_STORED
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(packed.getvalue())
    return True


def _other_json(rng: np.random.Generator, text: bytes) -> bytes:
    """The manifest with one value replaced, or one entry added or lost."""
    manifest = json.loads(text)
    holder: Any = manifest
    while True:  # walk down a random branch
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            break
        key = pick(rng, keys)
        if isinstance(holder[key], dict | list) and holder[key] and chance(rng, 0.75):
            holder = holder[key]
            continue
        deep: Any = []
        for _ in range(60):
            deep = [deep]
        values = [None, -1, 0, 2**63, 10**400, 1e308, "x", "", [], {}, True, {"$float": "nan"}]
        values += [{"$array": "arrays/x.npy"}, {"$tuple": [1]}, {"$scalar": ["int8", 300]}, deep]
        values += [{"$sparse": {}}, {"$strings": {}}, {"$dict": {"p": {"$float": "inf"}}}]
        if chance(rng, 0.1):
            del holder[key]
        else:
            holder[key] = pick(rng, values)
        break
    return json.dumps(manifest).encode()


def _altered(rng: np.random.Generator, path: Path) -> bool:
    """A valid archive, written by our own writer, with other values in it."""
    model = read_model(path)
    params, state = model.params, model.state
    if model.class_name == "Chain":
        step = pick(rng, state["steps"])
        params, state = step["params"], step["state"]
    for _ in range(int(pick(rng, [1, 1, 2]))):
        group = params if chance(rng, 0.15) else state
        if not group:
            return False
        name = pick(rng, group)
        group[name] = other_value(rng, group[name])
    try:
        write_model(path, model.class_name, model.params, model.state)
    except ModelFileError:  # a value that no file can hold
        return False
    return True


def other_value(rng: np.random.Generator, value: Any) -> Any:
    """A value that resembles the given one, but for its contents, its type or its shape."""
    if scipy.sparse.issparse(value):
        part = pick(rng, ["data", "indices", "indptr"])
        changed = value.copy()
        setattr(changed, part, _other_array(rng, getattr(changed, part)))
        return changed
    if isinstance(value, np.ndarray) and value.size and chance(rng, 0.95):
        return _other_array(rng, value)
    if isinstance(value, int | float | np.number) and chance(rng, 0.7):
        numbers: list[Any] = [0, -1, 1, 2**31, 2**63 - 1, -(2**63), float("nan"), 1e308, -1e308]
        return type(value)(0) if chance(rng, 0.2) else pick(rng, [*numbers, 5e-324, 7, 0.0])
    return pick(rng, [*FOREIGN, np.zeros(0), np.zeros((3, 3)), "x" * 100])


def _other_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    new = np.array(array)
    kinds = ["one", "one", "one", "all", "shuffled", "type", "shape", "constant", "order"]
    kind = pick(rng, kinds if new.ndim else ["one", "all", "type"])
    if new.dtype.kind in "iu" and kind in ("one", "all", "constant"):
        limit = int(np.iinfo(new.dtype).max)
        high = int(new.max()) + 1
        wrong = pick(rng, [-1, -7, high, high - 1, 0, limit, -limit, 100_000, new.size])
        wrong = max(-limit, min(wrong, limit))
    elif new.dtype.kind == "f":
        wrong = pick(rng, [np.nan, np.inf, -1.0, 0.0, 1e308, -1e308, 5e-324, 1e154, -1e-3])
    else:
        wrong = pick(rng, list(new.flat)) if new.size else 0
    with np.errstate(all="ignore"):
        if new.dtype.kind == "u":
            wrong = abs(wrong)
        if kind == "one" and new.size:
            new.reshape(-1)[rng.integers(new.size)] = wrong
        elif kind in ("all", "constant"):
            new[...] = wrong
        elif kind == "shuffled":
            new = rng.permutation(new)
        elif kind == "order":
            new = np.ascontiguousarray(new[::-1])
        elif kind == "type" and new.dtype.kind in "iufb":
            new = new.astype(pick(rng, [np.int8, np.float32, np.float64, np.int64, bool, ">i4"]))
        elif kind == "shape":
            new = pick(rng, [new[:-1], new[:0], new.ravel(), new[None], np.concatenate([new, new])])
    return new

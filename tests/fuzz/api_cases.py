"""Random calls of the Python interface."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.data import Data, chance, labels, pick, random_distances, random_shape, random_table
from fuzz.function_cases import function_case
from fuzz.parameters import random_parameters
from fuzz.rules import REFUSED, attempt, contents, dense, require, same_bytes, unchanged
from lowland import load
from lowland._base import registry

# Methods beside transform that give one result for each row.
OF_ROWS = ("predict", "predict_proba", "decision_function", "predict_log_proba")
OF_ROWS += ("reconstruction_error",)


def api_case(rng: np.random.Generator) -> None:
    (estimator_case if chance(rng, 0.65) else function_case)(rng)


def estimator_case(rng: np.random.Generator) -> None:
    """A map, a selector or a preparation, fitted to a random table and used on new rows."""
    cls = pick(rng, [*registry.all_methods(), *registry.all_selectors()])
    n, p = random_shape(rng)
    params = random_parameters(rng, cls, n, p)
    named = [value for value in params.values() if isinstance(value, str)]
    if "precomputed" in named and chance(rng, 0.9):
        data = random_distances(rng, n)
    else:
        data = random_table(rng, (n, p))
    wants_y = cls.needs_target or chance(rng, 0.1)
    y = labels(rng, n) if wants_y else None
    run_estimator(rng, cls, params, data, y)
    if hasattr(cls, "partial_fit") and chance(rng, 0.5):
        _in_batches(rng, cls(**params), p)


def run_estimator(
    rng: np.random.Generator, cls: Any, params: dict[str, Any], data: Data, y: Any
) -> None:
    """Fit, fit again, place new rows, save and load; every result keeps the rules."""
    before = contents([data.X, y, params])
    model = cls(**params)
    repr(model)
    of_others = "scoring" in cls.parameters()  # models and scorers of another library warn
    Y = attempt(model.fit_transform, data.X, y, warned=of_others)
    if data.container != "generator":
        unchanged(before, [data.X, y, params])
    if Y is REFUSED:
        require(not isinstance(attempt(model.transform, data.X), np.ndarray), "fitted by a refusal")
        return
    require(Y.shape[:1] == data.plain.shape[:1], f"a map of shape {Y.shape}")
    _check_numbers(Y, "fit_transform")
    repeatable = params.get("random_state", 0) is not None and "callback" not in params
    if repeatable and not isinstance(params.get("random_state"), np.random.Generator):
        other_jobs = {**params, "n_jobs": pick(rng, [1, 2, 3])}
        twin = attempt(cls(**other_jobs).fit_transform, data.X, y, warned=of_others)
        same_bytes(Y, twin, f"fit_transform again, n_jobs={other_jobs['n_jobs']}")
    _use(rng, model, data, Y)


def _use(rng: np.random.Generator, model: Any, data: Data, Y: Any) -> None:
    """Everything that a fitted model can do, on fitted rows and on new ones."""
    rows = new_rows(rng, data)
    results = {"transform": attempt(model.transform, rows)}
    if hasattr(model, "inverse_transform"):
        points = dense(Y)[:4]
        points = points + rng.standard_normal(points.shape) * pick(rng, [0, 1, 1e10, 1e200])
        results["inverse_transform"] = attempt(model.inverse_transform, points)
        _alone(model.inverse_transform, points, results["inverse_transform"])
    for name in OF_ROWS:
        if hasattr(model, name):
            results[name] = attempt(getattr(model, name), rows)
            _alone(getattr(model, name), rows, results[name])
    _alone(model.transform, rows, results["transform"])
    for name, result in results.items():
        if result is not REFUSED and name != "predict_log_proba":
            _check_numbers(result, name)
    attempt(model.get_feature_names_out)
    _copied(rng, model, rows, results["transform"])
    if attempt(model.transform, data.X) is not REFUSED:
        _saved(model, rows, results["transform"])


def _copied(rng: np.random.Generator, model: Any, rows: Any, placed: Any) -> None:
    """Copies work like the original, and so does another container of the output."""
    from sklearn.base import clone

    attempt(clone, model)
    if not any(callable(value) for value in vars(model).values()):
        twin = pickle.loads(pickle.dumps(model))
        same_bytes(placed, attempt(twin.transform, rows), "transform after pickling")
    container = pick(rng, ["pandas", "polars"])
    if placed is not REFUSED and not hasattr(placed, "toarray"):
        framed = attempt(copy.copy(model).set_output(transform=container).transform, rows)
        if framed is REFUSED:  # names that occur twice
            require(container == "polars", f"no {container} from what transform gives")
            return
        numbers = [np.asarray(result, float) for result in (placed, framed)]
        same_bytes(*numbers, f"transform to {container}")


def _in_batches(rng: np.random.Generator, model: Any, p: int) -> None:
    """Batches of any size and content; a refused batch changes nothing."""
    for _ in range(int(rng.integers(1, 5))):
        n = int(rng.integers(1, 30))
        batch = random_table(rng, (n, p), fair=0.8)
        y = labels(rng, n) if model.needs_target else None
        more = {"classes": [0, 1, 2]} if model.needs_target and chance(rng, 0.5) else {}
        before = contents([batch.X, y])
        attempt(model.partial_fit, batch.X, y, **more)
        if batch.container != "generator":
            unchanged(before, [batch.X, y])
    rows = rng.standard_normal((3, p))
    placed = attempt(model.transform, rows)
    if placed is not REFUSED:
        _check_numbers(placed, "transform after partial_fit")
        _alone(model.transform, rows, placed)
        _saved(model, rows, placed)


def new_rows(rng: np.random.Generator, data: Data) -> Any:
    """Some rows for ``transform``: fitted, new, extreme, or of another width."""
    X, m = data.X, int(rng.integers(1, 5))
    square = data.values.startswith("distances")
    kind = pick(rng, ["fitted", "near", "near", "other", "wide", "giant"])
    if kind == "fitted" and isinstance(X, np.ndarray) and X.ndim == 2 and len(X):
        return X[rng.integers(0, len(X), m)]
    n, p = data.plain.shape
    if kind in ("other", "fitted") and not square:
        return random_table(rng, (m, p)).X
    if kind == "wide":
        return np.ones((m, p + 1))
    rows = data.plain[rng.integers(0, n, m)] if n else np.ones((m, p))
    with np.errstate(all="ignore"):
        rows = rows + 0.1 * rng.random(rows.shape) * (np.abs(rows) if square else 1.0)
        return rows * pick(rng, [1e10, 1e100, 1e-100]) if kind == "giant" else rows


def _check_numbers(result: Any, name: str) -> None:
    values = dense(result)
    if values.dtype.kind == "f":
        require(np.isfinite(values).all(), f"{name} gives numbers that are not finite")


def _alone(method: Any, rows: Any, together: Any) -> None:
    """A row has the same result, to the last bit, alone and in company."""
    if together is REFUSED or not (isinstance(rows, np.ndarray) and rows.ndim == 2):
        return
    for i in range(min(len(rows), 3)):
        alone = attempt(method, rows[i : i + 1])
        same_bytes(alone, dense(together)[i : i + 1], f"{method.__name__}: a row alone")


def _saved(model: Any, rows: Any, placed: Any) -> None:
    """A saved model gives the same bytes."""
    if any(callable(value) for value in model.get_params(deep=False).values()):
        return  # a function is not saved
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.lowland"
        if attempt(model.save, path) is REFUSED:  # a parameter such as a fraction
            return
        loaded = load(path)
        same_bytes(placed, attempt(loaded.transform, rows), "transform after save and load")
        repr(loaded)
        loaded.save(Path(folder) / "again.lowland")
        same = path.read_bytes() == (Path(folder) / "again.lowland").read_bytes()
        require(same, "saved again, the file is another one")

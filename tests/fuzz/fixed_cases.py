"""Cases that once failed; they run first each time, and in the test suite."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lowland
from fuzz.parameters import FUNCTIONS
from fuzz.rules import REFUSED, attempt, require, same_bytes
from lowland.errors import LowlandError, ModelFileError
from lowland.neighbors import knn_graph

__all__ = ["FIXED"]

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


@fixed(("2 2\n1\n2\n3\n4   ",), ("2 2\n1\n2\n3   ",), ("2 2\n1\n2\0\n3\n4\n",), ("2 2\n1\n2\0",))
def odd_end_of_matrix_market(text: str) -> None:
    Path("t.mtx").write_text(f"%%MatrixMarket matrix array real general\n{text}")
    attempt(lowland.io.read_table, "t.mtx")


@fixed()
def parameter_of_a_batch() -> None:
    model = lowland.LDA(shrinkage=np.array([0.1, 0.2]))
    refused(model.partial_fit, rows(), np.arange(40) % 3)


@fixed(({"p": float("nan")},), ({"q": 1},))
def metric_of_a_radius(params: dict[str, Any]) -> None:
    refused(lowland.Isomap(radius=1.0, metric_params=params).fit, rows())


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


@fixed(("minkowski", {"q": 2}), ("euclidean", {"q": 2}), (FUNCTIONS["constant"], {"q": 2}))
def unknown_keyword_of_a_metric(metric: Any, params: dict[str, Any]) -> None:
    refused(knn_graph, rows(), 3, metric=metric, metric_params=params)
    refused(lowland.MDS(metric=metric, metric_params=params, max_iter=3).fit, rows())


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
    attempt(lowland.io.read_table, "t.arrow")


@fixed((lowland.io.read_table,), (lowland.load,))
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

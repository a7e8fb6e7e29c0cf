"""Held-out rows against naive formulas: transform, inverse_transform and predict of every method.

A row that was fitted keeps its place by a short cut in many methods, so it cannot show an error of
the formula. The rows here were never fitted, and what to expect of them comes from
``support.oracles``, which knows the definition of the method and no line of its code.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lowland import PCA
from lowland._base import registry
from lowland.errors import ParameterError
from support.cases import Cases
from support.held_out import CASES, data_of
from support.methods import dimensions, small
from support.oracles import CLASSES, OBJECTIVES, PLACES, ROWS_BACK, HeldOut, oracle_of
from support.oracles.linear import pca_outlier_scores

CLOSE = 1e-6  # of the width of the map: what rounding may do to a formula
# far from converged maps will do, too
STEPS = {"MDS", "NonmetricMDS", "Sammon", "LinearMDS", "MVU"}


def cases_of(method: type) -> list[tuple[dict[str, Any], str]]:
    assert method.__name__ in CASES, (
        f"{method.__name__} has no cases with held-out rows; add some to the WITNESS of its "
        "reference test."
    )
    return CASES[method.__name__]


@functools.cache
def fitted(method: type, number: int) -> HeldOut:
    """The model of a case; fitted once for all tests."""
    params, kind = cases_of(method)[number]
    data = data_of(kind)
    suited = {**small(method), "n_components": dimensions(method), "random_state": 0}
    if method.__name__ in STEPS:
        suited["max_iter"] = 30
    if "early_exaggeration" in method.parameters():
        suited |= {"early_exaggeration_iter": 50, "max_iter": 200}
    if method.__name__ == "DiffusionMaps":
        suited["n_neighbors"] = None
    if method.parameters()["n_components"].default is None:
        suited["n_components"] = None
    model = method(**{**suited, **params})
    Y = model.fit_transform(data.X, data.y)
    return HeldOut(model, model.get_params(), data.X, data.y, Y, data.new)


def for_each_case(method: type, check: Callable[[HeldOut], object]) -> None:
    results = Cases()
    for number, (params, kind) in enumerate(cases_of(method)):
        shown = {name: "..." if np.ndim(v) == 2 else v for name, v in params.items()}
        results.run(f"{shown} on {kind}", lambda n=number: check(fitted(method, n)))
    results.finish()


# --- transform --------------------------------------------------------------------------------


def test_every_method_has_an_oracle(method):
    oracle_of(method, PLACES, OBJECTIVES)
    assert cases_of(method)


def test_no_oracle_is_left_without_a_method():
    known = {method.__name__ for method in registry.all_methods()}
    assert {*PLACES, *OBJECTIVES, *ROWS_BACK, *CLASSES, *CASES} <= known


def test_new_rows_are_placed_as_the_definition_says(method):
    oracle = oracle_of(method, PLACES, OBJECTIVES)
    by_formula = method.__name__ in PLACES

    def check(task: HeldOut) -> None:
        placed = task.model.transform(task.new)
        assert placed.shape == (len(task.new), task.Y.shape[1])
        if by_formula:
            expected = oracle(task)
            size = max(np.abs(expected).max(), np.abs(task.Y).max())
            np.testing.assert_allclose(placed, expected, rtol=0, atol=CLOSE * size)
            return
        above = [
            assert_lowest(z.astype(float), height, task, row)
            for row, (z, height) in enumerate(zip(placed, oracle(task), strict=True))
        ]
        assert np.mean(above) <= MEAN_ABOVE

    for_each_case(method, check)


# The stress has one place, the lowest of all. The divergence of neighbor embeddings has a minimum
# in every hole between points; the place is the one below the mean of the neighbors.
GLOBAL = {
    "GPLVM",
    "LocalMDS",
    "MDS",
    "NonlinearPCA",
    "NonmetricMDS",
    "RankVisu",
    "RelationalPerspectiveMap",
    "Sammon",
    "TCIE",
}
# Of the height. The descent of a neighbor embedding ends with steps of 1e-4, which may still be
# steps along a flat valley.
ABOVE = {True: 1e-6, False: 1e-3}
# Heights that are constant between jumps: their lowest piece may be too small to be found, and
# which pieces there are depends on the map, which depends on the last digits of the processor. So a
# row may be above the lowest node by so much of what that node is below half of the nodes, and all
# rows by MEAN_ABOVE on average. Over 12 maps of data that differ in the last digit, one row was
# above by up to 0.10 and the rows of a map by 0.01. Searches that are none fail: the place of the
# nearest neighbor is above by more than 0.35 and 0.07, the mean of five by more than 0.38 and 0.07.
STEPPED = {"RankVisu": 0.25}
MEAN_ABOVE = 0.05


def assert_lowest(z: np.ndarray, height: Any, task: HeldOut, row: int) -> float:
    """The place is given, or no place of a grid, nor what descends from it, is lower.

    Returns how much lower one is all the same, if heights are stepped; see ``STEPPED``.
    """
    if not callable(height):
        np.testing.assert_array_equal(z, height)
        return 0.0
    anywhere = type(task.model).__name__ in GLOBAL
    nodes = grid_around(task.Y.astype(float)) if anywhere else z[None]
    width = np.ptp(task.Y, axis=0).max()
    lowest = brute_force(height, nodes, width, 0.2 if anywhere else 1e-3)
    reached = float(height(z[None])[0])
    most, stepped = lowest + ABOVE[anywhere] * abs(lowest), STEPPED.get(type(task.model).__name__)
    depth = float(np.median(height(nodes)) - lowest) if stepped else 0.0
    if stepped:
        most = lowest + stepped * depth
    assert reached <= most, f"new row {row} is placed at {reached:g}, but {lowest:g} is possible"
    return max(0.0, reached - lowest) / depth if depth > 0 else 0.0


def grid_around(Y: np.ndarray) -> np.ndarray:
    """The nodes of a grid three times as wide as the map."""
    q, low, high = Y.shape[1], Y.min(axis=0), Y.max(axis=0)
    width = (high - low).max()
    n_nodes = {1: 201, 2: 15, 3: 7}.get(q, 5)
    axes = [np.linspace(a - width, b + width, n_nodes) for a, b in zip(low, high, strict=True)]
    return np.array(list(itertools.product(*axes)))


def brute_force(
    height: Callable[[np.ndarray], np.ndarray], nodes: np.ndarray, width: float, pitch: float
) -> float:
    """The lowest value found from the lowest nodes, in steps of ``pitch`` times the width at first.

    Every point moves to the lowest of the nodes around it; where there is none, the nodes come
    closer.
    """
    q = nodes.shape[1]
    points = nodes[np.argsort(height(nodes))[:6]]
    around = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=q)))
    step = np.full(len(points), pitch * width)
    while step.max() > 1e-5 * width:
        tried = points[:, None] + step[:, None, None] * around
        values = height(tried.reshape(-1, q)).reshape(len(points), -1)
        best = values.argmin(axis=1)
        stays = values[np.arange(len(points)), best] >= values[:, len(around) // 2]
        points = np.where(stays[:, None], points, tried[np.arange(len(points)), best])
        step = np.where(stays, step / 2, step)
    return float(height(points).min())


# --- back, classes, outliers ------------------------------------------------------------------


def test_rows_for_points_of_the_map_are_those_of_the_definition(method):
    if not hasattr(method, "inverse_transform"):
        assert method.__name__ not in ROWS_BACK
        return
    oracle = oracle_of(method, ROWS_BACK)

    def check(task: HeldOut) -> None:
        given = "precomputed" in (task.params.get("metric"), task.params.get("kernel"))
        # rows are found by their Euclidean distances, whatever those of the fit were
        given |= method.__name__ == "CurvilinearComponentAnalysis" and (
            task.params["metric"] != "euclidean"
        )
        Z = between_places(task.Y)
        if given:
            with pytest.raises(ParameterError, match="inverse_transform"):
                task.model.inverse_transform(Z)
            return
        back, expected = task.model.inverse_transform(Z), oracle(task, Z)
        # a fixed point is sought until its gain is 1e-10, which is 1e-5 of the way
        iterated = method.__name__ == "KernelPCA" and task.params["kernel"] == "rbf"
        close = (1e-3 if iterated else CLOSE) * np.nanmax(np.abs(task.X))
        np.testing.assert_allclose(back, expected, rtol=0, atol=close)

    for_each_case(method, check)


def between_places(Y: np.ndarray) -> np.ndarray:
    """Points of the map where no fitted row is."""
    return 0.6 * Y[:6].astype(float) + 0.4 * Y[6:12] + 0.01 * np.ptp(Y, axis=0)


def test_classes_of_new_rows_are_those_of_bayes(method):
    if not hasattr(method, "predict_proba"):
        assert method.__name__ not in CLASSES
        return
    oracle = oracle_of(method, CLASSES)

    def check(task: HeldOut) -> None:
        P, names = oracle(task), np.array(sorted(set(task.y)))
        np.testing.assert_allclose(task.model.predict_proba(task.new), P, atol=CLOSE)
        np.testing.assert_array_equal(task.model.predict(task.new), names[P.argmax(axis=1)])
        scores = task.model.decision_function(task.new)
        scores = scores if scores.ndim == 2 else np.column_stack([0 * scores, scores])
        with np.errstate(divide="ignore"):
            odds = np.log(P) - np.log(P[:, :1])
        near = P.min(axis=1) > 1e-12
        np.testing.assert_allclose((scores - scores[:, :1])[near], odds[near], atol=1e-5)
        if len(names) == 2:
            second = task.model.transform(task.new)[:, 0] > task.model.threshold_
            np.testing.assert_array_equal(second, P[:, 1] > 0.5)

    for_each_case(method, check)


def test_outlier_scores_of_new_rows():
    def check(task: HeldOut) -> None:
        t2, residual = pca_outlier_scores(task)
        found = task.model.outlier_scores(task.new)
        np.testing.assert_allclose(found.t2, t2, rtol=1e-6)
        size = 1e-9 * np.square(task.new).sum()  # all axes leave no residual but rounding
        np.testing.assert_allclose(found.residual, residual, rtol=1e-6, atol=size)
        np.testing.assert_array_equal(task.model.reconstruction_error(task.new), found.residual)

    tried = [n for n, (_, kind) in enumerate(CASES["PCA"]) if kind == "rows"]
    results = Cases()
    for number in tried:
        results.run(str(CASES["PCA"][number]), lambda n=number: check(fitted(PCA, n)))
    results.finish()

"""Measures see the unit of a table only where they have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowland import metrics
from lowland.trust import trust
from support.cases import each

EXPONENTS = [-240, -40, 40, 240]  # of two
SCALES = [*((np.float64, e) for e in EXPONENTS), *((np.float32, e) for e in (-100, -40, 40, 100))]
at_every_scale = each(("dtype", "exponent"), SCALES, ids=[f"{d.__name__} 2^{e}" for d, e in SCALES])
Y = np.arange(60) % 3


def irregular() -> np.ndarray:
    rng = np.random.default_rng(5)
    mixed = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5))
    rows = mixed * [1, 3, 0.5, 1, 2] + np.exp(mixed[:, :1] / 2)
    return (rows - rows.min(axis=0)) / np.ptp(rows)


X = irregular()
MAP = X[:, :2] ** 2

# The power of the unit of the data in each measure of data and map in one unit.
TOGETHER = {
    metrics.trustworthiness: 0,
    metrics.continuity: 0,
    metrics.neighbor_recall: 0,
    metrics.lcmc: 0,
    metrics.mean_relative_rank_errors: 0,
    metrics.rnx_auc: 0,
    metrics.raw_stress: 2,
    metrics.scale_normalized_stress: 0,
    metrics.sammon_stress: 0,
    metrics.kruskal_stress1: 0,
    metrics.shepard_correlation: 0,
    metrics.residual_variance: 0,
    metrics.explained_variance: 0,
    metrics.reconstruction_error: 2,
    metrics.point_trust: 0,
    metrics.point_stress: 0,
    metrics.missing_neighbors: 0,
    metrics.strangers: 0,
}


def same_in_unit(found: Any, ordinary: Any, exponent: int) -> None:
    back = np.ldexp(np.asarray(found, np.float64), -exponent)
    np.testing.assert_allclose(back, np.asarray(ordinary, np.float64), rtol=1e-4, atol=1e-6)


@at_every_scale
@each("measure", TOGETHER)
def test_measures_of_data_and_map_in_one_extreme_unit(
    measure: Any, dtype: type, exponent: int
) -> None:
    data, points = X.astype(dtype), MAP.astype(dtype)
    ordinary = measure(data, points)
    found = measure(np.ldexp(data, exponent), np.ldexp(points, exponent))
    same_in_unit(found, ordinary, TOGETHER[measure] * exponent)


UNITLESS = [m for m in TOGETHER if TOGETHER[m] == 0 and m is not metrics.sammon_stress]


@at_every_scale
@each("measure", UNITLESS)
def test_measures_without_a_unit_do_not_see_that_of_the_map(
    measure: Any, dtype: type, exponent: int
) -> None:
    data, points = X.astype(dtype), MAP.astype(dtype)
    found = measure(data, np.ldexp(points, exponent))
    same_in_unit(found, measure(data, points), 0)


@each("exponent", EXPONENTS)
@each("measure", [metrics.knn_accuracy, metrics.neighborhood_hit, metrics.silhouette])
def test_measures_of_labels_do_not_see_the_unit(measure: Any, exponent: int) -> None:
    same_in_unit(measure(np.ldexp(X, exponent), Y), measure(X, Y), 0)


@each("exponent", EXPONENTS)
@each("measure", [metrics.intrinsic_dimension, metrics.distance_concentration, metrics.hubness])
def test_measures_of_one_table_do_not_see_the_unit(measure: Any, exponent: int) -> None:
    found, ordinary = measure(np.ldexp(X, exponent)), measure(X)
    pairs = zip(found, ordinary, strict=True) if isinstance(found, tuple) else [(found, ordinary)]
    for a, b in pairs:
        same_in_unit(a, b, 0)


@each("exponent", EXPONENTS)
def test_trust_does_not_see_the_unit(exponent: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(120, 3))
    data[60:] += 6
    points, codes = data[:, :2], np.repeat([1, 2], 60)
    scaled, moved = np.ldexp(data, exponent), np.ldexp(points, exponent)
    assert metrics.gap_test(scaled, codes, moved) == metrics.gap_test(data, codes, points)
    assert metrics.inner_gaps(scaled, np.ones(120, int))[1].verdict == "real"
    assert np.array_equal(metrics.islands(moved), metrics.islands(points))
    assert metrics.map_agreement(points, moved).mean == 1
    ordinary, found = trust(data, points), trust(scaled, moved)
    assert [sentence[:2] for sentence in found.sentences] == [
        sentence[:2] for sentence in ordinary.sentences
    ]
    assert np.array_equal(found.points.kind, ordinary.points.kind)
    same_in_unit(found.points.home, ordinary.points.home, exponent)


@each("metric", ["manhattan", "chebyshev", "minkowski", "canberra", "braycurtis"])
@each("exponent", [-240, 240])
def test_measures_in_other_metrics(metric: str, exponent: int) -> None:
    for measure in (metrics.trustworthiness, metrics.rnx_auc, metrics.kruskal_stress1):
        found = measure(np.ldexp(X, exponent), MAP, metric=metric)
        same_in_unit(found, measure(X, MAP, metric=metric), 0)


@each("exponent", [-120, 120])
def test_the_error_of_a_sample_is_in_its_unit(exponent: int) -> None:
    a, b = (metrics.raw_stress(np.ldexp(X, e), np.ldexp(MAP, e), sample=30) for e in (0, exponent))
    assert np.ldexp(b.standard_error, -2 * exponent) == pytest.approx(a.standard_error)
    assert a.standard_error > 0

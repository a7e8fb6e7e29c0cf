"""Measures, selectors and parameters at the ends of the number range: right, finite, or refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lowland
from lowland import metrics
from lowland._base import registry
from lowland._base.constraints import Constraint, Either, Integer, Real
from lowland.errors import DataError, LowlandError, ParameterError
from lowland.selection._base import Selector
from lowland.trust import trust
from support.cases import each
from support.methods import dimensions, small

EXPONENTS = [-1000, -660, -330, -100, 100, 330, 500, 660, 1000]  # of two: about 1e-301 to 1e301
SCALES = [*((np.float64, e) for e in EXPONENTS), *((np.float32, e) for e in (-120, -90, 90, 120))]
at_every_scale = each(("dtype", "exponent"), SCALES, ids=[f"{d.__name__} 2^{e}" for d, e in SCALES])
Y = np.arange(60) % 3


def irregular() -> np.ndarray:
    rng = np.random.default_rng(5)
    mixed = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5))
    rows = mixed * [1, 3, 0.5, 1, 2] + np.exp(mixed[:, :1] / 2)
    return (rows - rows.min(axis=0)) / np.ptp(rows)


X = irregular()
MAP = X[:, :2] ** 2

# --- measures ------------------------------------------------------------------------------------

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
    try:
        found = measure(np.ldexp(data, exponent), np.ldexp(points, exponent))
    except DataError as refusal:
        assert dtype is np.float64
        assert abs(exponent) > 400  # squares of these overflow or vanish
        assert "divide" in str(refusal)  # noqa: PT017
        return
    same_in_unit(found, ordinary, TOGETHER[measure] * exponent)


UNITLESS = [m for m in TOGETHER if TOGETHER[m] == 0 and m is not metrics.sammon_stress]


@at_every_scale
@each("measure", UNITLESS)
def test_measures_without_a_unit_do_not_see_that_of_the_map(
    measure: Any, dtype: type, exponent: int
) -> None:
    data, points = X.astype(dtype), MAP.astype(dtype)
    try:
        found = measure(data, np.ldexp(points, exponent))
    except DataError as refusal:
        assert abs(exponent) > 400
        assert "divide" in str(refusal)  # noqa: PT017
        return
    same_in_unit(found, measure(data, points), 0)


@each("exponent", [-1000, 1000])
@each("measure", [metrics.kruskal_stress1, metrics.explained_variance, metrics.shepard_correlation])
def test_measures_that_need_no_refusal_have_none(measure: Any, exponent: int) -> None:
    same_in_unit(measure(np.ldexp(X, exponent), MAP), measure(X, MAP), 0)
    same_in_unit(measure(X, np.ldexp(MAP, exponent)), measure(X, MAP), 0)


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
@each("exponent", [-900, 900])
def test_measures_in_other_metrics(metric: str, exponent: int) -> None:
    for measure in (metrics.trustworthiness, metrics.rnx_auc, metrics.kruskal_stress1):
        found = measure(np.ldexp(X, exponent), MAP, metric=metric)
        same_in_unit(found, measure(X, MAP, metric=metric), 0)


def test_distances_beyond_the_largest_number_do_not_tie() -> None:
    far = np.where(np.median(X, axis=0) < X, 1.5e308, -1.5e308) * (1 - X / 10)
    for metric in ("euclidean", "manhattan"):
        for measure in (metrics.rnx_auc, metrics.kruskal_stress1):
            with pytest.raises(DataError, match="divide X by"):
                measure(far, MAP, metric=metric)
    ordinary = metrics.trustworthiness(np.ldexp(far, -1000), MAP)
    assert metrics.trustworthiness(far, MAP) == ordinary  # ranks are counted in a unit


@each("exponent", [-330, 330])
def test_the_error_of_a_sample_is_in_its_unit(exponent: int) -> None:
    a, b = (metrics.raw_stress(np.ldexp(X, e), np.ldexp(MAP, e), sample=30) for e in (0, exponent))
    assert np.ldexp(b.standard_error, -2 * exponent) == pytest.approx(a.standard_error)
    assert a.standard_error > 0


# --- selectors -----------------------------------------------------------------------------------

# The power of the unit of the data in the scores; those of the others have no unit.
SCORE_POWERS = {"VarianceScore": 2, "ChiSquare": 1}


def chosen_columns(selector: type, table: np.ndarray) -> Any:
    quick = {"cv": 2} if "cv" in selector.parameters() else {}
    target = (Y > 0).astype(int) if selector is lowland.CorrelationScore else Y
    return selector(n_features=2, random_state=0, **quick).fit(table, target)


@each(("dtype", "exponent"), SCALES[::2], ids=[f"{d.__name__} 2^{e}" for d, e in SCALES[::2]])
@each("selector", registry.all_selectors(), ids=registry.selector_names())
def test_selectors_choose_the_same_columns_in_any_unit(
    selector: type, dtype: type, exponent: int
) -> None:
    if selector in WRAPPERS and abs(exponent) < 1000:
        pytest.skip("models take time")
    ordinary, far = chosen_columns(selector, X.astype(dtype)), np.ldexp(X.astype(dtype), exponent)
    try:
        found = chosen_columns(selector, far)
    except DataError as refusal:
        assert selector is lowland.VarianceScore  # whose scores are squares
        assert "divide X by" in str(refusal)  # noqa: PT017
        return
    np.testing.assert_array_equal(found.support_, ordinary.support_)
    power = SCORE_POWERS.get(selector.__name__, 0)
    same_in_unit(found.scores_, ordinary.scores_, power * exponent)


@each(
    "selector",
    [lowland.AnovaF, lowland.FisherScore, lowland.CorrelationScore, lowland.MRMR, lowland.ReliefF],
)
def test_columns_of_different_extreme_units_are_compared_as_they_are(selector: type) -> None:
    units = np.ldexp(1.0, np.array([900, -900, 0, 500, -500]))
    ordinary, found = chosen_columns(selector, X), chosen_columns(selector, X * units)
    np.testing.assert_array_equal(found.ranking_, ordinary.ranking_)
    np.testing.assert_allclose(found.scores_, ordinary.scores_, rtol=1e-9)


@each("exponent", [-330, 330, 660])
def test_a_threshold_is_in_the_unit_of_the_scores(exponent: int) -> None:
    counts = np.ldexp(X, exponent)
    least = float(np.sort(lowland.ChiSquare(2).fit(X, Y).scores_)[2])
    found = lowland.ChiSquare(threshold=float(np.ldexp(least, exponent))).fit(counts, Y)
    assert found.support_.sum() == 2


@each("exponent", [-1000, 1000])
def test_principal_variables_go_back_in_their_unit(exponent: int) -> None:
    a, b = (lowland.PrincipalVariables(2).fit(Z) for Z in (X, np.ldexp(X, exponent)))
    np.testing.assert_array_equal(b.mean_, np.ldexp(a.mean_, exponent))
    back = a.inverse_transform(a.transform(X))
    found = b.inverse_transform(b.transform(np.ldexp(X, exponent)))
    np.testing.assert_allclose(np.ldexp(found, -exponent), back, rtol=1e-9, atol=1e-12)


# --- the ends of float32 -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", registry.all_methods(), ids=registry.names())
def test_a_map_that_float32_cannot_hold_is_refused_or_held(method: type) -> None:
    largest = np.finfo(np.float32).max
    far = np.where(np.median(X, axis=0) < X, largest, -largest).astype(np.float32)
    far *= np.float32(1) - X.astype(np.float32) / 10
    quick = {"max_iter": 5} if "max_iter" in method.parameters() else {}
    model = method(dimensions(method), random_state=0, **small(method), **quick)
    try:
        found = model.fit_transform(far, Y)
    except DataError as refusal:
        assert "divide X by" in str(refusal)  # noqa: PT017
        assert not hasattr(model, "embedding_")
        return
    assert np.isfinite(found).all()


# --- parameters ----------------------------------------------------------------------------------

ENDS = [-1e308, 0.0, 5e-324, 1e-300, 1e-150, 1e-20, 1.0, 1e20, 1e150, 1e300, 1.7e308]
COUNTS = [0, 1, 20, 21, 10**6, 2**31, 2**63 - 1, 10**30, 10**5000]
FEW = X[:20, :4] + np.random.default_rng(0).normal(size=(20, 4)) / 10
# More of the first two take longer, as asked for; the last is the same for all.
LEFT_OUT = ("n_init", "max_iter", "n_jobs")
LONGER = [(lowland.UMAP, "n_epochs")]  # the number of steps under the name that users know
WRAPPERS = (lowland.RecursiveElimination, lowland.SequentialSelection)  # slow: they fit models


def options_of(constraint: Constraint) -> tuple[Constraint, ...]:
    return constraint.options if isinstance(constraint, Either) else (constraint,)


def parameters_of(kind: type) -> list[tuple[type, str]]:
    return [
        (owner, name)
        for owner in [*registry.all_methods(), *registry.all_selectors()]
        for name, field in owner.parameters().items()
        if any(isinstance(option, kind) for option in options_of(field.metadata["constraint"]))
        and name not in LEFT_OUT
        and (owner, name) not in LONGER
    ]


def name_of(part: Any) -> str:
    return getattr(part, "__name__", part)


def attempt(owner: type, name: str, value: Any) -> None:
    """A finite result, or an error of ours; memory and time stay small."""
    quick: dict[str, Any] = {"max_iter": 5} if "max_iter" in owner.parameters() else {}
    if "cv" in owner.parameters():
        quick["cv"] = 2
    count = "n_features" if issubclass(owner, Selector) else "n_components"
    given = {count: 2, "random_state": 0, **quick, **small(owner, 6, 5.0), name: value}
    target = Y[:20] > 0 if owner is lowland.CorrelationScore else Y[:20]
    rows = np.abs(FEW)
    try:
        model = owner(**given).fit(rows, target)
        found = model.transform(rows * 1.01)
    except ParameterError as error:
        assert any(f"{p}=" in str(error) for p in owner.parameters())  # noqa: PT017
        return
    except LowlandError:
        return
    assert np.isfinite(found).all()


ignore_flatness = pytest.mark.filterwarnings(
    "ignore:only .* components have a positive eigenvalue:UserWarning",
    "ignore::lowland.errors.ConvergenceWarning",
)


@pytest.mark.slow
@ignore_flatness
@each("value", ENDS)
@pytest.mark.parametrize(("owner", "name"), parameters_of(Real), ids=name_of)
def test_real_parameters_at_the_ends_of_their_range(owner: type, name: str, value: float) -> None:
    attempt(owner, name, value)


@pytest.mark.slow
@ignore_flatness
@each("value", COUNTS, ids=[str(value) if value < 10**31 else "10^5000" for value in COUNTS])
@pytest.mark.parametrize(("owner", "name"), parameters_of(Integer), ids=name_of)
def test_integer_parameters_far_beyond_the_data(owner: type, name: str, value: int) -> None:
    attempt(owner, name, value)


NUMBERS = [Fraction(1, 3), Fraction(7, 3), 10**25, np.int8(3), np.float16(0.5), np.longdouble(2.5)]


@pytest.mark.slow
@pytest.mark.parametrize("cls", [*registry.all_methods(), *registry.all_selectors()], ids=name_of)
def test_numbers_of_any_type_are_numbers(cls, tmp_path):
    """A parameter may be a fraction, a scalar of numpy or a very large integer."""
    quick = {"max_iter": 3} if "max_iter" in cls.parameters() else {}
    for name, field in cls.parameters().items():
        long = name in ("max_iter", "n_init")
        for value in NUMBERS[: 2 if long else None]:
            if field.metadata["constraint"].allows(value):
                try:
                    model = cls(**{**quick, **small(cls), name: value}).fit(X, Y)
                    assert np.isfinite(model.transform(X[:3] + 0.01)).all()
                    model.save(tmp_path / "model.lowland")
                except LowlandError:
                    continue
                lowland.load(tmp_path / "model.lowland")

"""Data of extreme scale: the same map in another unit, or a refusal that says what to divide by.

A power of two changes no digit of the data, so that it need not change one of the result.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lowland
from lowland._base import registry
from lowland._base.units import unit_powers
from lowland.errors import DataError, ModelFileError
from lowland.methods.spectral._locally_linear import LocallyLinearReducer
from lowland.metrics import quality
from lowland.neighbors import knn_graph, knn_query
from lowland.preparation.preparation import Preparation
from support.cases import each
from support.methods import dimensions, sampled

SINGLE, DOUBLE = [(np.float32, 100), (np.float32, -100)], [(np.float64, 600), (np.float64, -600)]
WITHIN = [(np.float64, 400), (np.float64, -400)]  # the squares of these are numbers
# What these take for too much or too little is a matter of the kernel, not of the numbers.
REFUSES_SINGLE = ("KernelPCA",)

scales = each(("dtype", "exponent"), SINGLE + DOUBLE)
squarable_scales = each(("dtype", "exponent"), SINGLE + WITHIN)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Irregular rows, correlated and skewed, with means far from 0."""
    rng = np.random.default_rng(42)
    mixed = rng.standard_normal((90, 6)) @ rng.standard_normal((6, 6))
    return mixed * [1, 3, 0.5, 1, 2, 1] + np.exp(mixed[:, :1]) + [10, 0, -5, 0, 1, 100]


Y = np.arange(90) % 3


def times(values: Any, exponent: int) -> Any:
    if scipy.sparse.issparse(values):
        moved = values.copy()
        moved.data = np.ldexp(values.data, exponent)
        return moved
    return np.ldexp(values, exponent)


def same_in_its_unit(found: np.ndarray, ordinary: np.ndarray, exponent: int) -> bool:
    """Whether a map is the ordinary one, or that times the scale of the data, to the last bit."""
    return np.array_equal(found, ordinary) or np.array_equal(found, times(ordinary, exponent))


def nearly_in_its_unit(found: np.ndarray, ordinary: np.ndarray, exponent: int) -> bool:
    close = {"rtol": 0, "atol": 1e-4 * float(np.abs(ordinary).max())}
    back = times(found, -exponent)
    return np.allclose(found, ordinary, **close) or np.allclose(back, ordinary, **close)


def small(method: type, **params: object) -> Any:
    quick: dict[str, object] = {"perplexity": 10} if "perplexity" in method.parameters() else {}
    if method.family() in ("neighbor", "unfolding", "neural", "latent", "topographic"):
        steps = {"max_iter": 30, "n_epochs": 5, "num_iters": [10, 10, 10]}
        name = next(name for name in steps if name in method.parameters())
        quick[name] = steps[name]
    return method(**{"n_components": dimensions(method), "random_state": 0, **quick, **params})


def attempt(model: Any, X: np.ndarray) -> tuple[Any, str]:
    """The map, or why there is none."""
    try:
        return model.fit_transform(X, Y), ""
    except DataError as refusal:
        return None, str(refusal)


@each("layout", [np.asarray, scipy.sparse.csr_matrix])
@each(("dtype", "far"), [(np.float32, 1e30), (np.float64, 1e200)])
@pytest.mark.parametrize("method", sampled(registry.all_methods()))
def test_an_extreme_new_row_has_no_influence_on_its_companions(
    method: type, dtype: type, far: float, layout: Any, rows: np.ndarray, monkeypatch: Any
) -> None:
    """It may be refused, and the whole call with it; it may not change the places of others."""
    monkeypatch.setattr("lowland._base.validation.DENSE_NUMBERS", 0)  # sparse stays sparse
    model = small(method)
    fitted = layout(rows.astype(dtype))
    if layout is not np.asarray and issubclass(method, LocallyLinearReducer):
        with pytest.raises(TypeError, match="reduce it by PCA first"):
            model.fit(fitted, Y)
        return
    model.fit(fitted, Y)
    new = rows[:7].astype(dtype) * dtype(1.01)
    alone = model.transform(layout(new))
    company = np.vstack([new, np.full((1, new.shape[1]), far, dtype)])
    try:
        found = model.transform(layout(company))
    except DataError:
        return
    assert found[:7].tobytes() == alone.tobytes()


@scales
@pytest.mark.parametrize("method", sampled(registry.all_methods()))
def test_every_method_keeps_its_map_or_names_the_value(
    method: type, rows: np.ndarray, dtype: type, exponent: int
) -> None:
    X = rows.astype(dtype)
    ordinary = small(method).fit_transform(X, Y)
    found, refusal = attempt(small(method), times(X, exponent))
    if refusal:
        assert dtype is np.float64 or method.__name__ in REFUSES_SINGLE
        assert re.search(r"is \d[\d.]*e[+-]\d+.*divide X by \d", refusal)
        return
    assert np.isfinite(found).all()
    exact = method.family() in ("linear", "neighbor")
    assert (same_in_its_unit if exact else nearly_in_its_unit)(found, ordinary, exponent)


# --- declared units ------------------------------------------------------------------------------

ON_DISTANCES = [m for m in registry.all_methods() if m()._unit_powers(np.eye(3)) is not None]
VARIANTS = [
    *((method, {}) for method in ON_DISTANCES),
    *((m, {"metric": "sqeuclidean"}) for m in ON_DISTANCES if "metric" in m.parameters()),
    *((m, {"metric": "cosine"}) for m in ON_DISTANCES if "metric" in m.parameters()),
    *((m, {"metric": "precomputed"}) for m in ON_DISTANCES if m.accepts_distances),
    *(
        (m, {"normalize": n})
        for m in registry.all_methods()
        if "normalize" in m.parameters()
        for n in ("isometric", "orthonormal")
    ),
    (lowland.MDS, {"transformation": "interval"}),
    (lowland.LinearMDS, {"power": 0}),
    (lowland.LinearMDS, {"power": 2}),
    (lowland.Sammon, {"power": 2}),
    (lowland.ClassicalMDS, {"additive_constant": True}),
    (lowland.Isomap, {"landmarks": 30}),
    (lowland.LaplacianEigenmaps, {"weights": "binary"}),
    (lowland.DiffusionMaps, {"n_neighbors": 10}),
]
variants = pytest.mark.parametrize(
    ("method", "params"), VARIANTS, ids=[f"{m.__name__}-{p}" for m, p in VARIANTS]
)


def table_for(params: dict, rows: np.ndarray) -> np.ndarray:
    given = params.get("metric") == "precomputed"
    return np.sqrt(((rows[:, None] - rows) ** 2).sum(axis=2)) if given else rows


def check_units(model: Any, ordinary: Any, X: np.ndarray, exponent: int) -> None:
    """Whether each fitted attribute is the ordinary one times the power it declares."""
    powers = model._unit_powers(X) or unit_powers(0)  # of directions
    for name, declared in model.fitted_attributes.items():
        a, b = getattr(ordinary, name), getattr(model, name)
        if a is None or declared.type is not float or np.shape(a) != np.shape(b):
            assert b is None or declared.type is not float or name == "loss_history_"
            continue
        power = np.array([powers[unit] for unit in declared.units_in(model)])
        expected, found = np.asarray(a, float), np.ldexp(np.asarray(b, float), -exponent * power)
        atol = 1e-3 * np.abs(expected).max(initial=0.0) + 1e-12  # a residual of rounding is nothing
        np.testing.assert_allclose(found, expected, atol=atol, err_msg=name)


@pytest.mark.slow
@variants
def test_fitted_attributes_have_the_units_they_declare(
    method: type, params: dict, rows: np.ndarray
) -> None:
    X = table_for(params, rows)  # of a usual size in both units: neither fit is in another unit
    ordinary, other = (small(method, **params).fit(Z, Y) for Z in (X, times(X, 8)))
    check_units(other, ordinary, X, 8)
    assert not hasattr(other, "unit_exponent_")


@pytest.mark.slow
@squarable_scales
@variants
def test_extreme_tables_give_the_same_model_in_their_unit(
    method: type, params: dict, rows: np.ndarray, dtype: type, exponent: int, tmp_path: Any
) -> None:
    X = table_for(params, rows).astype(dtype)
    e = exponent // 2 if params.get("metric") == "sqeuclidean" else exponent
    ordinary, model = (small(method, **params).fit(Z, Y) for Z in (X, times(X, e)))
    check_units(model, ordinary, X, e)
    new = X[:9] if "precomputed" in params.values() else X[:9] * dtype(1.01)
    placed, found = ordinary.transform(new), model.transform(times(new, e))
    declared = model.fitted_attributes.get("embedding_")  # a map without it has no unit
    unit = declared.units_in(model)[0] if declared else ""
    power = (model._unit_powers(X) or unit_powers(0))[unit]
    atol = 1e-4 * np.abs(placed).max()
    np.testing.assert_allclose(times(found, -e * power), placed, atol=atol)
    model.save(tmp_path / "m.lowland")
    loaded = lowland.load(tmp_path / "m.lowland")
    np.testing.assert_array_equal(loaded.transform(times(new, e)), found)


def test_a_model_file_with_an_impossible_unit_is_refused(rows: np.ndarray, tmp_path: Any) -> None:
    model = lowland.MDS().fit(times(rows, 400))
    largest = np.abs(times(rows, 400 + model.unit_exponent_)).max()
    assert 0.7 < largest < 1.42  # the unit is the nearest power of two
    model.unit_exponent_ = 10**12
    model.save(tmp_path / "m.lowland")
    with pytest.raises(ModelFileError, match=r"unit_exponent_.*expected an exponent"):
        lowland.load(tmp_path / "m.lowland")


@pytest.mark.parametrize("exponent", [400, -400])
def test_parameters_with_a_unit_are_in_that_of_the_data(rows: np.ndarray, exponent: int) -> None:
    far = times(rows, exponent)
    for unit, method, params in (
        (1, lowland.Isomap, {"radius": 8.0}),
        (2, lowland.DiffusionMaps, {"bandwidth": 20.0}),
        (2, lowland.LaplacianEigenmaps, {"bandwidth": 20.0}),
        (1, lowland.MDS, {"init": rows[:, :2], "max_iter": 3}),
        (0, lowland.LinearMDS, {"init": np.eye(6, 2), "max_iter": 3}),
    ):
        moved = {
            name: value if name == "max_iter" else np.ldexp(value, unit * exponent)
            for name, value in params.items()
        }
        a, b = method(2, **params).fit(rows), method(2, **moved).fit(far)
        check_units(b, a, rows, exponent)
        assert all(np.array_equal(b.get_params()[name], moved[name]) for name in moved)


@pytest.mark.parametrize("exponent", [400, -400])
def test_what_a_fit_tells_on_the_way_is_in_the_unit_of_the_data(
    rows: np.ndarray, exponent: int
) -> None:
    heard: list[tuple] = []
    far = times(rows, exponent)
    model = lowland.MDS(2, callback=lambda step, Z, loss: heard.append((Z.copy(), loss))).fit(far)
    np.testing.assert_allclose(heard[-1][0], model.embedding_, rtol=1e-12)
    assert [loss for _, loss in heard] == list(model.loss_history_[1:])
    tsne = small(lowland.TSNE)
    with tsne.sharing() as shared:
        tsne.fit(far)
    np.testing.assert_array_equal(shared.graph.distances, knn_graph(far, 30).distances)
    graph = knn_graph(far, 12)
    a, b = lowland.Isomap(2).fit(knn_graph(rows, 12)), lowland.Isomap(2).fit(graph)
    np.testing.assert_allclose(times(b.embedding_, -exponent), a.embedding_, atol=1e-9)


@squarable_scales
@each("kind", [np.array, scipy.sparse.csr_array], ids=["dense", "sparse"])
@each("solver", ["covariance", "gram", "randomized"])
@each("units", [{}, {"whiten": True}, {"scale": True}], ids=str)
def test_pca_is_the_same_to_the_last_bit(
    rows: np.ndarray, dtype: type, exponent: int, kind: Any, solver: str, units: dict
) -> None:
    X = kind(rows.astype(dtype))
    far = times(X, exponent)
    a, b = (lowland.PCA(3, solver=solver, random_state=0, **units).fit(Z) for Z in (X, far))
    e = 0 if units else exponent
    np.testing.assert_array_equal(b.components_, a.components_)
    np.testing.assert_array_equal(b.mean_, times(a.mean_, exponent))
    variance = times(a.explained_variance_, 0 if "scale" in units else 2 * exponent)
    np.testing.assert_array_equal(b.explained_variance_, variance)
    np.testing.assert_array_equal(b.transform(far), times(a.transform(X), e))
    back = a.inverse_transform(a.transform(X))
    np.testing.assert_array_equal(b.inverse_transform(b.transform(far)), times(back, exponent))
    near, away = a.outlier_scores(X), b.outlier_scores(far)
    np.testing.assert_array_equal(away.t2, near.t2)
    residual = times(near.residual, 0 if "scale" in units else 2 * exponent)
    np.testing.assert_array_equal(away.residual, residual)


@squarable_scales
def test_rules_for_the_number_of_axes_do_not_see_the_unit(
    rows: np.ndarray, dtype: type, exponent: int
) -> None:
    X = rows.astype(dtype)
    for rule in (0.999, "mle", "parallel", "optimal"):
        a, b = (
            lowland.PCA(rule, random_state=0).fit(Z).n_components_ for Z in (X, times(X, exponent))
        )
        assert a == b, rule


@squarable_scales
@each("method", [lowland.PCA, lowland.LDA])
def test_batches_of_any_unit_make_one_model(
    rows: np.ndarray, dtype: type, exponent: int, method: type
) -> None:
    X = rows.astype(dtype)
    a, b = (
        method().partial_fit(Z[:40], Y[:40]).partial_fit(Z[40:], Y[40:])
        for Z in (X, times(X, exponent))
    )
    assert same_in_its_unit(b.transform(times(X, exponent)), a.transform(X), exponent)


@pytest.mark.parametrize("method", [lowland.PCA, lowland.LDA])
def test_batches_that_are_too_far_apart_are_refused(rows: np.ndarray, method: type) -> None:
    model = method().partial_fit(rows, Y)
    with pytest.raises(DataError, match=r"mean of a batch of X is 1e\+200.*divide X by 1e\+200"):
        model.partial_fit(np.full((1, 6), 1e200), [0])


@squarable_scales
@each("shrinkage", [None, 0.3, "auto"])
def test_lda_decides_the_same(
    rows: np.ndarray, dtype: type, exponent: int, shrinkage: object
) -> None:
    X = rows.astype(dtype)
    for Z in (X, X[:, :] @ np.eye(6, 120, dtype=dtype)):  # the second has more columns than rows
        far = times(Z, exponent)
        a, b = (lowland.LDA(shrinkage=shrinkage).fit(W, Y) for W in (Z, far))
        np.testing.assert_array_equal(b.predict_proba(far), a.predict_proba(Z))


@each("solver", ["covariance", "gram", "randomized"])
@each("scale", [False, True])
def test_one_huge_column_does_no_harm(rows: np.ndarray, solver: str, scale: bool) -> None:
    X = rows.astype(np.float32)
    X[:, 1] *= np.float32(2.0**100)
    model = lowland.PCA(2, solver=solver, scale=scale, random_state=0).fit(X)
    Z = model.transform(X)
    assert np.isfinite(Z).all()
    if scale:  # nothing is lost
        ordinary = lowland.PCA(2, scale=True).fit_transform(rows.astype(np.float32))
        np.testing.assert_allclose(Z, ordinary, atol=1e-4)
    else:
        alone = X[:, 1] - X[:, 1].mean()
        np.testing.assert_allclose(Z[:, 0], alone, rtol=1e-4)


@each("value", [3e38, 1e-40])
@each("units", [{}, {"whiten": True}, {"scale": True}], ids=str)
def test_the_ends_of_float32(rows: np.ndarray, value: float, units: dict) -> None:
    part = (rows - rows.mean(axis=0)) / np.abs(rows - rows.mean(axis=0)).max() / 3
    X = (part * value).astype(np.float32)
    found = lowland.PCA(2, **units).fit_transform(X)
    ordinary = lowland.PCA(2, **units).fit_transform(part)
    ordinary = ordinary if units else ordinary * value
    np.testing.assert_allclose(found, ordinary, atol=1e-3 * np.abs(ordinary).max())


def test_a_map_that_float32_cannot_hold_is_refused(rows: np.ndarray) -> None:
    X = np.where(rows > np.median(rows, axis=0), 3e38, -3e38).astype(np.float32)
    with pytest.raises(DataError, match=r"3e\+38.*float32 can hold.*divide X by 3e\+38"):
        lowland.PCA(2).fit_transform(np.hstack([X, X, X]))


@scales
@each("kind", [np.array, scipy.sparse.csr_array], ids=["dense", "sparse"])
@each("metric", ["euclidean", "cosine"])
def test_neighbors_do_not_see_the_unit(
    rows: np.ndarray, dtype: type, exponent: int, kind: Any, metric: str
) -> None:
    X = kind(rows.astype(dtype))
    far, e = times(X, exponent), exponent if metric == "euclidean" else 0
    pairs = [
        [knn_graph(Z, 5, metric=metric) for Z in (X, far)],
        [knn_query(Z[:60], Z[60:], 5, metric=metric) for Z in (X, far)],
    ]
    for a, b in pairs:
        np.testing.assert_array_equal(b.indices, a.indices)
        np.testing.assert_array_equal(b.distances, times(a.distances, e))


@scales
def test_squares_that_are_no_numbers_are_refused(
    rows: np.ndarray, dtype: type, exponent: int
) -> None:
    with pytest.raises(DataError, match=rf"units of \d.*{dtype.__name__} can hold; divide X by"):
        knn_graph(times(rows.astype(dtype), exponent), 5, metric="sqeuclidean")


@squarable_scales
@each("solver", ["dense", "krylov", "nystroem"])
@each(
    "kernel, gamma",
    [
        ("rbf", None),
        ("rbf", "median"),
        ("laplacian", None),
        ("cosine", None),
        ("poly", None),
        ("sigmoid", None),
    ],
)
def test_kernels_that_find_their_width_do_not_see_the_unit(
    rows: np.ndarray, dtype: type, exponent: int, solver: str, kernel: str, gamma: str | None
) -> None:
    X = rows.astype(dtype)
    model = lowland.KernelPCA(
        2, kernel=kernel, gamma=gamma, solver=solver, n_landmarks=30, random_state=0
    )
    ordinary = model.fit_transform(X)
    np.testing.assert_allclose(model.fit_transform(times(X, exponent)), ordinary, atol=1e-4)


@scales
@each("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
def test_kernels_that_see_nothing_say_so(
    rows: np.ndarray, dtype: type, exponent: int, kernel: str
) -> None:
    with pytest.raises(DataError, match=r"largest value of X is \d.*divide X by \d"):
        lowland.KernelPCA(2, kernel=kernel, gamma="1/p").fit(times(rows.astype(dtype), exponent))


def test_a_wide_table_of_near_rows_keeps_its_kernel(rows: np.ndarray) -> None:
    X = rows + 1e10  # large values, but differences that the kernel sees
    assert np.abs(lowland.KernelPCA(2, gamma=0.01).fit_transform(X)).max() > 0.1


@pytest.mark.parametrize("exponent", [600, -600])
def test_quality_refuses_what_cannot_be_squared(rows: np.ndarray, exponent: int) -> None:
    with pytest.raises(DataError, match=r" of X is .*divide X by"):
        quality(times(rows, exponent), rows[:, :2])
    with pytest.raises(DataError, match=r"value of Y is .*divide Y by"):
        quality(rows, times(rows[:, :2], exponent))


@squarable_scales
@each("kind", [np.array, scipy.sparse.csr_array], ids=["dense", "sparse"])
@each("scale", ["auto", "none", "standard", "robust"])
def test_preparation_does_not_see_the_unit(
    rows: np.ndarray, dtype: type, exponent: int, kind: Any, scale: str
) -> None:
    X = kind(rows.astype(dtype))
    a, b = (Preparation(scale=scale).fit_transform(Z) for Z in (X, times(X, exponent)))
    if scale in ("auto", "none"):
        a = times(a, exponent)
    a, b = (Z.toarray() if scipy.sparse.issparse(Z) else Z for Z in (a, b))
    np.testing.assert_array_equal(b, a)


def test_preparation_scales_columns_of_any_unit(rows: np.ndarray) -> None:
    units = np.ldexp(1.0, np.array([400, -400, 0, 10, 300, -300]))
    ordinary = Preparation(scale="standard").fit_transform(rows)
    np.testing.assert_array_equal(
        Preparation(scale="standard").fit_transform(rows * units), ordinary
    )

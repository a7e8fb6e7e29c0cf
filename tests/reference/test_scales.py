"""Searches, kernels, rules and preparation do not see the unit of the data.

A power of two changes no digit of the data, so that it need not change one of the result. Maps of
every method: ``tests/contract/test_extreme_values.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lowland
from lowland._base import registry
from lowland.errors import DataError
from lowland.methods.spectral._locally_linear import LocallyLinearReducer
from lowland.neighbors import knn_graph, knn_query
from lowland.preparation.preparation import Preparation
from support.cases import each
from support.methods import dimensions, sampled

SCALES = [(np.float32, 100), (np.float32, -100), (np.float64, 200), (np.float64, -200)]
scales = each(("dtype", "exponent"), SCALES)


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


def small(method: type, **params: object) -> Any:
    quick: dict[str, object] = {"perplexity": 10} if "perplexity" in method.parameters() else {}
    if method.family() in ("neighbor", "unfolding", "neural", "latent", "topographic"):
        steps = {"max_iter": 30, "n_epochs": 5, "num_iters": [10, 10, 10]}
        name = next(name for name in steps if name in method.parameters())
        quick[name] = steps[name]
    return method(**{"n_components": dimensions(method), "random_state": 0, **quick, **params})


@each("layout", [np.asarray, scipy.sparse.csr_matrix])
@each(("dtype", "far"), [(np.float32, 1e30), (np.float64, 1e60)])
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
def test_rules_for_the_number_of_axes_do_not_see_the_unit(
    rows: np.ndarray, dtype: type, exponent: int
) -> None:
    X = rows.astype(dtype)
    for rule in (0.999, "mle", "parallel", "optimal"):
        a, b = (
            lowland.PCA(rule, random_state=0).fit(Z).n_components_ for Z in (X, times(X, exponent))
        )
        assert a == b, rule


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


def test_a_wide_table_of_near_rows_keeps_its_kernel(rows: np.ndarray) -> None:
    X = rows + 1e10  # large values, but differences that the kernel sees
    assert np.abs(lowland.KernelPCA(2, gamma=0.01).fit_transform(X)).max() > 0.1


@scales
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
    units = np.ldexp(1.0, np.array([200, -200, 0, 10, 100, -100]))
    ordinary = Preparation(scale="standard").fit_transform(rows)
    np.testing.assert_array_equal(
        Preparation(scale="standard").fit_transform(rows * units), ordinary
    )

"""Tables of 1e-12 and 1e12 are as good as others; those of 1e-80 and 1e80 are refused."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lowland
from lowland import metrics
from lowland._base import registry
from lowland.errors import ConvergenceWarning, DataError
from lowland.neighbors import knn_graph, knn_query
from lowland.preparation.preparation import Preparation
from lowland.trust import trust
from support.cases import each
from support.methods import dimensions, few_steps, small
from support.rows import labeled_rows, suited, target_for

ESTIMATORS = [*registry.all_methods(), *registry.all_selectors()]
every_estimator = each(
    "cls", ESTIMATORS, ids=[registry.snake_case(cls.__name__) for cls in ESTIMATORS]
)
every_alignment = each(
    "cls", registry.all_alignments(), ids=[cls.__name__ for cls in registry.all_alignments()]
)
# Spectra and photon counts, in float32 also what it can hold but not square, and the ends.
SCALES = [
    *((np.float64, exponent) for exponent in (-40, 40, -246, 246)),
    *((np.float32, exponent) for exponent in (-40, 40, -100, 100)),
]
every_scale = each(("dtype", "exponent"), SCALES, ids=[f"{d.__name__} 2^{e}" for d, e in SCALES])
REFUSED = [1e-80, 1e80, 5e-324, 1.7e308]
Y = np.arange(40) % 3


def irregular() -> np.ndarray:
    """Rows of float32 with a largest value of 1: skewed columns, no symmetry."""
    rng = np.random.default_rng(5)
    mixed = rng.standard_normal((40, 4)) @ rng.standard_normal((4, 4))
    rows = mixed * [1, 3, 0.5, 2] + np.exp(mixed[:, :1] / 2)
    rows -= rows.min(axis=0)
    return (rows / rows.max()).astype(np.float32)


X = irregular()
NEW = X[:5] * np.float32(1.01)
ROWS = X.astype(np.float64)


def quick(cls: type) -> Any:
    """An instance that takes few steps."""
    params = {**small(cls), "random_state": 0}
    if cls in registry.all_methods():
        params |= {"n_components": dimensions(cls), **few_steps(cls)}
    else:
        params["n_features"] = 2
    params |= {name: 5 for name in ("max_iter", "n_epochs") if name in cls.parameters()}
    return cls(**params, **({"cv": 2} if "cv" in cls.parameters() else {}))


def target(cls: type) -> np.ndarray:
    return Y > 0 if cls is lowland.CorrelationScore else Y


def maps(cls: type, rows: np.ndarray, new: np.ndarray) -> list[np.ndarray]:
    """The map of the fitted rows, and of new ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = quick(cls)
        return [model.fit_transform(rows, target(cls)), model.transform(new)]


def same_or_scaled(found: np.ndarray, ordinary: np.ndarray, exponent: int) -> bool:
    """Whether a map is the ordinary one, or that in the unit of the data."""
    close = {"rtol": 0, "atol": 1e-4 * float(np.abs(ordinary).max())}
    back = np.ldexp(found.astype(np.float64), -exponent)
    return np.allclose(found, ordinary, **close) or np.allclose(back, ordinary, **close)


@every_estimator
def test_the_unit_of_the_table_does_not_change_its_map(cls: type) -> None:
    ordinary = maps(cls, ROWS, NEW.astype(np.float64))
    for dtype, exponent in SCALES:
        far = [np.ldexp(rows.astype(dtype), exponent) for rows in (X, NEW)]
        found = maps(cls, *far)
        for a, b in zip(found, ordinary, strict=True):
            assert a.dtype == dtype
            assert np.isfinite(a).all()
            assert same_or_scaled(a, b, exponent), (dtype, exponent)


@every_alignment
@every_scale
def test_tables_of_any_unit_are_aligned(cls: type, dtype: type, exponent: int) -> None:
    other = np.ldexp(X[:30, :3].astype(dtype), exponent)
    pairs = np.column_stack([np.arange(20), np.arange(20)])
    maps = cls(n_neighbors=6, random_state=0).fit_transform(
        [X.astype(dtype), other], correspondence=pairs
    )
    plain = cls(n_neighbors=6, random_state=0).fit_transform(
        [ROWS, X[:30, :3].astype(np.float64)], correspondence=pairs
    )
    for found, ordinary in zip(maps, plain, strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, ordinary, atol=1e-3 * np.abs(ordinary).max())


def test_a_new_row_of_another_size_has_no_influence_on_the_others() -> None:
    model = lowland.TSNE(perplexity=5, max_iter=5, random_state=0).fit(X)
    alone = model.transform(NEW)
    for far in (1e-30, 1e12, 1e30):
        company = np.vstack([NEW, np.full((1, 4), far, np.float32)])
        assert model.transform(company)[:5].tobytes() == alone.tobytes()
        np.testing.assert_array_equal(model.transform(company[5:])[0], model.transform(company)[5])


# --- what is refused ------------------------------------------------------------------------------


def refused(call: Any, *args: Any, **kwargs: Any) -> float:
    """The factor that an error names, and the value beside it."""
    with pytest.raises(DataError) as refusal:
        call(*args, **kwargs)
    found = re.search(
        r"largest value of \S+ is (\S+), .* divide \S+ by (\S+)\.$", str(refusal.value)
    )
    assert found, refusal.value
    value, factor = map(float, found.groups())
    assert 1e-301 < factor < np.inf
    assert 1e-75 < value / factor < 10.01
    return factor


@every_estimator
def test_what_cannot_be_computed_with_is_refused_with_a_factor(cls: type) -> None:
    for size in REFUSED:
        table = ROWS * size
        factor = refused(quick(cls).fit, table, target(cls))
        if size in (1e-80, 1e80):
            divided = maps(cls, table / factor, table[:3] / factor)
            assert all(np.isfinite(part).all() for part in divided)
    model = quick(cls).fit(ROWS, target(cls))
    refused(model.transform, ROWS[:5] * 1e80)
    model.transform(ROWS[:5] * 1e-80)  # as rows of zeros: no row depends on others to be placed


@each("cls", [cls for cls in ESTIMATORS if cls.fits_rows])
@each("size", [1e-80, 1e80])
def test_chunks_are_checked(cls: type, size: float) -> None:
    rows = labeled_rows(ROWS * size, target_for(cls, len(X)))
    refused(cls(**suited(cls, len(X))).fit, rows, "kind" if cls.needs_target else None)


@each("method", [lowland.PCA, lowland.LDA])
def test_batches_are_checked(method: type) -> None:
    refused(method(1).partial_fit, ROWS * 1e80, Y)


@each("cls", [cls for cls in registry.all_methods() if cls.accepts_distances])
def test_distances_are_checked(cls: type) -> None:
    D = np.sqrt(((X[:, None] - ROWS) ** 2).sum(axis=2))
    model = quick(cls).set_params(metric="precomputed")
    for size in REFUSED[:2]:
        refused(model.fit, D * size)
    with pytest.raises(DataError, match="largest value of X"):
        model.fit(D).transform(D[:2] * 1e80)


@every_alignment
@each("size", REFUSED)
def test_tables_to_align_are_checked(cls: type, size: float) -> None:
    pairs = np.column_stack([np.arange(20), np.arange(20)])
    refused(cls(n_neighbors=6).fit, [X, ROWS * size], correspondence=pairs)


@each("size", REFUSED)
def test_other_doors_are_checked(size: float) -> None:
    far, points = ROWS * size, X[:, :2].astype(np.float64)
    for call, args in (
        (metrics.quality, (far, points)),
        (metrics.quality, (X, points * size)),
        (metrics.trustworthiness, (far, points)),
        (metrics.silhouette, (far, Y)),
        (metrics.islands, (points * size,)),
        (metrics.intrinsic_dimension, (far,)),
        (trust, (far, points)),
        (trust, (X, points * size)),
        (knn_graph, (far, 5)),
        (knn_query, (far, X, 5)),
        (lowland.procrustes, (points, points * size)),
    ):
        refused(call, *args)


def test_preparation_refuses_what_no_method_takes() -> None:
    with pytest.raises(DataError, match=r"is 1e\+80, .* divide X by 1e80"):
        Preparation().fit_transform(ROWS * 1e80)


@each("layout", [np.asarray, scipy.sparse.csr_matrix])
def test_zeros_are_no_small_values(layout: Any) -> None:
    assert (lowland.PCA(1).fit_transform(layout(np.zeros((5, 3)))) == 0).all()


def test_high_powers_of_differences_neither_overflow_nor_vanish() -> None:
    """Minkowski distances with a large exponent, in blocks and in trees."""
    for power in (3, 30, 300):
        options = {"metric": "minkowski", "metric_params": {"p": power}}
        ordinary = knn_graph(ROWS, 5, **options)
        for exponent in (-246, -40, 40, 246):
            found = knn_graph(np.ldexp(ROWS, exponent), 5, **options)
            np.testing.assert_array_equal(found.indices, ordinary.indices)
            back = np.ldexp(found.distances, -exponent)
            np.testing.assert_allclose(back, ordinary.distances, rtol=1e-9)


@each("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
@each("size", [1e-20, 1e60])
def test_kernels_that_see_nothing_say_so(kernel: str, size: float) -> None:
    with pytest.raises(DataError, match=r"largest value of X is \d.*divide X by \d"):
        lowland.KernelPCA(2, kernel=kernel, gamma="1/p").fit(ROWS * size)

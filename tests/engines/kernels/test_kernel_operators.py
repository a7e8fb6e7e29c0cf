"""Kernel matrices against scikit-learn's pairwise kernels: values, products, rows, diagonals."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import pairwise_kernels

from lowland._base.errors import DataError
from lowland._engines.kernels import kernel_operators as engine
from lowland._engines.kernels.kernel_operators import (
    DenseKernel,
    GivenKernel,
    Kernel,
    RowKernel,
    between,
    check_finite_products,
    kernel_matrix,
    median_distance,
)
from lowland._engines.linalg.products import CenteredOperator, double_center
from support.cases import each

NAMED = {
    "rbf": Kernel("rbf", 0.3),
    "laplacian": Kernel("laplacian", 0.2),
    "poly": Kernel("poly", 0.1, 0.5, 3),
    "sigmoid": Kernel("sigmoid", 0.05, -0.2),
    "cosine": Kernel("cosine"),
    "linear": Kernel("linear"),
}


@pytest.fixture(params=NAMED)
def kernel(request):
    return NAMED[request.param]


def theirs(X, Y, kernel):
    params = {
        "rbf": {"gamma": kernel.gamma},
        "laplacian": {"gamma": kernel.gamma},
        "poly": {"gamma": kernel.gamma, "coef0": kernel.coef0, "degree": kernel.degree},
        "sigmoid": {"gamma": kernel.gamma, "coef0": kernel.coef0},
    }.get(kernel.name, {})
    return pairwise_kernels(X, Y, metric=kernel.name, **params)


def in_place_of_linear(X, Y, kernel):
    """The linear kernel is that of points shifted to mean 0."""
    return (X - X.mean(axis=0), Y - X.mean(axis=0)) if kernel.name == "linear" else (X, Y)


@each("given", ["dense", "sparse"])
def test_values_are_those_of_scikit_learn(irregular, kernel, given):
    X, Y = irregular(150, 7), irregular(40, 7, 1)
    X[X < 0], Y[Y < 0] = 0, 0
    X[3] = 0
    make = scipy.sparse.csr_array if given == "sparse" else np.asarray
    K = kernel_matrix(make(X), kernel, 2)
    assert type(K) is (RowKernel if given == "sparse" else DenseKernel)
    if given == "dense":
        points, rows = in_place_of_linear(X, Y, kernel)
    else:
        points, rows = X, Y
    np.testing.assert_allclose(K.matrix(), theirs(points, points, kernel), atol=1e-10)
    np.testing.assert_allclose(K.rows(make(Y)), theirs(rows, points, kernel), atol=1e-10)
    np.testing.assert_allclose(K.diagonal(), np.diag(K.matrix()), atol=1e-10)
    V = irregular(150, 4, 2)
    np.testing.assert_allclose(K.times(V), K.matrix() @ V, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(K.rows_times(make(Y), V), K.rows(make(Y)) @ V, rtol=1e-10, atol=1e-9)


@each("given", ["dense", "sparse"])
def test_a_row_alone_has_the_bytes_it_has_in_company(irregular, kernel, given, monkeypatch):
    make = scipy.sparse.csr_array if given == "sparse" else np.asarray
    X, Y = irregular(130, 9), irregular(60, 9, 1)
    K, V = kernel_matrix(make(X), kernel, 1), irregular(130, 3, 2)
    together = K.rows_times(make(Y), V)
    alone = np.vstack([K.rows_times(make(Y)[i : i + 1], V) for i in range(60)])
    np.testing.assert_array_equal(together, alone)
    monkeypatch.setattr(engine, "ROW_BYTES", 8000)
    np.testing.assert_array_equal(kernel_matrix(make(X), kernel, 2).rows_times(make(Y), V), alone)


@each("given", ["dense", "sparse"])
def test_a_matrix_that_is_not_kept_gives_the_same_products(irregular, kernel, given, monkeypatch):
    make = scipy.sparse.csr_array if given == "sparse" else np.asarray
    X, V = make(irregular(700, 5)), irregular(700, 3, 2)
    K = kernel_matrix(X, kernel, 1)
    kept = [K.times(V), K.times(V)]
    monkeypatch.setattr(engine, "KEPT_BYTES", 0)
    other = kernel_matrix(X, kernel, 2)
    for found in (*kept, other.times(V), other.times(V)):
        np.testing.assert_array_equal(found, kept[0])


def test_an_offset_of_the_data_costs_no_digits(irregular):
    X, V = irregular(300, 4), irregular(300, 2, 2)
    for name in ("rbf", "laplacian", "linear"):
        here, far = (kernel_matrix(A, NAMED[name], 1).times(V) for A in (X, X + 2.0**20))
        np.testing.assert_allclose(far, here, rtol=1e-7, atol=1e-7)


def test_a_function_is_called_with_pairs_of_rows(irregular):
    X, Y = irregular(12, 3), irregular(5, 3, 1)

    def function(a, b):
        return float(np.minimum(a, b).sum())

    expected = np.array([[function(a, b) for b in X] for a in Y])
    K = kernel_matrix(X, Kernel(function), 1)
    np.testing.assert_array_equal(K.rows(Y), expected)
    np.testing.assert_array_equal(K.rows(scipy.sparse.csr_array(Y)), expected)
    np.testing.assert_array_equal(K.matrix(), [[function(a, b) for b in X] for a in X])
    np.testing.assert_array_equal(K.diagonal(), np.diag(K.matrix()))
    with pytest.raises(DataError, match="gave nan for rows 0 and 0"):
        between(X, X, Kernel(lambda a, b: np.nan))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_given_matrix_is_taken_as_it_is(irregular, dtype):
    K = np.cov(irregular(30, 20).T).astype(dtype)
    given = kernel_matrix(K, Kernel("precomputed"), 1)
    assert type(given) is GivenKernel
    V, atol = irregular(20, 3, 1), 1e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(given.times(V), K @ V, rtol=1e-12, atol=atol)
    np.testing.assert_array_equal(given.matrix(), K)
    np.testing.assert_array_equal(given.diagonal(), np.diag(K))
    given.matrix()[0, 0] = -1  # a fresh array
    assert K[0, 0] != -1


# --- centering ----------------------------------------------------------------------------------


def test_centering_is_the_product_with_H_on_both_sides(irregular):
    K = np.exp(irregular(40, 40) / 9)
    K = K + K.T
    H = np.eye(40) - 1 / 40
    V = irregular(40, 3, 1)
    operator = CenteredOperator(kernel_matrix(K, Kernel("precomputed"), 1).times, with_means=True)
    for _ in range(2):  # the first product brings the means along, the others do not
        np.testing.assert_allclose(operator(V), H @ K @ H @ V, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(operator.means, K.mean(axis=0))
    centered = K.copy()
    np.testing.assert_allclose(double_center(centered), K.mean(axis=0))
    np.testing.assert_allclose(centered, H @ K @ H, atol=1e-10)


def test_values_that_overflow_are_refused_with_their_row():
    X = np.ones((5, 2))
    X[3] = 1e200
    K = kernel_matrix(X, Kernel("poly", 1.0), 1)
    with pytest.raises(DataError, match=r"overflow, first for row 0; .* smaller gamma"):
        check_finite_products(K.times(np.ones((5, 1))))


# --- the median ---------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_the_median_distance_is_that_of_all_pairs(irregular, metric):
    X = irregular(90, 4)
    gaps = X[:, None] - X[None]
    D = np.sqrt((gaps**2).sum(axis=2)) if metric == "euclidean" else np.abs(gaps).sum(axis=2)
    expected = np.median(D[np.triu_indices(90, 1)])
    assert median_distance(X, metric) == pytest.approx(expected)
    assert median_distance(scipy.sparse.csr_array(X), metric) == pytest.approx(expected)
    assert median_distance(np.ones((5, 2)), metric) == 1
    many = np.repeat(X, 30, axis=0)[np.random.default_rng(0).permutation(2700)]
    assert median_distance(many, metric) == pytest.approx(expected, rel=0.1)

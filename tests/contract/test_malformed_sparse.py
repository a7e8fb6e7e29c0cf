"""A malformed sparse matrix is refused at every door before compiled code follows its indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lowland
from lowland import metrics
from lowland._base.sparse_input import compressed_rows
from lowland.errors import DataError
from lowland.neighbors import knn_graph, knn_query
from lowland.preparation.preparation import Preparation
from lowland.workflow import make_map
from support.cases import each

Y = np.random.default_rng(0).standard_normal((30, 2))


def table() -> Any:
    """A matrix without a flaw; every row stores something."""
    rng = np.random.default_rng(3)
    X = rng.random((30, 8)) * (rng.random((30, 8)) < 0.4)
    X[:, 0] = rng.random(30) + 0.1
    return scipy.sparse.csr_matrix(X)


def altered(format_name: str, part: str, place: Any, value: Any) -> Callable[[], Any]:
    """A matrix of a format with one entry of one array replaced, flagged as flawless."""

    def make() -> Any:
        X = table().asformat(format_name)
        if format_name == "csr":
            assert X.has_canonical_format
            assert X.has_sorted_indices
        getattr(X, part)[place] = value
        return X

    return make


def replaced(format_name: str, part: str, change: Callable[[np.ndarray], Any]) -> Callable[[], Any]:
    def make() -> Any:
        X = table().asformat(format_name)
        setattr(X, part, change(getattr(X, part)))
        return X

    return make


def lists() -> Any:
    X = table().tolil()
    X.rows[4][0] = 10**6
    return X


def uneven_lists() -> Any:
    X = table().tolil()
    X.data[4].append(1.0)
    return X


def pairs() -> Any:
    X = table().todok()
    X._dict[(3, 10**6)] = 1.0
    return X


MALFORMED = {
    "a column beyond the last": (altered("csr", "indices", 7, 8), r"indices\[7\] = 8"),
    "a column far outside": (altered("csr", "indices", 7, 10**6), r"indices\[7\]"),
    "a negative column": (altered("csr", "indices", 0, -1), r"indices\[0\] = -1"),
    "the least integer": (altered("csr", "indices", 9, -(2**31)), r"indices\[9\]"),
    "starts that go back": (altered("csr", "indptr", 12, 0), r"indptr\[12\] = 0"),
    "starts far outside": (altered("csr", "indptr", 12, 10**6), r"indptr\[13\]"),
    "a negative start": (altered("csr", "indptr", 5, -3), r"indptr\[5\] = -3"),
    "a first start that is not 0": (altered("csr", "indptr", 0, 2), r"indptr\[0\] = 2"),
    "an end beyond the values": (altered("csr", "indptr", -1, 10**5), "indptr ends at 100000"),
    "too few starts": (replaced("csr", "indptr", lambda a: a[:-1]), "indptr has 30 entries"),
    "too few columns": (replaced("csr", "indices", lambda a: a[:-4]), "indices has"),
    "too few values": (replaced("csr", "data", lambda a: a[:-4]), "data has"),
    "columns that are not integers": (
        replaced("csr", "indices", lambda a: a.astype(float)),
        "indices is not an array of whole numbers",
    ),
    "columns that are a list": (replaced("csr", "indices", lambda a: a.tolist()), "indices is not"),
    "starts in two dimensions": (replaced("csr", "indptr", lambda a: a[None]), "indptr is not"),
    "wide columns beyond int32": (
        replaced("csr", "indices", lambda a: a.astype(np.int64) + 2**40),
        r"indices\[0\]",
    ),
    "values that are objects": (
        replaced("csr", "data", lambda a: a.astype(object)),
        "data:? holds",
    ),
    "a row of CSC": (altered("csc", "indices", 3, 30), r"indices\[3\] = 30"),
    "starts of CSC": (altered("csc", "indptr", 2, 10**6), r"indptr\[3\]"),
    "a row of COO": (altered("coo", "row", 3, 30), r"row\[3\] = 30"),
    "a column of COO": (altered("coo", "col", 3, -2), r"col\[3\] = -2"),
    "values of COO": (replaced("coo", "data", lambda a: a[:-1]), "row has"),
    "a block of BSR": (altered("bsr", "indices", 1, 10**6), r"indices\[1\]"),
    "starts of BSR": (altered("bsr", "indptr", 3, 10**6), r"indptr\[4\]"),
    "diagonals of DIA": (replaced("dia", "offsets", lambda a: a[:-1]), "offsets has"),
    "a diagonal twice": (altered("dia", "offsets", 1, -29), "twice"),
    "a list of LIL": (lists, "rows"),
    "lists of different lengths": (uneven_lists, "row 4 has"),
    "a key of DOK": (pairs, "keys"),
}

DOORS: dict[str, Callable[[Any], object]] = {
    "PCA": lambda X: lowland.PCA(2).fit(X),
    "PCA, new rows": lambda X: lowland.PCA(2).fit(table()).transform(X),
    "PCA, batches": lambda X: lowland.PCA(2).partial_fit(X),
    "TSNE": lambda X: lowland.TSNE(perplexity=5, max_iter=5).fit(X),
    "KernelPCA": lambda X: lowland.KernelPCA(2).fit(X),
    "Isomap": lambda X: lowland.Isomap(2, n_neighbors=8).fit(X),
    "MDS": lambda X: lowland.MDS(2).fit(X),
    "a selector": lambda X: lowland.VarianceScore(3).fit(X),
    "a selector, new rows": lambda X: lowland.VarianceScore(3).fit(table()).transform(X),
    "Preparation": lambda X: Preparation().fit(X),
    "Preparation, new rows": lambda X: Preparation().fit(table()).transform(X),
    "knn_graph": lambda X: knn_graph(X, 4),
    "knn_query": lambda X: knn_query(table(), X, 4),
    "trustworthiness": lambda X: metrics.trustworthiness(X, Y, n_neighbors=4),
    "quality": lambda X: metrics.quality(X, Y),
    "make_map": lambda X: make_map(X, "pca"),
}


@each("door", DOORS.values(), ids=list(DOORS))
@each("malformed", MALFORMED.values(), ids=list(MALFORMED))
def test_a_malformed_matrix_is_refused_with_the_wrong_part(door, malformed):
    make, message = malformed
    with pytest.raises(DataError, match=message):
        door(make())


DISTANCES: dict[str, Callable[[Any], object]] = {
    "Isomap": lambda D: lowland.Isomap(2, n_neighbors=5, metric="precomputed").fit(D),
    "TSNE": lambda D: lowland.TSNE(perplexity=3, max_iter=5, metric="precomputed").fit(D),
    "MDS": lambda D: lowland.MDS(2, metric="precomputed").fit(D),
    "weights of MDS": lambda W: lowland.MDS(2, weights=W).fit(Y),
    "KernelPCA": lambda K: lowland.KernelPCA(2, kernel="precomputed").fit(K),
    "knn_graph": lambda D: knn_graph(D, 5, metric="precomputed"),
}


@each("door", DISTANCES.values(), ids=list(DISTANCES))
def test_malformed_distances_are_refused_as_well(door):
    D = scipy.sparse.csr_matrix(np.abs(Y[:, :1] - Y[:, 0]))
    assert D.has_canonical_format
    D.indices[5] = 10**7
    with pytest.raises(DataError, match=r"indices\[5\] = 10000000"):
        door(D)


@each("format_name", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@each("kind", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_well_formed_matrices_of_every_format_are_the_same_rows(format_name, kind):
    X = kind(table())
    found = compressed_rows(X.asformat(format_name))
    assert found.format == "csr"
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), X.toarray())


def test_flags_are_not_believed():
    X = table()
    rows = X.toarray()
    X.indices[X.indptr[1] : X.indptr[2]] = X.indices[X.indptr[1] : X.indptr[2]][::-1].copy()
    X.data[X.indptr[1] : X.indptr[2]] = X.data[X.indptr[1] : X.indptr[2]][::-1].copy()
    assert X.indptr[2] - X.indptr[1] > 1
    X.has_canonical_format = True
    before = X.indices.copy()
    found = compressed_rows(X)
    assert (np.diff(found.indices[found.indptr[1] : found.indptr[2]]) > 0).all()
    np.testing.assert_array_equal(found.toarray(), rows)
    np.testing.assert_array_equal(X.indices, before)


def test_entries_that_are_stored_twice_are_added_once_as_floats():
    X = scipy.sparse.coo_matrix((np.full(3, 100, np.int8), ([0, 0, 1], [1, 1, 0])), (2, 2))
    X.has_canonical_format = True
    model = lowland.PCA(1).fit(X)
    np.testing.assert_allclose(model.mean_, [50.0, 100.0])


def test_room_for_more_values_is_no_flaw():
    X = table()
    X.data, X.indices = np.append(X.data, [9.0, 9.0]), np.append(X.indices, [99, 99])
    np.testing.assert_array_equal(compressed_rows(X).toarray(), table().toarray())


def test_a_good_matrix_is_neither_copied_nor_changed():
    X = table()
    found = compressed_rows(X)
    assert np.shares_memory(found.data, X.data)
    assert np.shares_memory(found.indices, X.indices)

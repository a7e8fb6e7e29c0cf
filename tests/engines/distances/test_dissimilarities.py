"""What is given as dissimilarities or weights: every kind of input, and what is wrong with it."""

import numpy as np
import pytest
from scipy import sparse

from lowland._engines.distances.dissimilarities import given_dissimilarities
from lowland.errors import DataError
from lowland.methods.mds.mds import checked_weights
from support.cases import each

D = np.array([[0, 3, 4, 2.0], [3, 0, 5, 1], [4, 5, 0, 6], [2, 1, 6, 0]])


def given(X, allow_missing=True):
    return given_dissimilarities(X, owner="Method", allow_missing=allow_missing)


def changed(value, *places, of=D):
    A = of.copy()
    for place in places:
        A[place] = value
    return A


def dense(upper):
    """The distances of a checked sparse matrix, 0 where nothing is stored."""
    return upper.toarray() + upper.toarray().T


def test_either_triangle_or_both_may_be_stored():
    for stored in (D, np.triu(D), np.tril(D)):
        for kind in (sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
            np.testing.assert_array_equal(dense(given(kind(stored))), D)
            np.testing.assert_array_equal(given(kind(stored), allow_missing=False), D)


def test_a_stored_zero_is_a_distance_and_a_stored_nan_is_none():
    X = sparse.csr_array(D)
    X.data[0], X.data[3] = 0.0, 0.0  # the pair (0, 1), stored both ways
    X.data[1] = X.data[6] = np.nan  # the pair (0, 2)
    upper = given(X)
    assert upper.nnz == 5
    assert upper[0, 1] == 0
    assert sorted(upper.data) == [0, 1, 2, 5, 6]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (changed(7.0, (1, 2)), r"X\[2, 1\] = 5 and X\[1, 2\] = 7"),
        (changed(-1.0, (1, 2), (2, 1)), r"negative number: column 2, first in row 1 \(-1\)"),
        (changed(np.inf, (1, 3), (3, 1)), "infinity: column 3, first in row 1"),
        (changed(2.0, (3, 3)), "distance of row 3 to itself is 2"),
        (D[:3], r"square matrix of distances, not \(3, 4\)"),
        (D[:1, :1], "minimum of 2"),
    ],
)
def test_what_is_wrong_with_a_sparse_matrix_is_named_with_its_place(X, message):
    with pytest.raises(DataError, match=message):
        given(sparse.csr_matrix(X))


def test_a_method_that_needs_all_distances_counts_those_of_a_sparse_matrix():
    X = sparse.csr_array(changed(0.0, (0, 1), (1, 0)))
    X.eliminate_zeros()
    with pytest.raises(DataError, match="5 of 6 are stored"):
        given(X, allow_missing=False)
    with pytest.raises(DataError, match=r"NaN: column 1.*MDS, NonmetricMDS and Sammon"):
        given(sparse.csr_array(changed(np.nan, (0, 1), (1, 0))), allow_missing=False)


def test_condensed_vectors():
    vector = D[np.triu_indices(4, 1)]
    for v in (vector, vector.tolist(), vector.astype(int), vector.astype(np.float32)):
        np.testing.assert_array_equal(given(v), D)
    assert given(vector.astype(np.float32)).dtype == np.float32
    with pytest.raises(DataError, match=r"'a'.* is not a number"):
        given(np.array(["a", "b", "c"]))
    with pytest.raises(DataError, match="7 is not such a number"):
        given(np.ones(7))
    with pytest.raises(DataError, match="minimum of 2"):
        given(np.array([]))


def test_rounding_does_not_make_distances_unequal():
    for rounded in (changed(3.00001, (0, 1)), changed(np.nan, (0, 2), of=changed(1.00001, (1, 3)))):
        checked = given(rounded)
        np.testing.assert_array_equal(checked, checked.T)
        np.testing.assert_allclose(checked, D, atol=1.1e-5)


@each("kind", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@each(
    ("W", "message"),
    [
        (D[:3], r"shape \(3, 4\); 4 rows need 4 x 4"),
        (changed(-1.0, (1, 2), (2, 1)), r"weights\[1, 2\] = -1; weights are finite and >= 0"),
        (changed(np.nan, (1, 2), (2, 1)), r"weights\[1, 2\] = nan"),
        (changed(1e200, (1, 2), (2, 1)), r"weights\[1, 2\] = 1e\+200; multiply all weights"),
        (changed(1e-200, (1, 2), (2, 1)), r"weights\[1, 2\] = 1e-200; multiply all weights"),
        (changed(7.0, (1, 2)), r"weights\[1, 2\] = 7, but weights\[2, 1\] = 5"),
        (np.triu(D), r"weights\[0, 1\] = 3, but weights\[1, 0\] = 0.*use W \+ W.T"),
        (changed(1e-9, (1, 2)), r"weights\[1, 2\] = 1e-09, but weights\[2, 1\] = 5"),
    ],
)
def test_what_is_wrong_with_weights_is_named_with_its_place(kind, W, message):
    with pytest.raises(DataError, match=message):
        checked_weights(kind(W), 4)


def test_weights_of_a_row_with_itself_do_not_matter():
    W = changed(np.inf, (0, 0), (2, 2))  # as of 1 / D^2
    before = W.copy()
    np.testing.assert_array_equal(checked_weights(W, 4), D)
    np.testing.assert_array_equal(W, before)
    stored = sparse.csr_matrix(W)
    np.testing.assert_array_equal(checked_weights(stored, 4).toarray(), D)
    np.testing.assert_array_equal(stored.toarray(), before)

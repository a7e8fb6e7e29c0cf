"""Similarities become distances: d = sqrt(s_ii + s_jj - 2 s_ij)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from lowland.errors import DataError
from lowland.tables import as_distances, read_distances
from lowland.workflow import describe_table, make_map
from support.cases import each

RNG = np.random.default_rng(4)
POINTS = RNG.standard_normal((9, 3))
INNER = POINTS @ POINTS.T
DISTANCES = np.sqrt(((POINTS[:, None] - POINTS) ** 2).sum(axis=2))
CORRELATIONS = """,a,b,c,d
a,1,0.8,0.1,-0.2
b,0.8,1,0.3,0
c,0.1,0.3,1,0.5
d,-0.2,0,0.5,1
"""


def test_inner_products_give_the_distances_of_the_points():
    found = as_distances(INNER, similarities=True).features
    np.testing.assert_allclose(found, DISTANCES, atol=1e-7)
    made = make_map(INNER, "classical_mds", n_components=3, similarities=True, measure=False)
    expected = make_map(DISTANCES, "classical_mds", n_components=3, distances=True, measure=False)
    np.testing.assert_allclose(made.coordinates, expected.coordinates, atol=1e-6)
    assert any("sqrt(s_ii + s_jj - 2 s_ij)" in line for line in made.log)
    sparse = as_distances(scipy.sparse.csr_matrix(INNER), similarities=True).features
    np.testing.assert_allclose(sparse, DISTANCES, atol=1e-7)
    assert describe_table(INNER, similarities=True)["distances"]


def test_correlations_of_a_file_keep_their_names(tmp_path):
    (tmp_path / "r.csv").write_text(CORRELATIONS)
    D = read_distances(tmp_path / "r.csv", similarities=True)
    assert D.ids.to_list() == ["a", "b", "c", "d"]
    assert D.features[0, 1] == pytest.approx(np.sqrt(2 * (1 - 0.8)))
    assert D.features[0, 3] == pytest.approx(np.sqrt(2 * 1.2))


def test_half_a_matrix_is_enough():
    half = np.where(np.tri(9, dtype=bool), INNER, np.nan)
    np.testing.assert_allclose(as_distances(half, similarities=True).features, DISTANCES, atol=1e-7)


def test_judged_similarities_with_an_empty_diagonal():
    S = np.array([[0, 0.86, 0.42], [0.86, 0, 0.5], [0.42, 0.5, 0]])
    for diagonal in (0.0, np.nan):
        np.fill_diagonal(S, diagonal)
        found = as_distances(S, similarities=True)
        assert any("the diagonal is empty" in note for note in found.notes)
        np.testing.assert_allclose(found.features[0], np.sqrt(2 * (1 - np.array([1, 0.86, 0.42]))))


def changed(i, j, value):
    S = INNER.copy()
    S[i, j] = value
    return S


@each(
    ("S", "message"),
    [
        (INNER[:5], "is 5 x 9; a matrix of similarities is square"),
        (changed(0, 1, 99.0), r"row 0, column 1 is another one the other way round \(99\)"),
        (changed(2, 2, np.nan), "row 2, column 2 is missing or infinite"),
        (changed(2, 2, -5.0), "is larger than those of the two rows with themselves"),
        (DISTANCES, "is larger than those of the two rows with themselves; distances need no"),
        (np.array([["a"]]), "expected real numbers"),
    ],
    ids=["not square", "asymmetric", "missing", "diagonal", "distances", "text"],
)
def test_what_are_no_similarities_is_refused(S, message):
    with pytest.raises(DataError, match=message):
        as_distances(S, similarities=True)


def test_similarities_without_the_option_are_told_from_distances():
    with pytest.raises(DataError, match="if these are similarities, use similarities=True"):
        as_distances(np.abs(INNER))
    with pytest.raises(DataError, match="leave scale out"):
        make_map(INNER, "mds", similarities=True, scale="standard")

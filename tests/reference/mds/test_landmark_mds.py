"""Landmark scaling: exact in a plane, classical with all landmarks, few distances."""

import numpy as np
import pytest

from lowland import ClassicalMDS, LandmarkMDS
from lowland.errors import ParameterError


@pytest.mark.parametrize("selection", ["random", "maxmin"])
def test_a_plane_needs_few_landmarks(selection, irregular, distances):
    X = irregular(200, 2)
    model = LandmarkMDS(n_landmarks=6, selection=selection, random_state=0)
    Y = model.fit_transform(X)
    np.testing.assert_allclose(distances(Y), distances(X), atol=1e-8)
    assert len(np.unique(model.landmarks_)) == 6
    assert model.stress_per_point_.max() < 1e-9


def test_with_all_rows_as_landmarks_it_is_classical_scaling(irregular, distances):
    D = distances(irregular(40, 5)) ** 0.8  # not Euclidean
    whole = ClassicalMDS(metric="precomputed").fit(D)
    marked = LandmarkMDS(metric="precomputed", n_landmarks=40, random_state=0).fit(D)
    np.testing.assert_allclose(marked.embedding_, whole.embedding_, atol=1e-9)


def test_maxmin_takes_the_farthest_next(irregular, distances):
    X = irregular(80, 3)
    model = LandmarkMDS(n_landmarks=5, selection="maxmin", random_state=0).fit(X)
    D = distances(X)
    first = int(np.random.default_rng(0).integers(80))
    expected = [first]
    while len(expected) < 5:
        expected.append(int(D[expected].min(axis=0).argmax()))
    assert sorted(expected) == list(model.landmarks_)


def test_more_landmarks_than_rows_are_refused(irregular):
    with pytest.raises(ParameterError, match="n_landmarks=30 is more than the 20 rows"):
        LandmarkMDS(n_landmarks=30).fit(irregular(20, 3))

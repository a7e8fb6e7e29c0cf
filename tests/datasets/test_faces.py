"""Drawn faces: the person, the smile and the light are in the pixels; recognition works."""

from __future__ import annotations

import numpy as np
import pytest

from lowland import PCA
from lowland._base.errors import ParameterError
from lowland.datasets import digits, drawn_faces, load_dataset
from lowland.neighbors import knn_query
from support.data import stored


def recognized(X, y, n_axes):
    """The share of every second picture whose nearest neighbor among the others is the person."""
    new = np.arange(len(X)) % 2 == 1
    pca = PCA(n_axes).fit(X[~new])
    nearest = knn_query(pca.transform(X[~new]), pca.transform(X[new]), 1).indices[:, 0]
    return float((y[~new][nearest] == y[new]).mean())


def test_faces_are_the_same_for_the_same_seed_and_in_range():
    faces = drawn_faces(4, 3, random_state=1)
    assert faces.X.shape == (12, 1024)
    assert faces.y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    np.testing.assert_array_equal(faces.X, drawn_faces(4, 3, random_state=1).X)
    assert not np.array_equal(faces.X, drawn_faces(4, 3, random_state=2).X)
    assert faces.X.min() >= 0
    assert faces.X.max() <= 1
    assert load_dataset("drawn-faces", n_persons=2, n_pictures=2).X.shape == (4, 1024)
    with pytest.raises(ParameterError, match="n_persons=0"):
        drawn_faces(0)


def test_the_light_brightens_the_side_it_comes_from():
    faces = drawn_faces(5, 20, noise=0.0, random_state=0)
    images = faces.X.reshape(-1, 32, 32)
    side = images[:, 14:18, 18:24].mean(axis=(1, 2)) - images[:, 14:18, 8:14].mean(axis=(1, 2))
    assert np.corrcoef(side, faces.truth[:, 1])[0, 1] > 0.95


def test_the_smile_lifts_the_corners_of_the_mouth():
    faces = drawn_faces(5, 20, noise=0.0, random_state=0)
    images = faces.X.reshape(-1, 32, 32)[:, 18:28]
    for person in range(5):
        own = images[faces.y == person]
        smile = faces.truth[faces.y == person, 0]
        # the height of the darkest pixels, at the corners against the middle
        dark = (own.max(axis=1, keepdims=True) - own) ** 4
        height = -(dark * np.arange(10)[:, None]).sum(axis=1) / dark.sum(axis=1)
        corners = (height[:, 12] + height[:, 19]) / 2 - height[:, 15:17].mean(axis=1)
        assert np.corrcoef(corners, smile)[0, 1] > 0.5


def test_pictures_of_a_person_are_nearer_than_those_of_others():
    faces = drawn_faces(random_state=0)
    assert recognized(faces.X, faces.y, 20) > 0.85  # one of 20 by chance
    assert recognized(faces.X, faces.y, 20) > recognized(faces.X, faces.y, 3)


def test_a_picture_that_is_no_face_has_a_large_error():
    faces = drawn_faces(random_state=0)
    new = np.arange(len(faces.X)) % 2 == 1
    pca = PCA(20).fit(faces.X[~new])
    digit = np.kron(digits().X[3].reshape(8, 8) / 16, np.ones((4, 4))).ravel()
    asked = np.vstack([faces.X[new], digit])
    errors = ((asked - pca.inverse_transform(pca.transform(asked))) ** 2).mean(axis=1)
    assert errors[-1] > 10 * errors[:-1].max()


def test_photographs_are_recognized_too():
    faces = stored("olivetti_faces")
    X = faces["X"].reshape(len(faces["X"]), -1).astype(float)
    assert recognized(X, faces["y"], 20) > 0.9
    pca = PCA(50).fit(X[::2])
    side = round(X.shape[1] ** 0.5)
    noise = np.random.default_rng(0).permutation(X[1])  # the same grey values, no face
    assert side**2 == X.shape[1]
    asked = np.vstack([X[1::2], noise])
    errors = ((asked - pca.inverse_transform(pca.transform(asked))) ** 2).mean(axis=1)
    assert errors[-1] > 2 * errors[:-1].max()

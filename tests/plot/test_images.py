"""Eigen-images and what they rebuild."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base.errors import DataError, ParameterError
from lowland.plot import eigen_images, reconstruction_strip, save_figure
from support.cases import each

rng = np.random.default_rng(0)
SHAPE = (4, 6)
COMPONENTS = np.linalg.qr(rng.standard_normal((24, 24)))[0].T
MEAN = rng.uniform(0, 1, 24)


def shown(axes):
    return np.asarray(axes.images[0].get_array())


def test_the_mean_and_the_first_components_are_drawn():
    figure = eigen_images(MEAN, COMPONENTS, SHAPE, n_images=3, shares=[0.5, 0.25, 0.125])
    drawn = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title() for axes in drawn] == ["mean", "1 (50.0%)", "2 (25.0%)", "3 (12.5%)"]
    assert shown(drawn[0]) == pytest.approx(MEAN.reshape(SHAPE))
    assert shown(drawn[2]) == pytest.approx(COMPONENTS[1].reshape(SHAPE))


def test_components_have_two_colors_that_meet_at_zero():
    image = eigen_images(MEAN, COMPONENTS, SHAPE, n_images=1).axes[1].images[0]
    low, high = image.get_clim()
    assert -low == high == pytest.approx(np.abs(COMPONENTS[0]).max())
    middle = image.cmap(image.norm(0.0))[:3]
    assert min(middle) > 0.95


def test_colored_images_are_drawn_around_grey():
    figure = eigen_images(MEAN, COMPONENTS[:2], (2, 4, 3))
    assert shown(figure.axes[0]).shape == (2, 4, 3)
    component = shown(figure.axes[1])
    assert np.abs(component - 0.5).max() == pytest.approx(0.5)
    assert component.ravel() - 0.5 == pytest.approx(
        COMPONENTS[0] / (2 * np.abs(COMPONENTS[0]).max())
    )


def test_a_strip_shows_the_original_and_what_components_keep_of_it():
    X = rng.uniform(0, 1, (2, 24))
    figure = reconstruction_strip(X, MEAN, COMPONENTS, SHAPE, counts=(10, 1, 50))
    grid = np.array(figure.axes).reshape(2, 4)
    assert [axes.get_title() for axes in grid[0]] == ["original", "1", "10", "all 24"]
    for row in range(2):
        assert shown(grid[row, 0]) == pytest.approx(X[row].reshape(SHAPE))
        kept = COMPONENTS[:10].T @ COMPONENTS[:10]
        assert shown(grid[row, 2]).ravel() == pytest.approx(MEAN + kept @ (X[row] - MEAN))
        assert shown(grid[row, 3]) == pytest.approx(X[row].reshape(SHAPE))
        assert len({axes.images[0].get_clim() for axes in grid[row]}) == 1


def test_constant_images_are_drawn(tmp_path):
    figure = eigen_images(np.zeros(24), np.zeros((2, 24)), SHAPE)
    save_figure(figure, tmp_path / "images.png", dpi=30)
    strip = reconstruction_strip(np.zeros((1, 24)), np.zeros(24), COMPONENTS, SHAPE)
    save_figure(strip, tmp_path / "strip.png", dpi=30)


@each(
    ("call", "error", "message"),
    [
        (
            lambda: eigen_images(MEAN, COMPONENTS, (5, 5)),
            DataError,
            "25 pixels, but the mean has 24",
        ),
        (lambda: eigen_images(MEAN, COMPONENTS, (24,)), ParameterError, "image_shape=.24,."),
        (lambda: eigen_images(MEAN, COMPONENTS, (4, 3, 2)), ParameterError, "height, width, 3"),
        (lambda: eigen_images(MEAN, COMPONENTS, SHAPE, n_images=-1), ParameterError, "n_images"),
        (lambda: eigen_images(MEAN, COMPONENTS, SHAPE, shares=[0.5]), DataError, "but 1 shares"),
        (
            lambda: reconstruction_strip(MEAN[None], MEAN, 2 * COMPONENTS, SHAPE),
            DataError,
            "orthonormal",
        ),
        (
            lambda: reconstruction_strip(np.ones((1, 5)), MEAN, COMPONENTS, SHAPE),
            DataError,
            "X has 5 columns",
        ),
        (
            lambda: reconstruction_strip(MEAN[None], MEAN, COMPONENTS, SHAPE, counts=[-1]),
            ParameterError,
            "counts",
        ),
    ],
)
def test_what_are_no_images_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()

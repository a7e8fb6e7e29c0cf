"""Pictures of what a method makes of places: reconstructions, a grid of places, decoded images."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba_array

from lowland._base.errors import DataError, ParameterError
from lowland.plot import (
    component_planes,
    decoded_images,
    loss_plot,
    reconstruction_pairs,
    save_figure,
)
from lowland.plot._figure import png_bytes
from lowland.plot._style import category_colors
from lowland.plot.decoding import grid_over
from support.cases import each

rng = np.random.default_rng(0)
SHAPE = (4, 6)
IMAGES = rng.uniform(0, 1, (12, 24))


def drawn(figure):
    """Pixels and boxes (left, right, bottom, top) of all images, in their order."""
    images = figure.axes[0].images
    return [np.ma.filled(im.get_array(), np.nan) for im in images], [
        im.get_extent() for im in images
    ]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


# --- reconstructions ------------------------------------------------------------------------------


def test_each_reconstruction_is_below_its_original():
    rebuilt = IMAGES + 1.0
    figure = reconstruction_pairs(IMAGES, rebuilt, SHAPE, names=list("abcdefghijkl"), per_band=5)
    pixels, boxes = drawn(figure)
    assert len(pixels) == 24
    for i in range(12):
        upper, lower = pixels[2 * i : 2 * i + 2]
        np.testing.assert_array_equal(upper, IMAGES[i].reshape(SHAPE))
        np.testing.assert_array_equal(lower, rebuilt[i].reshape(SHAPE))
        above, below = boxes[2 * i : 2 * i + 2]
        assert above[:2] == below[:2]
        assert below[3] < above[2]
    # five side by side, and each band below the last one
    assert len({round(box[0], 6) for box in boxes}) == 5
    assert boxes[10][3] < boxes[1][2]
    np.testing.assert_allclose([(b[3] - b[2]) / (b[1] - b[0]) for b in boxes], 4 / 6)
    assert "".join(text for text in texts(figure) if len(text) == 1) == "abcdefghijkl"
    assert texts(figure).count("original") == texts(figure).count("rebuilt") == 3


def test_a_pair_has_the_brightness_of_the_original():
    figure = reconstruction_pairs(IMAGES[:2], 7 * IMAGES[:2], SHAPE, notes=["0.5", "0.25"])
    for i in range(2):
        limits = {image.get_clim() for image in figure.axes[0].images[2 * i : 2 * i + 2]}
        assert limits == {(IMAGES[i].min(), IMAGES[i].max())}
    assert texts(figure)[-1] == "0.25"


def test_missing_pixels_constant_and_colored_images_are_drawn(tmp_path):
    gaps = IMAGES.copy()
    gaps[0, :5] = np.nan
    gaps[1] = np.nan
    figure = reconstruction_pairs(gaps[:3], np.full((3, 24), np.inf), SHAPE, title="a title")
    assert np.isnan(drawn(figure)[0][0].ravel()[:5]).all()
    png_bytes(figure, dpi=30)
    colored = reconstruction_pairs(gaps[:3], IMAGES[:3], (2, 4, 3))
    pixels = drawn(colored)[0]
    assert pixels[0].shape == (2, 4, 3)
    assert all(((part >= 0) & (part <= 1)).all() for part in pixels)
    save_figure(colored, tmp_path / "pairs.svg")
    png_bytes(reconstruction_pairs(np.zeros((1, 24)), np.ones((1, 24)), (1, 24)), dpi=30)
    png_bytes(reconstruction_pairs(np.zeros((1, 24)), np.ones((1, 24)), (24, 1)), dpi=30)


@each(
    ("call", "error", "message"),
    [
        (lambda: reconstruction_pairs(IMAGES, IMAGES[:3], SHAPE), DataError, "3 reconstructions"),
        (lambda: reconstruction_pairs(IMAGES, IMAGES, (5, 5)), DataError, "originals has 24"),
        (lambda: reconstruction_pairs(IMAGES, IMAGES, (24,)), ParameterError, "image_shape"),
        (
            lambda: reconstruction_pairs(IMAGES, IMAGES, SHAPE, names="ab"),
            DataError,
            "2 names for 12",
        ),
        (lambda: reconstruction_pairs(IMAGES[0], IMAGES, SHAPE), DataError, "rows and columns"),
        (lambda: decoded_images(np.eye(3), np.eye(3), IMAGES[:3], SHAPE), DataError, "1 or 2 dim"),
        (lambda: decoded_images(np.eye(2), np.eye(2), IMAGES, SHAPE), DataError, "12 images"),
        (
            lambda: component_planes(np.eye(2), np.eye(2), rows=np.ones((4, 1))),
            DataError,
            "rows have 1 coordinates",
        ),
        (lambda: loss_plot([1.0, 2.0], held_out=[1.0]), DataError, "held_out must hold 2"),
    ],
)
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- a grid of places -----------------------------------------------------------------------------


@each(("sides", "aspect"), [((8.0, 4.0), 1.0), ((4.0, 8.0), 1.0), ((8.0, 4.0), 2.0), ((6.0,), 1.0)])
def test_the_places_are_a_regular_grid_inside_the_map(sides, aspect):
    Y = rng.uniform(0, 1, (5000, len(sides))) * sides
    places, step = grid_over(Y, 8, aspect=aspect)
    assert step[1] == pytest.approx(step[0] * (aspect if len(sides) == 2 else 1.0))
    counts = [len(np.unique(np.round(axis, 9))) for axis in places.T]
    assert max(np.array(sides) / np.array([1, aspect])[: len(sides)]) / step[0] == pytest.approx(
        8, rel=0.01
    )
    assert len(places) == np.prod(counts)  # rows are everywhere, so no place is left out
    assert counts == [round(side / s) for side, s in zip(sides, step, strict=False)]
    assert (places > 0).all()
    assert (places < np.array(sides)).all()


def test_places_far_from_all_rows_are_left_out():
    angle = rng.uniform(0, 2 * np.pi, 3000)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    places, (step, _) = grid_over(ring, 12)
    nearest = np.sqrt(((places[:, None] - ring) ** 2).sum(axis=2)).min(axis=1)
    assert nearest.max() <= step * (1 + 1e-9)
    radius = np.linalg.norm(places, axis=1)
    assert radius.min() > 1 - 1.01 * step
    assert 30 < len(places) < 144


def test_few_outliers_do_not_set_the_grid_and_few_rows_leave_no_holes():
    bulk = rng.uniform(-1, 1, (1000, 2))
    far = np.vstack([bulk, [[1e6, 0], [0, -1e6]]])
    places, _ = grid_over(far, 10)
    assert len(places) == 100
    assert np.abs(places).max() < 1.2
    few, _ = grid_over(bulk[:40], 24)
    assert len(few) > 0.8 * 24 * 20


@each("Y", [np.zeros((5, 2)), np.ones((1, 1)), np.array([[0.0, 1.0], [0.0, 2.0]])])
def test_a_map_without_width_has_places_too(Y):
    places, step = grid_over(Y, 6)
    assert 1 <= len(places) <= 6
    assert min(step) > 0
    assert np.isfinite(places).all()


@each("scale", [1e-200, 1e200])
def test_the_grid_follows_extreme_units(scale):
    Y = rng.uniform(-1, 1, (200, 2))
    np.testing.assert_allclose(grid_over(scale * Y, 5).places, scale * grid_over(Y, 5).places)
    figure = decoded_images(scale * Y, scale * Y[:3], IMAGES[:3], SHAPE)
    png_bytes(figure, dpi=30)


# --- decoded images -------------------------------------------------------------------------------


def test_each_image_is_drawn_at_its_place_with_the_color_of_the_nearest_row():
    places = np.indices((4, 3)).reshape(2, -1).T[:, ::-1] * [3.0, 2.0]
    Y = places[::2] + 0.2
    labels = np.array(list("abcabc"))
    figure = decoded_images(Y, places, IMAGES, SHAPE, labels, label_name="kind")
    pixels, boxes = drawn(figure)
    centers = [((b[0] + b[1]) / 2, (b[2] + b[3]) / 2) for b in boxes]
    np.testing.assert_allclose(centers, places)
    for got, wanted in zip(pixels, IMAGES, strict=True):
        np.testing.assert_array_equal(got, wanted.reshape(SHAPE))
    sizes = np.array([(b[1] - b[0], b[3] - b[2]) for b in boxes])
    np.testing.assert_allclose(sizes[:, 1] / sizes[:, 0], 4 / 6)
    assert (sizes < [3.0, 2.0]).all()  # images do not touch
    nearest = ((places[:, None] - Y) ** 2).sum(axis=2).argmin(axis=1)
    frames = figure.axes[0].collections[-1]
    codes = np.unique(labels, return_inverse=True)[1][nearest]
    np.testing.assert_allclose(frames.get_edgecolor(), to_rgba_array(category_colors(3))[codes])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "c"]
    assert len({image.get_clim() for image in figure.axes[0].images}) == 1


def test_the_upper_image_is_upper_and_limits_are_kept():
    figure = decoded_images(np.eye(2), np.eye(2), IMAGES[:2], SHAPE, limits=(-1.0, 3.0))
    assert figure.axes[0].images[0].get_clim() == (-1.0, 3.0)
    low, high = figure.axes[0].get_ylim()
    assert low < 0 < 1 < high  # not upside down, as images are without an extent


def test_numbers_as_labels_color_the_frames_and_rows_outside_are_counted():
    Y = np.vstack([rng.uniform(0, 2, (99, 2)), [[50.0, 50.0]]])
    places = np.indices((3, 3)).reshape(2, -1).T.astype(float)
    figure = decoded_images(Y, places, IMAGES[:9], SHAPE, np.linspace(0, 1, 100), title="t")
    assert len({tuple(color) for color in figure.axes[0].collections[-1].get_edgecolor()}) > 3
    assert figure.axes[0].get_title(loc="right") == "1 of 100 rows lie outside of the picture"
    png_bytes(figure, dpi=30)


def test_the_images_of_a_line_are_above_its_rows():
    x = np.linspace(0, 1, 50)[:, None]
    figure = decoded_images(x, np.array([[0.1], [0.5], [0.9]]), IMAGES[:3], SHAPE)
    _, boxes = drawn(figure)
    rows = np.asarray(figure.axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(np.sort(rows[:, 0]), x[:, 0])
    assert rows[:, 1].max() < min(box[2] for box in boxes)
    low, high = figure.axes[0].get_ylim()
    assert low < rows[:, 1].min()
    assert high > max(box[3] for box in boxes)
    png_bytes(figure, dpi=30)


def test_many_rows_are_sampled(monkeypatch):
    from lowland.plot import decoding

    monkeypatch.setattr(decoding, "MOST_POINTS", 30)
    Y = rng.uniform(0, 1, (100, 2))
    figure = decoded_images(Y, Y[:1], IMAGES[:1], SHAPE, np.arange(100) % 2)
    assert sum(len(part.get_offsets()) for part in figure.axes[0].collections[:-1]) == 30


# --- planes with rows, losses of held-out rows ----------------------------------------------------


@each("n_axes", [1, 2])
def test_rows_are_drawn_over_component_planes(n_axes, monkeypatch):
    from lowland.plot import grids

    monkeypatch.setattr(grids, "MOST_POINTS", 20)
    places = np.indices((4, 3)).reshape(2, -1).T.astype(float)[:, :n_axes]
    places = np.unique(places, axis=0)
    Y = rng.uniform(0, 2, (50, n_axes))
    figure = component_planes(places, rng.random((len(places), 2)), kind="rectangle", rows=Y)
    plain = component_planes(places, rng.random((len(places), 2)), kind="rectangle")
    for axes, same in zip(figure.axes[:2], plain.axes, strict=False):
        points = np.asarray(axes.collections[1].get_offsets())
        assert len(points) == 20
        assert np.isin(points[:, 0], Y[:, 0]).all()
        assert axes.get_xlim() == same.get_xlim()
        assert axes.get_ylim() == same.get_ylim()


def test_a_single_thin_plane_has_room_for_its_title():
    figure = component_planes(np.arange(5.0)[:, None], np.ones((5, 1)), title="a long title " * 4)
    png_bytes(figure, dpi=30)


def test_the_loss_of_held_out_rows_is_drawn_and_its_lowest_value_marked():
    axes = loss_plot([4, 2, 1], [0, 1, 2], held_out=[4.5, 3, 3.5], step_name="epoch").axes[0]
    training, held_out, lowest = axes.lines
    assert training.get_ydata().tolist() == [4, 2, 1]
    assert held_out.get_ydata().tolist() == [4.5, 3, 3.5]
    assert (lowest.get_xdata(), lowest.get_ydata()) == ([1], [3])
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words == ["training", "held out", "lowest"]
    assert axes.get_xlabel() == "epoch"
    assert axes.get_ylim()[0] == 0
    assert loss_plot([4, 2, 1]).axes[0].get_legend() is None


def test_a_large_fall_has_a_logarithmic_scale():
    figure = loss_plot(np.geomspace(1, 1e-5, 30))
    figure.canvas.draw()
    assert figure.axes[0].get_yscale() == "log"
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "0.001" in labels
    for losses in ([1.0, 0.02], [1.0, 0.0], [1.0, -3.0]):
        assert loss_plot(losses).axes[0].get_yscale() == "linear"

"""Folders of images: one row per image."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from lowland._base.errors import DataError, MemoryLimitError
from lowland.tables import finite, read_table
from support.cases import each

RNG = np.random.default_rng(0)
GRAY = RNG.integers(0, 256, (4, 3, 5), dtype=np.uint8)
RGB = RNG.integers(0, 256, (4, 3, 5, 3), dtype=np.uint8)


def save(folder, images, names=None):
    folder.mkdir(exist_ok=True, parents=True)
    for i, image in enumerate(images):
        name = names[i] if names else f"{i}.png"
        (folder / name).parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(folder / name)
    return folder


@each("images", [GRAY, RGB], ids=["gray", "rgb"])
@each("suffix", ["png", "bmp", "tif", "ppm", "PNG"])
def test_each_image_is_a_row_of_pixels(tmp_path, images, suffix):
    table = read_table(save(tmp_path / "a", images, [f"{i}.{suffix}" for i in range(4)]))
    np.testing.assert_array_equal(table.features, images.reshape(4, -1))
    assert table.features.dtype == np.float64
    assert table.image_shape == images.shape[1:]
    assert table.feature_names is None
    assert table.ids.name == "file"
    assert table.labels.columns == []


def test_images_come_in_the_natural_order_of_their_names(tmp_path):
    table = read_table(save(tmp_path / "a", GRAY, ["x10.png", "x9.png", "x1.png", "X2.png"]))
    assert table.ids.to_list() == ["x1.png", "X2.png", "x9.png", "x10.png"]
    np.testing.assert_array_equal(table.features, GRAY[[2, 3, 1, 0]].reshape(4, -1))


def test_subfolders_are_labels(tmp_path):
    table = read_table(save(tmp_path / "a", GRAY, ["b/1.png", "b/2.png", "c/1.png", "top.png"]))
    assert table.ids.to_list() == ["b/1.png", "b/2.png", "c/1.png", "top.png"]
    assert table.labels["folder"].to_list() == ["b", "b", "c", None]


def test_a_color_image_among_gray_ones_makes_all_of_them_rgb_and_the_table_says_so(tmp_path):
    save(tmp_path / "a", GRAY[:2], ["0.png", "1.png"])
    table = read_table(save(tmp_path / "a", RGB[2:3], ["2.png"]))
    np.testing.assert_array_equal(table.features[0], np.repeat(GRAY[0], 3))
    np.testing.assert_array_equal(table.features[2], RGB[2].reshape(-1))
    assert table.notes == ("2 gray images are read as RGB like the others",)


def test_transparency_is_ignored_and_the_table_says_so(tmp_path):
    clear = np.dstack([RGB[0], np.full((3, 5), 7, np.uint8)])
    table = read_table(save(tmp_path / "a", [clear]))
    np.testing.assert_array_equal(table.features[0], RGB[0].reshape(-1))
    assert table.notes == ("transparency of 1 images is ignored",)


def test_palettes_and_bits_are_resolved(tmp_path):
    (tmp_path / "p").mkdir()
    Image.fromarray(RGB[0] // 128 * 255).quantize(8).save(tmp_path / "p" / "0.gif")
    np.testing.assert_array_equal(
        read_table(tmp_path / "p").features[0], (RGB[0] // 128 * 255).reshape(-1)
    )
    (tmp_path / "b").mkdir()
    Image.fromarray(GRAY[0] > 99).save(tmp_path / "b" / "0.png")
    np.testing.assert_array_equal(
        read_table(tmp_path / "b").features[0], np.where(GRAY[0] > 99, 255, 0).reshape(-1)
    )


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32])
def test_deep_gray_keeps_its_values(tmp_path, dtype):
    deep = (RNG.random((2, 3, 5)) * 60_000).astype(dtype)
    table = read_table(save(tmp_path / "a", deep, ["0.tif", "1.tif"]))
    np.testing.assert_array_equal(table.features, deep.reshape(2, -1))


def test_other_files_are_left_aside_and_hidden_ones_ignored(tmp_path):
    save(tmp_path / "a", GRAY)
    (tmp_path / "a" / "readme.txt").write_text("hello")
    (tmp_path / "a" / ".hidden.png").write_text("hello")
    (tmp_path / "a" / ".cache").mkdir()
    (tmp_path / "a" / ".cache" / "0.png").write_text("hello")
    table = read_table(tmp_path / "a")
    assert table.shape == (4, 15)
    assert table.notes == ("files that are not images are not used: 'readme.txt'",)


def test_an_image_of_another_size_is_refused_by_name(tmp_path):
    save(tmp_path / "a", [*GRAY, GRAY[0].T])
    with pytest.raises(
        DataError, match=r"a, 4\.png: the image is 3 x 5 pixels, but 0\.png is 5 x 3"
    ):
        read_table(tmp_path / "a")


@pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\n" + bytes(40)])
def test_an_unreadable_image_is_refused_by_name(tmp_path, content):
    save(tmp_path / "a", GRAY)
    (tmp_path / "a" / "2.png").write_bytes(content)
    with pytest.raises(DataError, match=r"a, 2\.png: the image cannot be read: "):
        read_table(tmp_path / "a")


@each("suffix", ["png", "jpg", "gif", "tif", "bmp"])
def test_damaged_images_never_end_in_another_error(tmp_path, damage, suffix):
    images = RNG.integers(0, 256, (2, 30, 40), dtype=np.uint8)
    save(tmp_path / "a", images, [f"{i}.{suffix}" for i in range(2)])
    refused = damage(tmp_path / "a" / f"1.{suffix}", lambda path: read_table(path.parent))
    assert refused > 20


def test_gray_of_more_bits_does_not_mix_with_other_images(tmp_path):
    save(tmp_path / "a", [GRAY[0].astype(np.uint16), GRAY[1]])
    with pytest.raises(DataError, match=r"0\.png: has gray of more than 8 bits .* 1\.png has"):
        read_table(tmp_path / "a")


def test_a_file_of_several_images_is_refused_by_name(tmp_path):
    frames = [Image.fromarray(image) for image in GRAY]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match=r"film\.gif: holds 4 images, expected one"):
        read_table(tmp_path)


def test_images_too_large_for_memory_are_refused_undecoded(tmp_path, little_memory):
    save(tmp_path / "a", np.zeros((4, 300, 300), np.uint8))
    with pytest.raises(MemoryLimitError, match="reading 4 rows x 90000 columns needs"):
        read_table(tmp_path / "a")


def test_many_pixels_become_float32(tmp_path, monkeypatch):
    monkeypatch.setattr(finite, "LARGE", 50)
    assert read_table(save(tmp_path / "a", GRAY)).features.dtype == np.float32

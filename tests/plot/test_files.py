"""What is written: formats, text, rasterized points, the same bytes."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from lowland._base.errors import ParameterError
from lowland.plot import (
    biplot,
    compare_maps,
    decoded_images,
    eigen_images,
    loss_plot,
    pairs_plot,
    reconstruction_pairs,
    rnx_plot,
    save_figure,
    scatter_map,
    scatter_map_3d,
    scree_plot,
    shepard_plot,
)
from support.cases import each

rng = np.random.default_rng(0)
Y = rng.standard_normal((300, 3))
NAMES = np.array(["one", "two", "three"])[np.arange(300) % 3]


def make(kind):
    return {
        "map": lambda: scatter_map(Y[:, :2], NAMES, title="title"),
        "dense": lambda: scatter_map(Y[:, :2], NAMES, title="title", density=True),
        "centers": lambda: scatter_map(Y[:, :2], NAMES, title="title", center_labels=True),
        "3d": lambda: scatter_map_3d(Y, NAMES, title="title"),
        "strip": lambda: scatter_map(Y[:, :1], NAMES, title="title"),
        "pairs": lambda: pairs_plot(Y, NAMES, title="title"),
        "compare": lambda: compare_maps([Y, Y[:, :2]], None, NAMES, title="title"),
        "biplot": lambda: biplot(Y, np.eye(3), ["one", "two", "three"], title="title"),
        "scree": lambda: scree_plot([0.6, 0.3], title="title"),
        "shepard": lambda: shepard_plot(np.abs(Y[:, 0]), np.abs(Y[:, 1]), title="title"),
        "rnx": lambda: rnx_plot({"one": [0.5, 0.3], "two": [0.1, 0.4]}, title="title"),
        "loss": lambda: loss_plot([3.0, 1.0], title="title"),
        "images": lambda: eigen_images(np.ones(6), np.eye(6)[:2], (2, 3), title="title"),
        "pairs of images": lambda: reconstruction_pairs(
            np.eye(6)[:2], np.ones((2, 6)), (2, 3), title="title"
        ),
        "decoded": lambda: decoded_images(
            Y[:, :2], np.eye(2), np.eye(6)[:2], (2, 3), NAMES, title="title"
        ),
    }[kind]()


KINDS = [
    *("map", "dense", "centers", "3d", "strip", "pairs", "compare", "biplot"),
    *("scree", "shepard", "rnx", "loss", "images", "pairs of images", "decoded"),
]


@pytest.mark.slow
@each("kind", KINDS)
def test_the_same_input_gives_the_same_bytes(kind, tmp_path):
    for suffix in ("png", "svg", "pdf") if kind in ("map", "dense", "scree") else ("png", "svg"):
        written = []
        for turn in ("a", "b"):
            path = tmp_path / f"{turn}.{suffix}"
            save_figure(make(kind), path, dpi=40)
            written.append(path.read_bytes())
        assert written[0] == written[1]
        assert not re.search(rb"<dc:date>|CreationDate|20\d\d-\d\d-\d\d", written[0])


@each("kind", KINDS)
def test_text_stays_text_in_vector_files(kind, tmp_path):
    path = tmp_path / "picture.svg"
    save_figure(make(kind), path)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
    assert "title" in texts


@each("kind", ["map", "dense", "centers", "3d", "strip", "pairs", "compare"])
def test_points_are_an_image_in_vector_files(kind, tmp_path):
    figure = make(kind)
    for axes in figure.axes:
        assert all(points.get_rasterized() for points in axes.collections)
    path = tmp_path / "picture.svg"
    save_figure(figure, path)
    svg = path.read_text()
    assert "<image" in svg
    # a legend and the frame are some dozens of shapes, the points would be three hundred
    assert svg.count("<use") < 150
    assert set(NAMES) <= set(re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_vector_files_do_not_grow_with_the_points(tmp_path):
    sizes = []
    for n in (20_000, 80_000):
        save_figure(scatter_map(rng.standard_normal((n, 2))), tmp_path / "map.pdf", dpi=60)
        sizes.append((tmp_path / "map.pdf").stat().st_size)
    assert sizes[1] < 2 * sizes[0]


@each("suffix", ["png", "svg", "pdf", "jpg", "webp", "tif", "PNG"])
def test_the_suffix_names_the_format(suffix, tmp_path):
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "jpg": b"\xff\xd8"}
    path = tmp_path / f"a.b.{suffix}"
    save_figure(make("scree"), path, dpi=30)
    assert path.read_bytes().startswith(start.get(suffix.lower(), b""))


@pytest.mark.parametrize("name", ["picture", "picture.docx"])
def test_an_unknown_format_is_refused(name, tmp_path):
    with pytest.raises(ParameterError, match="unknown format of a picture"):
        save_figure(make("scree"), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_saving_leaves_matplotlib_as_it_was(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    filters = list(warnings.filters)
    save_figure(make("map"), tmp_path / "map.svg")
    assert dict(matplotlib.rcParams) == before
    assert warnings.filters == filters


def test_importing_the_pictures_loads_neither_matplotlib_nor_scipy():
    code = (
        "import sys, lowland.plot; "
        "sys.exit(any(m in sys.modules for m in ('matplotlib', 'scipy', 'sklearn')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_picture_loads_pyplot(tmp_path):
    code = (
        "import sys, numpy as np; from lowland.plot import *; Y = np.eye(4)[:, :3]; "
        "from lowland.trust import trust; Z = np.arange(36.0).reshape(12, 3) ** 2; "
        "figures = [scatter_map_3d(Y), pairs_plot(Y), biplot(Y, Y), scree_plot([1.0]), "
        "loss_plot([1.0]), rnx_plot({'a': [0.5]}), shepard_plot([1.0], [1.0]), "
        "trust_map(trust(Z, Z[:, :2])), compare_maps([Y, Y]), distortion_map(Y, np.arange(4.0)), "
        "eigen_images(np.ones(3), Y[:1], (1, 3)), "
        "scatter_map(Y, list('abcd'), center_labels=True)]; "
        "[save_figure(figure, sys.argv[1]) for figure in figures]; "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "picture.png"], check=True)

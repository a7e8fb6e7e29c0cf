"""Draw the pictures of the documentation into docs/pictures.

    python docs/make_pictures.py            # those that are missing
    python docs/make_pictures.py tsne pca   # draw these again
    python docs/make_pictures.py lectures   # all of the lectures; or iris: those of one page
    python docs/make_pictures.py trust      # maps with planted errors, and what is said of them
    python docs/make_pictures.py --all

Every method is shown on the same three data sets, so that pages can be compared: the digits and
the iris flowers, colored by class, and the swiss roll, colored by the length along its spiral.
A map of one dimension is drawn above the classes, or above that length. The same pictures stand on
the method's page and in the gallery. The pictures of a lecture are
drawn by the code on its page, those of planted errors by trust_pictures.py.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import lecture_pages
import numpy as np
import trust_pictures

from lowland import TSNE, datasets, plot
from lowland._base import registry

__all__ = ["PICTURES", "SETTINGS", "call", "dimensions"]

PICTURES = Path(__file__).parent / "pictures"
# Parameters that differ from the defaults, for methods whose defaults show little on these tables.
SETTINGS: dict[str, dict[str, Any]] = {"kernel_pca": {"gamma": "median"}}
WIDEST = 1250  # pixels of a picture of a lecture
TRUST_DPI = 90
COLORS = 256  # of the PNG palette: half the bytes of 24-bit color


class Panel(NamedTuple):
    """One map, or the reason why there is none."""

    title: str
    Y: np.ndarray | None
    colors: Any


def call(cls: type) -> str:
    """The estimator of a picture as one would type it."""
    settings = SETTINGS.get(registry.snake_case(cls.__name__), {})
    given = [f"{name}={value!r}" for name, value in settings.items()]
    return f"{cls.__name__}({', '.join([f'n_components={dimensions(cls)}', *given])})"


def dimensions(cls: type) -> int:
    """Two, unless the method has only one."""
    return min(2, cls.most_components(1000, 4, n_classes=3))


def method_picture(name: str) -> Any:
    """The method's maps of the digits, the swiss roll and the iris flowers."""
    cls = registry.get(name)
    estimator = cls(n_components=dimensions(cls), random_state=0, **SETTINGS.get(name, {}))
    digits, iris = datasets.digits(), datasets.iris()
    roll = datasets.swiss_roll(1500, random_state=0)
    unrolled = None if cls.needs_target else estimator.fit_transform(roll.X)
    # a method that can do without classes is shown without them
    maps = tuple(
        estimator.fit_transform(data.X, data.y if cls.needs_target else None)
        for data in (digits, iris)
    )
    if maps[0].shape[1] == 1:
        maps = above(maps[0], digits.y), above(maps[1], iris.y)
        unrolled = above(unrolled, roll.truth[:, 0] / 5)
    return panels_in_a_row(
        [
            Panel("digits", maps[0], class_colors(digits.y)),
            Panel("swiss roll", unrolled, roll.truth[:, 0]),
            Panel("iris flowers", maps[1], class_colors(iris.y)),
        ]
    )


def above(Y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A map of one dimension, each row at its height; rows of one height are spread a little."""
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, len(Y))
    heights = (rows + spread) / max(np.ptp(rows), 1) * np.ptp(Y)
    return np.column_stack([Y[:, 0], heights])


def class_colors(classes: np.ndarray) -> np.ndarray:
    """A color for each row."""
    from lowland.plot._style import category_colors

    names, place = np.unique(classes, return_inverse=True)
    return np.array(category_colors(len(names)))[place]


def panels_in_a_row(panels: list[Panel]) -> Any:
    """Maps of different tables, each with its own colors and scale, both axes in one unit."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        axes.set_title(panel.title, fontsize=10)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#b0b0b0")
        if panel.Y is None:
            axes.text(0.5, 0.5, "needs classes", ha="center", va="center", color="#707070")
            continue
        points = 5 if len(panel.Y) > 500 else 12
        axes.scatter(*panel.Y.T, s=points, c=panel.colors, linewidths=0)
        axes.set_aspect("equal", "datalim")
    return figure


def digits_picture() -> Any:
    """The picture of the README."""
    data = datasets.digits()
    Y = TSNE(random_state=0).fit_transform(data.X)
    title = "1797 handwritten digits, 64 pixels each: t-SNE"
    return plot.scatter_map(Y, data.labels, title=title, label_name="digit")


def write(figure: Any, path: Path, dpi: int) -> None:
    """A PNG without a date in it: the same bytes at every run."""
    whole = io.BytesIO()
    figure.savefig(whole, format="png", dpi=dpi, metadata={"Software": None})
    shrink(whole, path)


def shrink(picture: Any, path: Path, widest: int | None = None) -> None:
    """Write a PNG with a palette, which is small, and at most as wide as said."""
    from PIL import Image

    image = Image.open(picture).convert("RGB")
    if widest is not None and image.width > widest:
        size = widest, round(image.height * widest / image.width)
        image = image.resize(size, Image.Resampling.LANCZOS)
    # maximum coverage keeps rare colors: the median cut merged the ends of the color scales
    image = image.quantize(COLORS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    sys.stdout.write(f"{path} {path.stat().st_size // 1000} kB\n")


def draw_lecture(page: Path) -> None:
    """Run the code of a page, and keep the pictures that the page shows."""
    folder = PICTURES / "lectures"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        lecture_pages.run(page, Path(place))
        for name in lecture_pages.pictures(page):
            shrink(lecture_pages.drawn(name, Path(place)), folder / f"{name}.png", WIDEST)


def draw_trust() -> None:
    """The maps with planted errors, and the sentences about them, in one run."""
    trust_pictures.FOLDER.mkdir(exist_ok=True)
    said = {}
    for name in trust_pictures.PLANTS:
        figure, said[name] = trust_pictures.draw(name)
        write(figure, trust_pictures.FOLDER / f"{name}.png", TRUST_DPI)
    text = json.dumps(said, indent=1, ensure_ascii=False)
    trust_pictures.SENTENCES.write_text(f"{text}\n", encoding="utf-8")


def is_drawn(page: Path) -> bool:
    """Whether all pictures of a lecture are there."""
    names = lecture_pages.pictures(page)
    return all((PICTURES / "lectures" / f"{name}.png").exists() for name in names)


def main(arguments: list[str] | None = None) -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="methods, digits, lectures, trust")
    parser.add_argument("--all", action="store_true", help="draw all of them again")
    options = parser.parse_args(arguments)
    methods = ["digits", *registry.names()]
    lectures = {page.stem: page for page in lecture_pages.pages()}
    known_names = [*methods, "lectures", *lectures, "trust"]
    for name in options.names:
        if name not in known_names:
            known = ", ".join(known_names)
            parser.error(f"unknown picture {name!r}; there are {known}")
    PICTURES.mkdir(exist_ok=True)
    for name in methods:
        path = PICTURES / f"{name}.png"
        if name in options.names or options.all or not (options.names or path.exists()):
            digits = name == "digits"
            write(
                digits_picture() if digits else method_picture(name), path, 160 if digits else 100
            )
    for name, page in lectures.items():
        asked = name in options.names or "lectures" in options.names or options.all
        if asked or not (options.names or is_drawn(page)):
            draw_lecture(page)
    asked = "trust" in options.names or options.all
    if asked or not (options.names or trust_pictures.are_drawn()):
        draw_trust()


if __name__ == "__main__":
    main()

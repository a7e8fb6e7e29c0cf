"""Draw the pictures of the documentation into docs/pictures.

    python docs/make_pictures.py            # those that are missing
    python docs/make_pictures.py tsne pca   # draw these again
    python docs/make_pictures.py --all

Every method is shown on the same three data sets, so that pages can be compared: the digits and
the iris flowers, colored by class, and the swiss roll, colored by the length along its spiral.
The same pictures stand on the method's page and in the gallery.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland import TSNE, datasets, plot
from lowland._core import registry

__all__ = ["PICTURES", "SETTINGS", "call"]

PICTURES = Path(__file__).parent / "pictures"
# Parameters that differ from the defaults, for methods whose defaults show little on these tables.
SETTINGS: dict[str, dict[str, Any]] = {"kernel_pca": {"gamma": "median"}}
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
    return f"{cls.__name__}({', '.join(['n_components=2', *given])})"


def method_picture(name: str) -> Any:
    """The method's maps of the digits, the swiss roll and the iris flowers."""
    cls = registry.get(name)
    estimator = cls(n_components=2, random_state=0, **SETTINGS.get(name, {}))
    digits, iris = datasets.digits(), datasets.iris()
    roll = datasets.swiss_roll(1500, random_state=0)
    unrolled = None if cls.needs_target else estimator.fit_transform(roll.X)
    return panels_in_a_row(
        [
            Panel("digits", estimator.fit_transform(digits.X, digits.y), class_colors(digits.y)),
            Panel("swiss roll", unrolled, roll.truth[:, 0]),
            Panel("iris flowers", estimator.fit_transform(iris.X, iris.y), class_colors(iris.y)),
        ]
    )


def class_colors(classes: np.ndarray) -> np.ndarray:
    """A color for each row."""
    from lowland.plot.palettes import category_colors

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
    """A PNG with a palette and no date in it: small, and the same bytes at every run."""
    from PIL import Image

    whole = io.BytesIO()
    figure.savefig(whole, format="png", dpi=dpi, metadata={"Software": None})
    # maximum coverage keeps rare colors: the median cut merged the ends of the color scales
    image = Image.open(whole).convert("RGB")
    image = image.quantize(COLORS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def main(arguments: list[str] | None = None) -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="methods, or digits; default: missing ones")
    parser.add_argument("--all", action="store_true", help="draw all of them again")
    options = parser.parse_args(arguments)
    known = ["digits", *registry.names()]
    for name in options.names:
        if name not in known:
            parser.error(f"unknown picture {name!r}; there are {', '.join(known)}")
    PICTURES.mkdir(exist_ok=True)
    for name in options.names or known:
        path = PICTURES / f"{name}.png"
        if path.exists() and not (options.names or options.all):
            continue
        figure, dpi = (digits_picture(), 160) if name == "digits" else (method_picture(name), 100)
        write(figure, path, dpi)
        sys.stdout.write(f"{path} {path.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main()

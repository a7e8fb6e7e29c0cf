"""Draw the pictures of the documentation into docs/pictures.

    python docs/make_pictures.py            # those that are missing
    python docs/make_pictures.py tsne pca   # these anew
    python docs/make_pictures.py --all

Each method is shown on the same two data sets, so that the pages can be compared: the digits, by
class, and the swiss roll, by the length along its spiral.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lowland import TSNE, datasets, plot
from lowland._core import registry

__all__ = ["PICTURES", "SETTINGS", "call"]

PICTURES = Path(__file__).parent / "pictures"
# What a method is given beside its defaults, where these show little on the two data sets.
SETTINGS: dict[str, dict[str, Any]] = {"kernel_pca": {"gamma": "median"}}
COLORS = 64  # of a palette: a third of the bytes, and no eye sees the difference


def call(cls: type) -> str:
    """The estimator of a picture as one would type it."""
    settings = SETTINGS.get(registry.snake_case(cls.__name__), {})
    given = [f"{name}={value!r}" for name, value in settings.items()]
    return f"{cls.__name__}({', '.join(['n_components=2', *given])})"


def method_picture(name: str) -> Any:
    """The method's maps of the digits and of the swiss roll."""
    cls = registry.get(name)
    digits, roll = datasets.digits(), datasets.swiss_roll(1500, random_state=0)
    estimator = cls(n_components=2, random_state=0, **SETTINGS.get(name, {}))
    of_digits = estimator.fit_transform(digits.X, digits.y)
    if cls.needs_target:
        return plot.scatter_map(of_digits, digits.labels, title="digits", label_name="class")
    return side_by_side(of_digits, digits.labels, estimator.fit_transform(roll.X), roll.truth[:, 0])


def side_by_side(left: np.ndarray, classes: Any, right: np.ndarray, lengths: np.ndarray) -> Any:
    """Two maps of different rows, each with its own colors."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from lowland.plot.palettes import category_colors

    figure = Figure(figsize=(8, 4.1), layout="constrained")
    FigureCanvasAgg(figure)
    names, place = np.unique(classes, return_inverse=True)
    of_classes = np.array(category_colors(len(names)))[place]
    panels = figure.subplots(1, 2)
    for axes, Y, color, title in (
        (panels[0], left, of_classes, "digits, by class"),
        (panels[1], right, lengths, "swiss roll, by the length along its spiral"),
    ):
        axes.scatter(Y[:, 0], Y[:, 1], s=5, c=color, linewidths=0)
        axes.set_title(title, fontsize=10)
        axes.set_aspect("equal", "datalim")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#b0b0b0")
    return figure


def digits_picture() -> Any:
    """The picture of the README."""
    data = datasets.digits()
    Y = TSNE(random_state=0).fit_transform(data.X)
    title = "1797 handwritten digits, 64 pixels each: t-SNE"
    return plot.scatter_map(Y, data.labels, title=title, label_name="digit")


def write(figure: Any, path: Path, dpi: int) -> None:
    """A PNG with a palette, small enough for a repository."""
    from PIL import Image

    whole = io.BytesIO()
    figure.savefig(whole, format="png", dpi=dpi, metadata={"Software": None})
    image = Image.open(whole).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def main(arguments: list[str] | None = None) -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="methods, or digits; default: what is missing")
    parser.add_argument("--all", action="store_true", help="draw all of them anew")
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

"""Two rings that no line separates, by PCA and by kernel PCA.

PCA only rotates the plane, and one ring stays inside the other. After the transformation of an rbf
kernel, a straight line separates them in two kernel components.

    python examples/two_rings.py
    python examples/two_rings.py --rows 2000 --gamma 8 --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import lowland

COLORS = np.array(["#4477aa", "#ee6677"])


def rings(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points on circles of radius 1 and .3 with noise of .05, and which circle each is on."""
    rng = np.random.default_rng(seed)
    ring = np.arange(n_rows) % 2
    angle = 2 * np.pi * rng.random(n_rows)
    X = np.where(ring == 1, 0.3, 1.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.05 * rng.standard_normal(X.shape), ring


def share_right(Y: np.ndarray, ring: np.ndarray) -> float:
    """How many points the least-squares line puts on their own side."""
    design = np.column_stack([Y, np.ones(len(Y))])
    side = design @ np.linalg.lstsq(design, 2.0 * ring - 1, rcond=None)[0]
    return float(((side > 0) == (ring == 1)).mean())


def picture(maps: dict[str, np.ndarray], ring: np.ndarray) -> Figure:
    figure = Figure(figsize=(4 * len(maps), 4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, Y) in zip(figure.subplots(1, len(maps)), maps.items(), strict=True):
        axes.scatter(Y[:, 0], Y[:, 1], s=8, c=COLORS[ring])
        axes.set_title(f"{name}: {share_right(Y, ring):.0%} on their side of a line", fontsize=10)
        axes.set_aspect("equal", "datalim")
    return figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--gamma", type=float, help="scale of the kernel; by default from the data")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    options = parser.parse_args(arguments)
    X, ring = rings(options.rows)
    maps = {
        "data": X,
        "PCA": lowland.PCA(2).fit_transform(X),
        "kernel PCA": lowland.KernelPCA(2, gamma=options.gamma).fit_transform(X),
    }
    for name, Y in maps.items():
        print(f"{name:12}{share_right(Y, ring):6.1%} of the rows on the right side of a line")
    picture(maps, ring).savefig(options.out / "two_rings.png", dpi=150)


if __name__ == "__main__":
    main()

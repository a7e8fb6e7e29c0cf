"""The digits by several methods, side by side and rotated to match.

PCA keeps large distances, and the classes overlap. t-SNE keeps neighbors: nearly every class is a
separate group, but the distances between groups mean little.

    python examples/digits_side_by_side.py
    python examples/digits_side_by_side.py --rows 600 --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lowland import LLE, PCA, TSNE, Isomap
from lowland.datasets import digits
from lowland.metrics import Comparison, neighbor_recall, shepard_correlation
from lowland.plot import compare_maps, save_figure

METHODS = {
    "PCA": PCA(2),
    "LLE": LLE(2, n_neighbors=12),
    "Isomap": Isomap(2, n_neighbors=10),
    "t-SNE": TSNE(random_state=0),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=None, help="the first so many; default all")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    options = parser.parse_args(arguments)
    data = digits()
    X, labels = data.X[: options.rows], data.labels[: options.rows]
    maps = {name: method.fit_transform(X) for name, method in METHODS.items()}
    figure = compare_maps(list(maps.values()), list(maps), labels, label_name="digit")
    save_figure(figure, options.out / "digits_side_by_side.png")
    for name, Y in maps.items():
        both = Comparison(X, Y)
        near = neighbor_recall(both, n_neighbors=10)
        far = shepard_correlation(both)
        print(f"{name:6} keeps {near:4.0%} of ten nearest neighbors; distances correlate {far:.2f}")


if __name__ == "__main__":
    main()

"""The swiss roll: a flat sheet, rolled up in space. Which method finds the sheet?

PCA shows the plane of largest variance, and so the spiral; kernel PCA with an rbf kernel does not
unroll it either. t-SNE unrolls the sheet but bends it, shows clumps that are not in the data, and
tears it if the perplexity is smaller. Isomap and modified LLE, which are made for curved sheets,
show it flat and in its true proportions.

    python examples/swiss_roll.py
    python examples/swiss_roll.py --rows 400 --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lowland import PCA, TSNE, Isomap, KernelPCA, ModifiedLLE
from lowland.datasets import swiss_roll
from lowland.metrics import Comparison, shepard_correlation, trustworthiness
from lowland.plot import compare_maps, save_figure

METHODS = {
    "PCA": PCA(2),
    "kernel PCA": KernelPCA(2, gamma="median"),
    "t-SNE": TSNE(perplexity=50, random_state=0),
    "Isomap": Isomap(2, n_neighbors=8),
    "modified LLE": ModifiedLLE(2, n_neighbors=10),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    options = parser.parse_args(arguments)
    roll = swiss_roll(options.rows, random_state=0)
    maps = {"the sheet itself": roll.truth}
    maps |= {name: method.fit_transform(roll.X) for name, method in METHODS.items()}
    figure = compare_maps(
        list(maps.values()), list(maps), roll.truth[:, 0], label_name="length along the sheet"
    )
    save_figure(figure, options.out / "swiss_roll.png")
    for name in METHODS:
        both = Comparison(roll.truth, maps[name])
        near, far = trustworthiness(both, n_neighbors=10), shepard_correlation(both)
        print(
            f"{name:12} trust in neighbors on the sheet {near:.3f}; distances correlate {far:.2f}"
        )


if __name__ == "__main__":
    main()

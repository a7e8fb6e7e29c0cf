"""PCA against LDA: the axes along which wines vary most are not those that tell growers apart.

On raw columns PCA sees little but proline, whose numbers are largest. In equal units it shows the
growers, overlapping. LDA learns from the growers and does not depend on units; its separation is
measured on wines that neither method has seen.

    python examples/pca_against_lda.py
    python examples/pca_against_lda.py --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lowland import LDA, PCA
from lowland.datasets import wine
from lowland.metrics import knn_accuracy
from lowland.plot import compare_maps, save_figure

METHODS = {
    "PCA, raw columns": PCA(2),
    "PCA, equal units": PCA(2, scale=True),
    "LDA": LDA(2),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    options = parser.parse_args(arguments)
    data = wine()
    learned, new = slice(0, None, 2), slice(1, None, 2)
    maps = {}
    for name, method in METHODS.items():
        maps[name] = method.fit(data.X[learned], data.y[learned]).transform(data.X[new])
    figure = compare_maps(
        list(maps.values()),
        list(maps),
        data.labels[new],
        aligned=False,
        title="wines that the methods have not seen",
        label_name="grower",
    )
    save_figure(figure, options.out / "pca_against_lda.png")
    for name, Y in maps.items():
        right = knn_accuracy(Y, data.labels[new], n_neighbors=5)
        print(f"{name:17} {right:.0%} of unseen wines lie among their own grower's")


if __name__ == "__main__":
    main()

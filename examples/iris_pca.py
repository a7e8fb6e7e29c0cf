"""Iris by PCA: three species, four lengths, two axes with nearly all of the variance.

Arrows show the direction in which each length grows. Petal length and petal width point the same
way: flowers with long petals have wide ones, and this direction separates the species.

    python examples/iris_pca.py
    python examples/iris_pca.py --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from lowland import PCA
from lowland.datasets import iris
from lowland.plot import biplot, save_figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    options = parser.parse_args(arguments)
    data = iris()
    pca = PCA(2)
    Y = pca.fit_transform(data.X)
    shares = pca.explained_variance_ratio_
    figure = biplot(
        Y,
        pca.components_.T * np.sqrt(pca.explained_variance_),
        data.feature_names,
        data.labels,
        title="Iris: two of four dimensions",
        label_name="species",
        axis_names=[f"axis {i + 1} ({share:.1%})" for i, share in enumerate(shares)],
    )
    save_figure(figure, options.out / "iris_pca.png")
    petal = pca.components_[:, 2:]
    angle = np.degrees(np.arccos(petal[:, 0] @ petal[:, 1] / np.linalg.norm(petal, axis=0).prod()))
    print(f"two axes hold {shares.sum():.1%} of the variance, the first alone {shares[0]:.1%}")
    print(f"petal length and petal width point the same way, {angle:.0f} degrees apart")


if __name__ == "__main__":
    main()

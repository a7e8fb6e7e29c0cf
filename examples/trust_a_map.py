"""Where can a map of another tool be believed? Two maps of the digits by scikit-learn.

A map is only coordinates. Compared with the data, they show which points are placed among
dissimilar points, which gaps are not in the data and which islands hold two groups. With a function
that makes the map again, refits show what is stable and what is chance.

    python examples/trust_a_map.py
    python examples/trust_a_map.py --rows 500 --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import SpectralEmbedding

from lowland.datasets import digits
from lowland.plot import save_figure, trust_map
from lowland.trust import trust


def pca(X: np.ndarray, seed: int) -> np.ndarray:
    return PCA(2, random_state=seed).fit_transform(X)


def spectral(X: np.ndarray, seed: int) -> np.ndarray:
    return SpectralEmbedding(2, n_neighbors=15, random_state=seed).fit_transform(X)


TOOLS: dict[str, Any] = {"pca": pca, "spectral": spectral}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=None, help="the first so many; default all")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the pictures")
    options = parser.parse_args(arguments)
    X = digits().X[: options.rows]
    for name, make_map in TOOLS.items():
        found = trust(X, make_map(X, 0), make_map=make_map)
        print(f"{name}:")
        for sentence in found.sentences:
            print(f"  {sentence.level:8} {sentence.text}")
        figure = trust_map(found, title=f"digits by {name}")
        save_figure(figure, options.out / f"trust_{name}.png")


if __name__ == "__main__":
    main()

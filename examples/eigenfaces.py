"""Eigenfaces: principal components of images are images, and few of them rebuild a face.

Any images of equal size will do: a folder of them, or an NPZ file whose array X has one flattened
image per row. Without an argument, the bundled digits.

    python examples/eigenfaces.py
    python examples/eigenfaces.py faces/ --out pictures
    python examples/eigenfaces.py olivetti_faces.npz
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from lowland import PCA
from lowland.datasets import digits
from lowland.plot import eigen_images, reconstruction_strip, save_figure
from lowland.tables import read_table


def read_images(source: Path | None) -> tuple[np.ndarray, tuple[int, ...]]:
    """Images in rows, and the shape of one."""
    if source is None:
        return digits().X, (8, 8)
    if source.is_dir():
        table = read_table(source)
        return np.asarray(table.features, dtype=float), table.image_shape
    X = np.load(source, allow_pickle=False)["X"].astype(float)
    side = math.isqrt(X.shape[1])
    if side**2 != X.shape[1]:
        sys.exit(
            f"{source}: rows of {X.shape[1]} pixels are not square images; give a folder of images."
        )
    return X, (side, side)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="?", type=Path, help="a folder or an NPZ; default digits")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the two pictures")
    options = parser.parse_args(arguments)
    X, shape = read_images(options.images)
    held_out = np.random.default_rng(0).choice(len(X), 5, replace=False)  # never seen by the fit
    pca = PCA().fit(np.delete(X, held_out, axis=0))
    shares = pca.explained_variance_ratio_
    eigen = eigen_images(pca.mean_, pca.components_, shape, shares=shares)
    save_figure(eigen, options.out / "eigenfaces.png")
    # the last axes of rows fewer than pixels hold nothing
    axes = pca.components_[: np.count_nonzero(shares > 1e-12)]
    strip = reconstruction_strip(X[held_out], pca.mean_, axes, shape, counts=(2, 10, 50))
    save_figure(strip, options.out / "reconstruction.png")
    enough = int(np.searchsorted(np.cumsum(shares), 0.9)) + 1
    print(f"{len(X)} images of {'x'.join(map(str, shape))}: {enough} components hold 90 %")
    print(
        "images that the fit has not seen, rebuilt from 2, 10, 50 and all components: see the strip"
    )


if __name__ == "__main__":
    main()

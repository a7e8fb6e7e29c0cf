"""Regular grids in the latent square, and the basis functions on it: Gaussians, z and 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FREE = 1e-6  # the plane's share of the penalty: not 0, so that there is one best plane


def spacing(side: int) -> float:
    """The distance of neighbors on a grid of ``side`` points from -1 to 1; 2 for a single point."""
    return 2 / max(1, side - 1)


def grid(side: int, q: int) -> np.ndarray:
    """All points (side^q, q) of a regular grid in [-1, 1]^q; a single point is the middle."""
    axis = np.linspace(-1, 1, side) if side > 1 else np.zeros(1)
    return np.stack(np.meshgrid(*[axis] * q, indexing="ij"), axis=-1).reshape(-1, q)


class Basis(NamedTuple):
    """exp(-|z - c|^2 / (2 width^2)) at each center c, the q coordinates of z, and 1."""

    centers: np.ndarray
    width: float

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """The values (n, n_centers + q + 1); no row depends on the others."""
        square = np.zeros((len(Z), len(self.centers)))
        for z, c in zip(Z.T, self.centers.T, strict=True):
            square += ((z[:, None] - c) / self.width) ** 2
        return np.hstack([np.exp(-0.5 * square), Z, np.ones((len(Z), 1))])

    def penalties(self, alpha: float) -> np.ndarray:
        """alpha for the weights of Gaussians; those of the plane are almost free."""
        m, q = self.centers.shape
        return alpha * np.concatenate([np.ones(m), np.full(q + 1, FREE)])

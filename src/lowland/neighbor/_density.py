"""densMAP: the local densities of the data in the map (Narayan, Berger & Cho 2021).

    R_i = log(sum_j mu_ij d_ij^2 / sum_j mu_ij)              in the data, standardized
    r_i = log(e + sum_j phi_ij u_ij / sum_j phi_ij)          in the map
    objective: the fuzzy cross entropy - lambda M Corr(R, r),        M = sum_i deg_i / 2

The correlation is smoothed by a variance that is added to that of r, as in the reference
implementation. The expected step of the reference implementation is twice the gradient, since an
edge moves both of its rows and is stored in both directions. Divided by 2 deg_i like the other
forces, the force on row i is lambda M / deg_i dCorr/dy_i, computed exactly.
"""

from __future__ import annotations

import numpy as np

from lowland import _native
from lowland.neighbor._fuzzy_graph import FuzzyGraph

LEAST = 1e-8
SHIFT = 0.1  # added to the variance of r


def data_radii(graph: FuzzyGraph, squares: np.ndarray) -> np.ndarray:
    """The R_i, not standardized, for squared distances of the stored pairs of the graph."""
    sums = np.concatenate([[0.0], np.cumsum(graph.weights * squares, dtype=np.float64)])
    weighted = np.diff(sums[graph.indptr])
    degrees = graph.degrees()
    mean = np.divide(weighted, degrees, out=np.zeros_like(weighted), where=degrees > 0)
    return np.log(LEAST + np.maximum(mean, 0))


class DensityTerm:
    """The force of -lambda M Corr(R, r) on each row, divided by deg_i.

    Parameters
    ----------
    graph : FuzzyGraph
        The mu_ij.
    R : ndarray of shape (n,)
        Radii in the data.
    strength : float
        lambda.
    a, b : float
        Of the memberships in the map.
    """

    def __init__(
        self, graph: FuzzyGraph, R: np.ndarray, strength: float, a: float, b: float, threads: int
    ) -> None:
        self.edges, self.a, self.b, self.threads = graph, a, b, threads
        self.R = (R - R.mean()) / max(float(R.std()), LEAST)
        degrees = graph.degrees()
        scale = strength * degrees.sum() / 2
        self.per_row = np.divide(scale, degrees, out=np.zeros(graph.n), where=degrees > 0)
        self._sums = np.empty((graph.n, 2))

    def radii(self, Y: np.ndarray) -> np.ndarray:
        """The r_i at the map Y."""
        e = self.edges
        _native.map_radii(
            e.indptr, e.indices, e.weights, Y, self.a, self.b, self._sums, self.threads
        )
        total, weighted = self._sums[:, 0], self._sums[:, 1]
        mean = np.divide(weighted, total, out=np.zeros(len(Y)), where=total > 0)
        return np.log(LEAST + mean)

    def arrange(self, order: np.ndarray, edges: FuzzyGraph) -> None:
        """Follow a new order of the points, whose edges are given; their weights are not used."""
        self.edges, self.R, self.per_row = edges, self.R[order], self.per_row[order]

    def correlation(self, r: np.ndarray) -> float:
        """Corr(R, r), smoothed."""
        return float(self.R @ (r - r.mean())) / (len(r) * float(np.sqrt(r.var() + SHIFT)))

    def add_to(self, gradient: np.ndarray, Y: np.ndarray) -> None:
        """Subtract the force from ``gradient`` (n, d), in place."""
        r = self.radii(Y)
        n, spread = len(r), float(np.sqrt(r.var() + SHIFT))
        centered = r - r.mean()
        # dCorr/dr_i, then by the chain rule through the logarithm
        slopes = (self.R - (self.R @ centered) / n * centered / spread**2) / (n * spread)
        slopes -= slopes.mean()
        slopes /= np.exp(r)
        force, e = np.empty_like(Y), self.edges
        _native.radius_forces(
            e.indptr, e.indices, e.weights, Y, self.a, self.b, self._sums, -slopes, force,
            self.threads,
        )  # fmt: skip
        gradient -= force * self.per_row[:, None].astype(Y.dtype)

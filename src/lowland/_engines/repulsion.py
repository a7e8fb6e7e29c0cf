"""How the points of a map push each other apart: three ways to the same sums.

With the similarity K = (1 + r^2/v)^-v of two points (v = infinity: the Gaussian exp(-r^2)) and
G = K / (1 + r^2/v), all compute, for every point i,

    potential_i = sum_{j != i} K_ij            force_i = sum_{j != i} G_ij (y_i - y_j)

    pairs        exact                                    O(n^2 d)      any d
    barnes_hut   far groups of points taken as one        O(n log n)    d <= 3, not the Gaussian
    mesh         a potential on a grid                    O(n + grid)   d <= 3
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lowland import _native
from lowland._core.errors import ParameterError
from lowland._engines.mesh import Mesh, mesh_nodes

__all__ = ["AUTO", "Repulsion", "choose_repulsion", "pairwise_repulsion", "weighted_repulsion"]

# (Y, potential, forces): fills the last two.
Repulsion = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
AUTO = "auto"

# Measured, two threads: a pair, a node of the padded grid with its transforms, a point on the grid.
# Other degrees of freedom than 1 cost eight times as much per pair.
NS_PER_PAIR, NS_PER_NODE, NS_PER_POINT = 0.14, 10.0, 15.0
TYPICAL_SPAN = {1: 400.0, 2: 25.0, 3: 9.0}  # of a map of 1000 points that is nearly done
MESH_LIMIT = 2**27  # nodes beyond which the tree takes over, for one step


def choose_repulsion(
    method: str, n: int, d: int, dof: float, angle: float, threads: int, *, owner: str
) -> Repulsion:
    """The repulsion by name; ``auto`` takes what a step will cost least."""
    if method in ("barnes_hut", "mesh") and d > 3:
        raise ParameterError(
            f"{owner}: method={method!r} works in up to 3 dimensions, not n_components={d}; "
            "use method='exact'."
        )
    if method == AUTO:
        method = "exact" if d > 3 or _pairs_are_cheaper(n, d, dof) else "mesh"
    if method == "exact":
        return pairwise_repulsion(dof, threads)
    if method == "barnes_hut":
        return _tree_repulsion(dof, angle, threads)
    return _mesh_repulsion(dof, angle, threads)


def _pairs_are_cheaper(n: int, d: int, dof: float) -> bool:
    span = TYPICAL_SPAN[d] * (n / 1000) ** (1 / d)
    nodes = (4 * span / min(1.0, math.sqrt(dof))) ** d
    pair = NS_PER_PAIR * (1 if dof == 1 else 8)
    return pair * n * n <= NS_PER_NODE * nodes + NS_PER_POINT * n


def pairwise_repulsion(dof: float, threads: int) -> Repulsion:
    """All pairs: the definition."""
    gaussian = math.isinf(dof)

    def repel(Y: np.ndarray, potential: np.ndarray, forces: np.ndarray) -> None:
        none = np.empty(0, Y.dtype)
        _native.repel_pairs(Y, gaussian, 1.0 if gaussian else dof, none, potential, forces, threads)

    return repel


def weighted_repulsion(
    Y: np.ndarray, dof: float, weights: np.ndarray, forces: np.ndarray, threads: int
) -> None:
    """sum_j G_ij (y_i - y_j) (u_i + u_j) over all pairs, for weights u."""
    gaussian = math.isinf(dof)
    potential = np.empty(len(Y))
    _native.repel_pairs(Y, gaussian, 1.0 if gaussian else dof, weights, potential, forces, threads)


def _tree_repulsion(dof: float, angle: float, threads: int) -> Repulsion:
    def repel(Y: np.ndarray, potential: np.ndarray, forces: np.ndarray) -> None:
        _native.repel_tree(Y, dof, angle, potential, forces, threads)

    return repel


def _mesh_repulsion(dof: float, angle: float, threads: int) -> Repulsion:
    mesh, tree = Mesh(dof, threads), _tree_repulsion(dof, angle, threads)

    def repel(Y: np.ndarray, potential: np.ndarray, forces: np.ndarray) -> None:
        # An outlier can make a map so wide that its grid does not fit: then, for once, a tree.
        if mesh_nodes(Y, dof) > MESH_LIMIT and not math.isinf(dof):
            return tree(Y, potential, forces)
        mesh.field(Y).at(Y, potential, forces, threads)
        return None

    return repel

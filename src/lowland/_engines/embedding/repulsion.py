"""Repulsion between the points of a map: three algorithms for the same sums.

With the similarity K = (1 + r^2/v)^-v of two points (v = infinity: the Gaussian exp(-r^2)) and
G = K / (1 + r^2/v), all compute, for every point i,

    potential_i = sum_{j != i} K_ij            force_i = sum_{j != i} G_ij (y_i - y_j)

    pairs        exact                                    O(n^2 d)      any d
    barnes_hut   a distant group of points acts as one    O(n log n)    d <= 3, not the Gaussian
    mesh         particle mesh: a potential on a grid     O(n + grid)   d <= 3
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from lowland import _native
from lowland._base.errors import ParameterError
from lowland._base.traits import Estimate
from lowland._engines.embedding.particle_mesh import ParticleMesh, grid_nodes, similarity

# (Y, potential, forces): fills the last two.
Repulsion = Callable[[np.ndarray, np.ndarray, np.ndarray], None]

# Nanoseconds, measured with two threads: a pair, a point in a tree and a node of the padded grid
# with its transforms (both by dimension of the map), a point on the grid. Degrees of freedom other
# than 1 need a power per pair; for the grid they cost nothing.
PAIR, TREE = 0.14, {1: 50.0, 2: 200.0, 3: 540.0}
NODE, POINT = {1: 3.0, 2: 1.0, 3: 3.0}, 30.0
POWER = {"pairs": 8.0, "tree": 3.0}
SMALL = 1e6  # below this time of all pairs, no other algorithm is considered
MOST_NODES = 2**25  # a larger grid is not considered


def choose_repulsion(
    method: str, n: int, d: int, dof: float, angle: float, threads: int, *, owner: str
) -> Repulsion:
    """The repulsion by name; ``auto`` takes at every step the cheapest for the current map."""
    if method in ("barnes_hut", "mesh") and d > 3:
        raise ParameterError(
            f"{owner}: method={method!r} works in up to 3 dimensions, not n_components={d}; "
            "use method='exact'."
        )
    pairs = pairwise_repulsion(dof, threads)
    if method == "exact" or d > 3:
        return pairs
    tree = _tree_repulsion(dof, angle, threads)
    if method == "barnes_hut":
        return tree
    mesh = _particle_mesh_repulsion(dof, threads)
    if method == "mesh":
        return mesh
    pair_time = PAIR * n * n * (1 if dof == 1 else POWER["pairs"])
    if pair_time < SMALL:
        return pairs
    tree_time = TREE[d] * n * (1 if dof == 1 else POWER["tree"])
    kernel = similarity(dof)

    def cheapest(Y: np.ndarray, potential: np.ndarray, forces: np.ndarray) -> None:
        nodes = grid_nodes(Y, kernel)
        mesh_time = NODE[d] * nodes + POINT * n if nodes <= MOST_NODES else math.inf
        _, _, repel = min((pair_time, 0, pairs), (mesh_time, 1, mesh), (tree_time, 2, tree))
        repel(Y, potential, forces)

    return cheapest


def repulsion_cost(n: int, d: int, dof: float = 1.0, method: str = "auto") -> Estimate:
    """Time on two cores and memory of one evaluation; the grid is that of a finished map.

    The number of nodes is about that of t-SNE maps of clusters; it depends on the data.
    """
    tails = 1 if dof == 1 else POWER["pairs"]
    nodes = {1: 30 * n**0.5, 2: 11_000 * n**0.5, 3: 2e7}.get(d, 0.0)
    seconds = {
        "exact": 1e-9 * PAIR * n * n * tails,
        "barnes_hut": 1e-9 * TREE.get(d, 0.0) * n * (1 if dof == 1 else POWER["tree"]),
        "mesh": 1e-9 * (NODE.get(d, 0.0) * nodes + POINT * n),
    }
    cheapest = min(seconds, key=lambda name: seconds[name])
    chosen = "exact" if d > 3 else cheapest if method == "auto" else method
    return Estimate(seconds[chosen], 24 * nodes if chosen == "mesh" else 8.0 * n * d)


def pairwise_repulsion(dof: float, threads: int) -> Repulsion:
    """The sums over all pairs."""
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


def _particle_mesh_repulsion(dof: float, threads: int) -> Repulsion:
    mesh, turns = ParticleMesh(similarity(dof), threads), itertools.count()

    def repel(Y: np.ndarray, potential: np.ndarray, forces: np.ndarray) -> None:
        mesh.field(Y, turn=next(turns)).at(Y, potential, forces, threads)

    return repel

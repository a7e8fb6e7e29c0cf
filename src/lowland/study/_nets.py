"""The curve or the grid that a fitted method has laid through the data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowland._engines.grids.lattice import Lattice

__all__ = ["NET_NEEDS", "Net", "edges_between", "net_of"]

# Attributes of which each tells a net: knots of a curve, nodes, units with their places.
NET_NEEDS = (("curve_",), ("nodes_",), ("unit_places_", "codebook_"))
CLOSED_AXES = {"ring": 1, "cylinder": 1, "torus": 2}  # of kinds of grids; others have none
SLACK = 1.01  # of the distance of neighbors


class Net(NamedTuple):
    """Points in the columns of the method; a curve runs through them in their order."""

    nodes: np.ndarray
    edges: np.ndarray | None  # None: a curve
    closed: bool = False  # a curve whose end is its beginning


def net_of(estimator: Any) -> Net | None:
    """The curve or the grid of a fitted method; None if it has none that can be drawn."""
    curve = getattr(estimator, "curve_", None)
    if curve is not None:
        return Net(np.asarray(curve), None, getattr(estimator, "closed", False) is True)
    nodes = _first(estimator, ("nodes_", "codebook_"))
    places = _first(estimator, ("unit_places_", "node_places_"))
    if nodes is None:
        return None
    if _are_places(estimator):
        nodes, places = estimator.inverse_transform(nodes), nodes
    edges = _edges_of(estimator, places, len(nodes))
    return None if edges is None else Net(np.asarray(nodes), edges)


def _first(estimator: Any, names: tuple[str, ...]) -> Any:
    found = (getattr(estimator, name, None) for name in names)
    return next((value for value in found if value is not None), None)


def _are_places(estimator: Any) -> bool:
    """Whether the nodes are declared as places of the map, as those of a GTM, not as rows."""
    declared = getattr(estimator, "fitted_attributes", {}).get("nodes_")
    return declared is not None and (declared.shape or ("",))[-1] == "n_components"


def _edges_of(estimator: Any, places: Any, n_nodes: int) -> np.ndarray | None:
    """Neighboring nodes: by the sides of the grid, or else those one step apart in the map."""
    sides, kind = _first(estimator, ("unit_sides_", "shape_")), getattr(estimator, "grid", None)
    if sides is not None and np.prod(sides) == n_nodes:
        q = len(sides)
        n_closed = q if getattr(estimator, "toroidal", False) else CLOSED_AXES.get(kind or "", 0)
        is_hexagonal = kind == "hexagon" and q == 2 and min(sides) > 1
        lattice = Lattice(
            "hexagon" if is_hexagonal else "rectangle",
            tuple(int(side) for side in sides),
            tuple(axis < n_closed for axis in range(q)),
        )
        return lattice.edges()
    if places is None or len(places) != n_nodes:
        return None
    return edges_between(places, kind or "rectangle")


def edges_between(places: Any, kind: str) -> np.ndarray:
    """Pairs of neighbors on a regular grid; the steps of a rectangular one may differ by axis."""
    from scipy.spatial import cKDTree

    places = np.asarray(places, dtype=np.float64)
    if len(places) < 2:
        return np.zeros((0, 2), np.int64)
    if kind == "hexagon":
        step = float(cKDTree(places).query(places, k=2)[0][:, 1].min())
    else:
        places, step = places / [_smallest_gap(along) for along in places.T], 1.0
    return cKDTree(places).query_pairs(SLACK * step, output_type="ndarray")


def _smallest_gap(along: np.ndarray) -> float:
    """Between two different coordinates; rounding does not make them different."""
    gaps = np.diff(np.sort(along))
    gaps = gaps[gaps > 1e-9 * float(np.abs(along).max(initial=0.0))]
    return float(gaps.min()) if gaps.size else 1.0

"""What is known of a map, after the map was turned."""

from __future__ import annotations

import dataclasses

import numpy as np

from lowland.trust import Trust


def moved(trust: Trust, coordinates: np.ndarray) -> Trust:
    """The same for a map that was rotated, reflected, scaled and moved to other coordinates."""
    before = trust.coordinates
    with_one = np.column_stack([before, np.ones(len(before))])
    affine = np.linalg.lstsq(with_one, coordinates, rcond=None)[0]

    def placed(points: np.ndarray) -> np.ndarray:
        return np.column_stack([points, np.ones(len(points))]) @ affine

    sizes = [float(np.linalg.norm(Y - Y.mean(axis=0))) for Y in (before, coordinates)]
    scale = sizes[1] / sizes[0] if sizes[0] > 0 else 1.0
    points = trust.points._replace(
        home=placed(trust.points.home), spread=trust.points.spread * scale
    )
    islands = [each._replace(center=placed(each.center[None])[0]) for each in trust.islands]
    return dataclasses.replace(trust, coordinates=coordinates, points=points, islands=islands)

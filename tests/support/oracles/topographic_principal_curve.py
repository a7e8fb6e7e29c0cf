"""Where new rows belong on a principal curve, and which rows belong to places along it."""

from __future__ import annotations

import numpy as np

from support.oracles.basics import HeldOut


def _segments(task: HeldOut) -> list[tuple[np.ndarray, np.ndarray, float, float, float]]:
    """Begin, direction, arc length at the begin, and the range of lengths on each segment.

    The ends are prolonged by a length that the fit has measured.
    """
    points, found, arc = task.model.curve_, [], 0.0
    more = 0.0 if task.params["closed"] else task.model.prolongation_
    for j in range(len(points) - 1):
        step = points[j + 1] - points[j]
        length = float(np.sqrt(step @ step))
        low = -more if j == 0 else 0.0
        high = length + (more if j == len(points) - 2 else 0.0)
        found.append((points[j], step / length, arc, low, high))
        arc += length
    return found


def nearest_arc(task: HeldOut) -> np.ndarray:
    """The arc length at the nearest point of all segments, and the distance left of it."""
    places = []
    for row in task.new:
        tried = []
        for begin, direction, arc, low, high in _segments(task):
            s = min(max(float((row - begin) @ direction), low), high)
            gap = row - (begin + s * direction)
            tried.append((float(gap @ gap), arc + s, direction, gap))
        square, arc, direction, gap = min(tried, key=lambda found: found[0])
        place = [arc]
        if task.params["n_components"] == 2:
            left = direction[0] * gap[1] - direction[1] * gap[0]
            place.append(np.sqrt(square) if left > 0 else -np.sqrt(square))
        places.append(place)
    return np.array(places)


def on_the_curve(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """The point of the curve at an arc length, on a straight line beyond the ends."""
    rows, segments = [], _segments(task)
    for z in Z:
        arc = z[0] % task.model.length_ if task.params["closed"] else z[0]
        begin, direction, start, _, _ = [s for s in segments if s[2] <= arc or s is segments[0]][-1]
        row = begin + (arc - start) * direction
        if task.params["n_components"] == 2:
            row = row + z[1] * np.array([-direction[1], direction[0]])
        rows.append(row)
    return np.array(rows)

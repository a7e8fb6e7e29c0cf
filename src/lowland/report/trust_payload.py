"""What the script on the page reads about the trust of each map; :mod:`payload` packs the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland.metrics.pointwise.home import KINDS
from lowland.report.payload import (
    SHOWN_DIMENSIONS,
    display_rows,
    frame_of,
    pack_array,
    pack_codes,
)
from lowland.report.summary import Map, Summary
from lowland.trust.result import OtherMap, Plateau, Trust

MOST_IN_PART = 5_000  # points of a small map
NOT_MEASURED = 255  # code of a share that is not known; the others are 254 times the share
FINEST = 2**16 - 1  # steps of a coordinate of a small map, from one edge to the other


def pack_trust(summary: Summary) -> dict[str, Any]:
    """An entry ``trust`` for the data of the page; none if nothing is known about any map."""
    rows = display_rows(len(summary["ids"]))
    packed = [_pack_entry(entry, rows) for entry in summary["maps"]]
    return {} if packed == [None] * len(packed) else {"trust": packed}


def other_maps(trust: Trust | None, plateau: Plateau | None) -> dict[str, OtherMap]:
    """The small maps by the name that the page gives them.

    ``here`` is the map itself at the rows of the first refit, or of the map without structure.
    """
    found: dict[str, OtherMap] = {}
    if trust is not None:
        refits = [] if trust.stability is None else trust.stability.refits
        found |= {f"refit-{number}": refit for number, refit in enumerate(refits)}
        if trust.chance is not None:
            found["null"] = trust.chance.null
        for beside in list(found.values())[:1]:
            found["here"] = OtherMap("this map", beside.rows, trust.coordinates[beside.rows])
    if plateau is not None:
        found |= {f"plateau-{number}": made for number, made in enumerate(plateau.maps)}
    return found


def _pack_entry(entry: Map, rows: np.ndarray) -> dict[str, Any] | None:
    trust, plateau = entry.get("trust"), entry.get("plateau")
    if trust is None and plateau is None:
        return None
    return {
        "points": None if trust is None else _pack_points(trust, rows),
        "arrows": None if trust is None else _pack_arrows(trust, rows),
        "islands": None if trust is None else _pack_islands(trust, rows),
        "parts": {
            name: _pack_part(other, None if name == "null" else rows)
            for name, other in other_maps(trust, plateau).items()
        },
    }


def _pack_points(trust: Trust, rows: np.ndarray) -> dict[str, Any]:
    points = trust.points
    kinds = np.asarray(points.kind, dtype=np.int64)[rows] + 1
    stability = None if trust.stability is None else _shares(trust.stability.points, rows)
    return {
        "missing": _shares(points.missing, rows),
        "strangers": _shares(points.strangers, rows),
        "stability": stability,
        "kind": pack_codes("kind", kinds, list(KINDS), missing="not measured"),
    }


def _shares(values: np.ndarray, rows: np.ndarray) -> str:
    """Values from 0 to 1 as one byte each."""
    values = np.asarray(values, dtype=np.float64)[rows]
    known = np.isfinite(values)
    codes = np.full(len(values), NOT_MEASURED, dtype=np.uint8)
    codes[known] = np.round(np.clip(values[known], 0.0, 1.0) * (NOT_MEASURED - 1))
    return pack_array(codes, "<u1")


def _pack_arrows(trust: Trust, rows: np.ndarray) -> dict[str, Any]:
    """From where to where, in the units of the packed map, and the points that are shown."""
    worst = trust.worst()
    place, shown = _places(worst, rows)
    return {
        "points": np.where(shown, place, -1).tolist(),
        "starts": _in_frame(trust, trust.coordinates[worst], rows),
        "homes": _in_frame(trust, trust.points.home[worst], rows),
    }


def _pack_islands(trust: Trust, rows: np.ndarray) -> dict[str, Any]:
    centers = [island.center for island in trust.islands]
    q = trust.coordinates.shape[1]
    return {
        "codes": pack_array(np.asarray(trust.island_of)[rows], "<u2"),
        "numbers": [int(island.number) for island in trust.islands],
        "centers": _in_frame(trust, np.reshape(centers, (-1, q)), rows),
        "double": [
            island.inner is not None and island.inner.verdict == "real" for island in trust.islands
        ],
        "gaps": [
            {"one": int(gap.one), "other": int(gap.other), "verdict": gap.verdict}
            for gap in trust.gaps
            if gap.one != gap.other
        ],
    }


def _in_frame(trust: Trust, places: np.ndarray, rows: np.ndarray) -> list[list[float]]:
    """Places of the map in the units in which :func:`payload.pack_map` packs it."""
    middle, reach = frame_of(trust.coordinates, rows)
    places = np.asarray(places, dtype=np.float64)[:, :SHOWN_DIMENSIONS]
    return [[round(float(value), 5) for value in place] for place in (places - middle) / reach]


def _pack_part(other: OtherMap, shown_rows: np.ndarray | None) -> dict[str, Any]:
    """A small map of those of its rows that the page shows; without them, rows have no meaning."""
    Y, points = np.asarray(other.coordinates), None
    if shown_rows is not None:
        points, shown = _places(np.asarray(other.rows), shown_rows)
        Y, points = Y[shown], points[shown]
    if len(Y) > MOST_IN_PART:
        drawn = np.random.default_rng(0).choice(len(Y), MOST_IN_PART, replace=False, shuffle=False)
        drawn.sort()
        Y, points = Y[drawn], None if points is None else points[drawn]
    if len(Y):
        middle, reach = frame_of(Y, np.arange(len(Y)))
        Y = (Y[:, :SHOWN_DIMENSIONS] - middle) / reach
    return {
        "title": other.title,
        "dimensions": min(Y.shape[1], SHOWN_DIMENSIONS),
        "points": None if points is None else pack_array(points, "<u4"),
        "coordinates": pack_array(np.round((Y + 1) / 2 * FINEST), "<u2"),
    }


def _places(wanted: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each wanted row among the ascending rows, and whether it is there."""
    place = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    return place, rows[place] == wanted

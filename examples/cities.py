"""A map of Australia from road distances, one of which is unknown.

Five of the six distances between Sydney, Adelaide, Brisbane and Perth are given, the one between
Brisbane and Perth is not. MDS leaves this pair out; the map then gives an estimate of it.

    python examples/cities.py
    python examples/cities.py --out australia.png
"""

from __future__ import annotations

import argparse

import numpy as np

import lowland
from lowland.plot import save_figure, scatter_map

CITIES = ["Sydney", "Adelaide", "Brisbane", "Perth"]
UNKNOWN = np.nan
KILOMETERS = np.array(
    [
        [0, 1166, 752, 3279],
        [1166, 0, 1622, 2118],
        [752, 1622, 0, UNKNOWN],
        [3279, 2118, UNKNOWN, 0],
    ]
)


def map_of(distances: np.ndarray) -> np.ndarray:
    """Places in kilometers, turned as an atlas has them: Sydney east of Perth, Brisbane north."""
    places = lowland.MDS(metric="precomputed", random_state=0).fit_transform(distances)
    sydney, brisbane, perth = (places[CITIES.index(n)] for n in ("Sydney", "Brisbane", "Perth"))
    east = (sydney - perth) / np.linalg.norm(sydney - perth)
    north = np.array([-east[1], east[0]])
    if (brisbane - sydney) @ north < 0:  # distances do not tell left from right
        north = -north
    return np.column_stack([places @ east, places @ north])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="cities.png")
    options = parser.parse_args(arguments)
    places = map_of(KILOMETERS)
    for i, j in zip(*np.triu_indices(len(CITIES), 1), strict=True):
        drawn = np.linalg.norm(places[i] - places[j])
        road = "unknown" if np.isnan(KILOMETERS[i, j]) else f"{KILOMETERS[i, j]:.0f} km"
        print(f"{CITIES[i] + ' - ' + CITIES[j]:22}{road:>10} by road, {drawn:5.0f} km in the map")
    axes = ["km to the east", "km to the north"]
    save_figure(scatter_map(places, names=CITIES, axis_names=axes), options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()

"""Australia from road distances: the map is that of an atlas, up to the detours of the roads."""

import itertools

import numpy as np

from lowland import MDS, ClassicalMDS, NonmetricMDS, Sammon
from lowland._engines.linalg.procrustes import align
from lowland.datasets import australia
from support.cases import each


@each("method", [ClassicalMDS, MDS, NonmetricMDS, Sammon])
def test_australian_towns_lie_as_in_an_atlas(method):
    data = australia()
    names, D = data.row_names, data.X
    longitude, latitude = data.truth.T
    atlas = np.column_stack([longitude * np.cos(np.radians(latitude.mean())), latitude])
    Y = method(metric="precomputed").fit_transform(D)
    turned = align(atlas, Y, scaling=True)
    assert turned.disparity < 0.08
    town = dict(zip(names, turned.aligned, strict=True))
    by_east = sorted(names, key=lambda name: town[name][0])
    assert set(by_east[:2]) == {"Perth", "Broome"}
    assert set(by_east[-3:]) == {"Sydney", "Brisbane", "Cairns"}
    by_north = sorted(names, key=lambda name: town[name][1])
    assert by_north[-3:] == ["Broome", "Cairns", "Darwin"]
    assert set(by_north[:4]) == {"Perth", "Melbourne", "Canberra", "Sydney"}
    # the coast from Adelaide to Cairns, and the one town far inland
    coast = ("Adelaide", "Melbourne", "Canberra", "Sydney", "Brisbane", "Cairns")
    steps = [np.linalg.norm(town[a] - town[b]) for a, b in itertools.pairwise(coast)]
    assert np.argmin(steps) == coast.index("Canberra")
    assert all(town["Alice"][0] < town[name][0] for name in coast)

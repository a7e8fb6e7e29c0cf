"""Small real tables and generators with ground truth.

Every function returns a :class:`Dataset`. The tables come with scikit-learn and need no network;
the generators return the coordinates behind each row as ``truth``, so that a map can be compared
with what it should have found.
"""

from lowland.datasets._base import Dataset
from lowland.datasets.catalog import load_dataset, names
from lowland.datasets.clusters import blobs, two_rings
from lowland.datasets.curved import helix, sphere, torus
from lowland.datasets.sheets import bent_sheet, s_curve, swiss_roll
from lowland.datasets.tables import breast_cancer, digits, iris, wine

__all__ = [
    "Dataset",
    "bent_sheet",
    "blobs",
    "breast_cancer",
    "digits",
    "helix",
    "iris",
    "load_dataset",
    "names",
    "s_curve",
    "sphere",
    "swiss_roll",
    "torus",
    "two_rings",
    "wine",
]

"""Small real tables and generators with ground truth.

Every function returns a :class:`Dataset`. The tables are part of the package or come
with scikit-learn and need no network; some hold distances between rows (``distances`` is True). The
generators return the coordinates behind each row as ``truth``, so that a map can be compared
with what it should have found.
"""

from lowland.datasets._base import Dataset
from lowland.datasets.catalog import load_dataset, names
from lowland.datasets.classics import animals, breakfast_preferences, coffee, swiss, usarrests
from lowland.datasets.clusters import blobs, two_rings
from lowland.datasets.curved import helix, sphere, torus
from lowland.datasets.dissimilarities import (
    australia,
    breakfast,
    ekman,
    eurodist,
    morse,
    uscities,
)
from lowland.datasets.faces import drawn_faces
from lowland.datasets.sheets import bent_sheet, s_curve, swiss_roll
from lowland.datasets.tables import breast_cancer, digits, iris, wine
from lowland.datasets.trees import branching_tree

__all__ = [
    "Dataset",
    "animals",
    "australia",
    "bent_sheet",
    "blobs",
    "branching_tree",
    "breakfast",
    "breakfast_preferences",
    "breast_cancer",
    "coffee",
    "digits",
    "drawn_faces",
    "ekman",
    "eurodist",
    "helix",
    "iris",
    "load_dataset",
    "morse",
    "names",
    "s_curve",
    "sphere",
    "swiss",
    "swiss_roll",
    "torus",
    "two_rings",
    "usarrests",
    "uscities",
    "wine",
]

"""Small real tables and generators with ground truth.

Every function returns a :class:`Dataset`. The tables are part of the package or come
with scikit-learn and need no network; some hold distances between rows (``distances`` is True). The
generators return the coordinates behind each row as ``truth``, so that a map can be compared
with what it should have found.
"""

from lowland.datasets._base import Dataset
from lowland.datasets.bundled import (
    animals,
    australia,
    breakfast,
    breakfast_preferences,
    breast_cancer,
    coffee,
    digits,
    ekman,
    eurodist,
    iris,
    morse,
    swiss,
    usarrests,
    uscities,
    wine,
)
from lowland.datasets.catalog import load_dataset, names
from lowland.datasets.clusters import blobs, branching_tree, two_rings
from lowland.datasets.faces import drawn_faces
from lowland.datasets.surfaces import bent_sheet, helix, s_curve, sphere, swiss_roll, torus

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

"""Small real tables and generators with ground truth.

Every function returns a :class:`Dataset`. The tables are part of the package or come
with scikit-learn and need no network; some hold distances between rows (``distances`` is True). The
generators return the coordinates behind each row as ``truth``, so that a map can be compared
with what it should have found.
"""

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland.datasets._base": "Dataset",
        "lowland.datasets.bundled": """
            animals australia breakfast breakfast_preferences breast_cancer coffee digits ekman
            eurodist iris morse swiss usarrests uscities wine
        """,
        "lowland.datasets.catalog": "load_dataset names",
        "lowland.datasets.clusters": "blobs branching_tree two_rings",
        "lowland.datasets.faces": "drawn_faces",
        "lowland.datasets.surfaces": "bent_sheet helix s_curve sphere swiss_roll torus",
    },
)

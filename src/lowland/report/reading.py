"""How to read the maps of each family of methods: what position, distance and size mean in them."""

from __future__ import annotations

from lowland._core import registry

__all__ = ["how_to_read"]

EVERY_MAP = (
    "A map of few dimensions cannot keep everything. Trust what several measures, several seeds "
    "or several methods agree on.",
    "Rotating or mirroring a map changes nothing; unless an axis is said to mean something, it "
    "does not.",
)

BY_FAMILY = {
    "linear": (
        "Each axis is a weighted sum of the columns, so positions along an axis mean something, "
        "and new rows fall where the same sum puts them.",
        "Distances in the map are never larger than in the data (for PCA): far apart here is far "
        "apart there, but points that coincide here may differ in the directions not shown.",
        "Curved or nested groups can overlap although they are separate in the data.",
    ),
    "kernel": (
        "The axes are those of a curved transformation of the data: positions along them order the "
        "points, but have no unit of the original columns.",
        "What looks separate depends on the kernel and its width: try another before concluding.",
    ),
    "mds": (
        "Distances are what this map tries to keep: near and far can be read, within the stress "
        "reported.",
        "With high stress, large distances are kept better than small ones: do not read the order "
        "of neighbors inside a dense group.",
    ),
    "spectral": (
        "The map unrolls a graph of nearest neighbors. Following a path through the points means "
        "something; the straight line across an empty gap does not.",
        "A few wrong links in the graph can fold or spike the whole map; look at another number of "
        "neighbors.",
        "Scale and density are set by the method (unit variance per axis), not by the data, except "
        "for Isomap.",
    ),
    "neighbor": (
        "Who is next to whom can be read: groups that stand out are groups of mutual neighbors.",
        "Distances between groups mean little, and so does their arrangement: two groups side by "
        "side need not be more alike than two at opposite ends.",
        "Sizes and densities mean nothing: the method spreads dense groups and packs sparse ones "
        "until they look alike.",
        "Small clumps may be noise, and one group may be torn in two: run another seed and another "
        "perplexity and keep what stays.",
        "A point between groups, or far outside, is not an outlier for that reason.",
    ),
}


def how_to_read(method: str) -> list[str]:
    """Sentences for one method; only the general ones if it is none of ours."""
    path = registry.modules().get(method)
    family = path.split(".")[1] if path else ""
    return [*BY_FAMILY.get(family, ()), *EVERY_MAP]

"""Columns of a file that look like the coordinates of a map."""

from __future__ import annotations

from collections.abc import Sequence

from lowland.io.columns.name_rules import words_of

# What coordinates are called before their number: tsne_1, UMAP 2, PC3, X_pca1.
_PREFIXES = (
    "x dim dimension axis coord coordinate component comp embedding emb latent map factor "
    "pc pca ica nmf fa lda ld ca mca mds nmds pco pcoa sammon tsne sne symmetricsne umap "
    "trimap pacmap phate largevis fitsne isomap lle le ltsa laplacianeigenmaps hessianlle "
    "modifiedlle kernelpca kpca diffusion diffusionmap diffusionmaps diffmap dc drawgraph "
    "fr fdg gplvm som nca vae ae"
)
PREFIXES = frozenset(_PREFIXES.split())
AXES = "xyz"


def coordinate_sets(names: Sequence[str]) -> list[list[str]]:
    """Sets of columns that are coordinates by their names, each in the order of its axes.

    x, y, z and names that end so; known prefixes with numbers from 0 or 1. Only if there are none,
    other prefixes with such numbers.

    >>> coordinate_sets(["id", "UMAP_1", "UMAP_2", "cluster"])
    [['UMAP_1', 'UMAP_2']]
    """
    lettered: dict[str, dict[int, str]] = {}
    numbered: dict[str, dict[int, str]] = {}
    for name in names:
        words = words_of(name)
        if not words:
            continue
        prefix = "".join(words[:-1])
        if words[-1].isdecimal() and prefix and len(words[-1]) < 6:
            numbered.setdefault(prefix, {}).setdefault(int(words[-1]), name)
        elif words[-1] in AXES:
            lettered.setdefault(prefix, {}).setdefault(AXES.index(words[-1]), name)
    letters = [_from_first(found) for found in lettered.values() if 0 in found]
    families = {
        prefix: _from_first(found) for prefix, found in numbered.items() if {0, 1} & {*found}
    }
    known = [found for prefix, found in families.items() if _is_known(prefix)]
    other = [found for found in families.values() if len(found) > 1]
    several = [found for found in [*letters, *known] if len(found) > 1]
    # one column alone is a map of one dimension; beside other coordinates it is any column
    return several or [*letters, *known] or other


def _is_known(prefix: str) -> bool:
    return prefix in PREFIXES or (prefix[0] == "x" and prefix[1:] in PREFIXES)


def _from_first(found: dict[int, str]) -> list[str]:
    """The names from number 0 or 1 on, as far as there is no gap."""
    number, names = min(found), []
    while number in found:
        names.append(found[number])
        number += 1
    return names

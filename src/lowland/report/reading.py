"""How to read a map: the sentences that its method declares, and what holds for every map."""

from __future__ import annotations

from lowland._core import registry

EVERY_MAP = (
    "A map of few dimensions cannot keep everything. Trust what several measures, several seeds "
    "or several methods agree on.",
    "A rotation or a reflection of the map does not change what it shows. An axis has a meaning "
    "only where this list says so.",
)

GIVEN = (
    "The method was given the column {} and draws rows with equal or near values of it together. A "
    "gap between these values, or an order along them, is no evidence that the other columns tell "
    "them apart. Look at held-out rows."
)


def how_to_read(method: str, learned_from: str | None = None) -> list[str]:
    """Sentences for one method; only the general ones if it is not a method of this library.

    ``learned_from`` is the column that the method was given beside the rows. A method that always
    needs such a column says itself what follows from it.
    """
    if method in registry.modules(registry.ALIGNMENT):
        return [*registry.get_alignment(method).reading, *EVERY_MAP]
    if method not in registry.modules():
        return [*EVERY_MAP]
    cls = registry.get(method)
    told = cls.uses_target and learned_from is not None
    return [*([GIVEN.format(learned_from)] if told else []), *cls.reading, *EVERY_MAP]

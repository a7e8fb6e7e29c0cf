"""How to read a map: the sentences that its method declares, and what holds for every map."""

from __future__ import annotations

from lowland._core import registry

__all__ = ["how_to_read"]

EVERY_MAP = (
    "A map of few dimensions cannot keep everything. Trust what several measures, several seeds "
    "or several methods agree on.",
    "A rotation or a reflection of the map does not change what it shows. An axis has a meaning "
    "only where this list says so.",
)


def how_to_read(method: str) -> list[str]:
    """Sentences for one method; only the general ones if it is not a method of this library."""
    if method in registry.modules(registry.ALIGNMENT):
        return [*registry.get_alignment(method).reading, *EVERY_MAP]
    if method not in registry.modules():
        return [*EVERY_MAP]
    return [*registry.get(method).reading, *EVERY_MAP]

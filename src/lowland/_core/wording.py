"""Small pieces of text that several messages use."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["count", "listing"]


def count(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(names: Sequence[str], most: int = 8, *, quote: bool = True) -> str:
    """The first few names, and how many more there are."""
    shown = [repr(name) if quote else name for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more

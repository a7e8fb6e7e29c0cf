"""Small pieces of text that several messages use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["count", "listing", "shown"]


def count(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(names: Sequence[str], most: int = 8, *, quote: bool = True) -> str:
    """The first few names, and how many more there are."""
    shown = [repr(name) if quote else name for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more


def shown(value: Any, most: int = 200) -> str:
    """A value for a message: an array by its shape, anything long cut off; never an exception."""
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return f"array of shape {value.shape} and type {value.dtype}"
    try:
        text = repr(value)
    except Exception:  # such as integers of more than 4300 digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}..."

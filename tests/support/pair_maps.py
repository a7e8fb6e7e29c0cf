"""The pairs that a map by pairs was made of, and the map that its descent started from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from lowland import _native
from lowland.methods.embedding import _pair_base


@contextlib.contextmanager
def pairs_kept() -> Iterator[dict[str, Any]]:
    """Of the last fit within: "near", "mid", "far", "groups" of mid-near draws, "start".

    "redrawn" lists (number of the seed, map, far pairs) of each time that LocalMAP draws again.
    """
    seen: dict[str, Any] = {"redrawn": []}
    near_pairs, mid_pairs = _pair_base.nearest_scaled, _pair_base.mid_near_pairs
    descend, groups = _pair_base.descend_pairs, _native.draw_groups
    far_pairs, again = _native.draw_far, _native.redraw_far

    def near(*args: Any, **options: Any) -> Any:
        seen["near"] = near_pairs(*args, **options)
        return seen["near"]

    def mid(*args: Any, **options: Any) -> Any:
        seen["groups"] = {}
        seen["mid"] = mid_pairs(*args, **options)
        return seen["mid"]

    def drawn(first: int, n: int, seed: int, count: int, out: Any, threads: int) -> None:
        groups(first, n, seed, count, out, threads)
        seen["groups"][first] = out.copy()

    def far(partners: Any, seed: int, out: Any, threads: int) -> None:
        far_pairs(partners, seed, out, threads)
        seen["far"] = out

    def redrawn(partners: Any, Y: Any, reach: float, seed: int, out: Any, *rest: Any) -> None:
        again(partners, Y, reach, seed, out, *rest)
        seen["redrawn"].append((seed, Y.copy(), out.copy()))

    def descent(lists: Any, Y: Any, *rest: Any, **options: Any) -> Any:
        seen["start"], seen["first far"] = Y.copy(), seen["far"].copy()
        return descend(lists, Y, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pair_base, "nearest_scaled", near)
        patch.setattr(_pair_base, "mid_near_pairs", mid)
        patch.setattr(_pair_base, "descend_pairs", descent)
        patch.setattr(_native, "draw_groups", drawn)
        patch.setattr(_native, "draw_far", far)
        patch.setattr(_native, "redraw_far", redrawn)
        yield seen

"""Cautions about several tables in one map."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lowland.report.summary import Alignment, HeldOut
from lowland.report.wording import percent

BEYOND_CHANCE = 2.0  # standard errors of a mean rank of independent rows


def about_alignment(alignment: Alignment | None, low: float) -> Iterator[tuple[str, bool, str]]:
    """Kind, seriousness and text of each caution; a trustworthiness below ``low`` is low."""
    if alignment is None:
        return
    if not alignment["objects"]:
        yield (
            "no known pairs",
            True,
            "No rows are known to be the same object, so nothing tells whether the tables lie on "
            "one another rightly. If some are known, give them (--match, --same-order).",
        )
    elif alignment["held_out"] is None:
        yield (
            "not tried on held-out pairs",
            False,
            "No pairs were held out. Partners lie near each other because the method was told so; "
            "how well it would find partners that nobody knows was not tried.",
        )
    else:
        yield from _about_held_out(alignment["held_out"])
    for one in alignment["sets"]:
        trust = one["quality"].get("trustworthiness")
        if trust is not None and trust["value"] < low:
            yield (
                f"low trustworthiness of {one['name']}",
                True,
                f"Trustworthiness of {one['name']} is low ({trust['value']:.2f}): rows of this "
                "table that are neighbors in the map are often not neighbors in the data.",
            )


def _about_held_out(tried: HeldOut) -> Iterator[tuple[str, bool, str]]:
    # ranks of one random row are uniform, of variance 1 / 12
    error = math.sqrt(1 / 12 / max(tried["objects"], 1))
    if not tried["rank"] < 0.5 - BEYOND_CHANCE * error:
        yield (
            "partners are not found",
            True,
            f"Held-out partners are not nearer than by chance: {percent(tried['rank'])} of the "
            "other table is nearer, and 50 % would be by chance. The tables share little that this "
            "map shows; do not match rows by it.",
        )

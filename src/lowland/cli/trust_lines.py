"""Where a map can be believed, as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowland.trust import Trust

MARKS = {"fine": "ok", "caution": "caution", "serious": "serious"}
WIDTH = 8


def trust_lines(found: Trust | None, *, reasons: bool = False) -> list[str]:
    """One line for each question, marked by how serious the answer is.

    With ``reasons``, one more says why stability or chance are not known.
    """
    if found is None:
        return []
    lines = [f"  {MARKS[each.level]:<{WIDTH}} {each.text}" for each in found.sentences]
    if reasons and found.reasons:
        parts = list(found.reasons)
        why = list(dict.fromkeys(found.reasons.values()))
        verb = "are" if len(parts) > 1 else "is"
        text = f"{' and '.join(parts)} {verb} not known: {'; '.join(why)}"
        lines.append(f"  {'-':<{WIDTH}} {text[0].upper()}{text[1:]}.")
    return lines

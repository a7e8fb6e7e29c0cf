"""Cautions from the verdict on a map.

The page states the verdict itself and leaves these out; they are for outputs that show cautions
only.
"""

from __future__ import annotations

from collections.abc import Iterator

from lowland.trust.result import Trust

# The kind of a caution, by the question that the verdict answers.
KIND_OF = {
    "points": "misplaced points",
    "gaps": "fake gap",
    "merged": "merged groups",
    "stability": "unstable islands",
    "chance": "no better than chance",
    "contrast": "islands not separate",
}
TRUST_KINDS = frozenset(KIND_OF.values())


def about_trust(trust: Trust | None) -> Iterator[tuple[str, bool, str]]:
    """Kind, whether it is serious, and text of each answer of the verdict that is not fine."""
    for sentence in () if trust is None else trust.sentences:
        if sentence.level != "fine":
            kind = KIND_OF.get(sentence.question, sentence.question)
            yield kind, sentence.level == "serious", sentence.text

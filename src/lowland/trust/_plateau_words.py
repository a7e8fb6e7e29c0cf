"""A plateau of a parameter in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence


def value_text(value: float) -> str:
    """A value as short as it can be: ``30``, ``12.5``."""
    return f"{value:g}"


def plateau_sentence(
    parameter: str,
    values: Sequence[float],
    excess: Sequence[float],
    overlap: Sequence[float],
    on: Sequence[bool],
    default: float,
    recommended: float,
    noise: float,
) -> str:
    """Which values show the same, how much, and whether the default is one of them.

    An excess up to ``noise`` is no more than chance; then only the agreement of two halves tells
    the values apart.
    """
    name = parameter if "_" in parameter else parameter.capitalize()
    what, several = f"{name} {_span(values, on)}", sum(on) > 1
    if max(excess) <= noise:
        text = (
            "No tried value keeps more of the nearest rows than it would of data without structure "
            f"(excess at most {_share(max(excess))}), which tells nothing of its groups. {what} "
            f"{'are' if several else 'is'} steadiest between halves of the rows"
        )
    else:
        shown = [one for one, there in zip(excess, on, strict=True) if there]
        text = (
            f"{what} {'show the same' if several else 'shows most'}: neighbors kept beyond chance "
            f"{_range(min(shown), max(shown))}"
        )
    if recommended == default:
        lies = "lies on this plateau" if several else "is this value"
        return f"{text}; the default {value_text(default)} {lies}."
    if math.isnan(default):
        return f"{text}; take {value_text(recommended)}."
    place = list(values).index(default)
    return (
        f"{text}; the default {value_text(default)} keeps {_share(excess[place])}, and maps of two "
        f"halves share {_share(overlap[place])} of their neighbors (at best "
        f"{_share(max(overlap))}): take {value_text(recommended)}."
    )


def _span(values: Sequence[float], on: Sequence[bool]) -> str:
    """``15 to 50`` for values side by side, ``5, 30 and 50`` for others."""
    places = [place for place, there in enumerate(on) if there]
    texts = [value_text(values[place]) for place in places]
    if len(places) == 1:
        return texts[0]
    if places[-1] - places[0] == len(places) - 1:
        return f"{texts[0]} to {texts[-1]}"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _range(low: float, high: float) -> str:
    return _share(low) if _share(low) == _share(high) else f"{_share(low)} to {_share(high)}"


def _share(value: float) -> str:
    """``.31``, as shares are written in sentences; never ``-.00``."""
    text = f"{value:.2f}"
    text = "0.00" if text == "-0.00" else text
    return text.replace("0.", ".", 1) if text != "0.00" else "0"

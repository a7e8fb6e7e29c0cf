"""Words whose order everybody knows, for a hint about columns of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FEWEST = 3  # two values are as far apart in order as without
# Each line is one order; words between bars have the same place in it.
_ORDERS = (
    "very low, low, medium|moderate|middle|normal|average, high, very high, extreme",
    "strongly disagree, disagree, somewhat disagree|slightly disagree, neutral|undecided|"
    "neither agree nor disagree|neither, somewhat agree|slightly agree, agree, strongly agree",
    "very small|tiny, small, medium, large|big, very large|huge",
    "xxs, xs, s, m, l, xl, xxl, xxxl",
    "never, rarely|seldom|almost never, sometimes|occasionally, often|frequently|usually, "
    "almost always, always",
    "very bad|very poor|terrible, bad|poor, fair|average|ok|okay|satisfactory, good, "
    "very good, premium, excellent|outstanding|ideal",
    "freezing|very cold, cold, cool, mild, warm, hot, very hot",
    "very dissatisfied, dissatisfied, neutral|neither, satisfied, very satisfied",
    "very unlikely, unlikely, neutral|possible, likely, very likely",
    "none|no, mild|light|slight, moderate|medium, severe|heavy",
    "not at all, slightly|a little, somewhat|moderately, very|quite a bit, extremely|a lot",
    "first|1st, second|2nd, third|3rd, fourth|4th",
    "primary, secondary, tertiary",
    "beginner|novice, intermediate, advanced, expert",
    "slow, medium, fast",
    "short, medium, long",
    "young, middle-aged|adult, old|senior",
)


def _places(line: str) -> dict[str, int]:
    return {
        word.strip(): place
        for place, words in enumerate(line.split(","))
        for word in words.split("|")
    }


_PLACES = tuple(_places(line) for line in _ORDERS)


def known_order(values: Sequence[str]) -> list[str] | None:
    """The values in the order that their words have; None if it is not known.

    >>> known_order(["high", "low", "medium"])
    ['low', 'medium', 'high']
    """
    if len(values) < FEWEST:
        return None
    for places in _PLACES:
        found = [places.get(_word(value)) for value in values]
        if None not in found and len({*found}) == len(found):
            return [value for _, value in sorted(zip(found, values, strict=True))]  # type: ignore[type-var]
    return None


def shared_orders(columns: Mapping[str, Sequence[str]]) -> list[tuple[list[str], list[str]]]:
    """Columns whose values have a known order, those of one scale together, with that order.

    A column may lack some values of the scale that the others have.

    >>> shared_orders({"q1": ["low", "high", "medium"], "q2": ["low", "high", "very low"]})
    [(['q1', 'q2'], ['very low', 'low', 'medium', 'high'])]
    """
    groups: list[tuple[list[str], list[str]]] = []
    for name, values in columns.items():
        if known_order(values) is None:
            continue
        for names, order in groups:
            wider = known_order([*dict.fromkeys([*order, *values])])
            if wider is not None:
                names.append(name)
                order[:] = wider
                break
        else:
            groups.append(([name], known_order(values) or []))
    return groups


def _word(value: str) -> str:
    return value.strip().casefold().replace("_", " ")

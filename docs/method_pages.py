"""The page of a method: card, picture, parameters, fitted attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docstrings import cell, markdown, sections
from make_pictures import call, dimensions

from lowland._base import registry
from lowland._base.base import Invertible, Reducer
from lowland.cli.method_options import SPELLED, method_options

__all__ = ["abilities", "details", "method_page", "name_of", "table"]

LINKS = (
    "[Choosing a method](../choosing.md) · [Reading a map](../reading.md) · "
    "[all documentation](../README.md)"
)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(heads)]
    lines += [["---"] * len(lines[0]), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def yes(fact: bool) -> str:
    """A fact in a table."""
    return "yes" if fact else "no"


def abilities(cls: type[Reducer]) -> dict[str, str]:
    """What a method can do, by the head of its column."""
    return {
        "new rows": yes(cls._transform is not Reducer._transform),
        "inverse": yes(issubclass(cls, Invertible)),
        "sparse": yes(cls.accepts_sparse),
        "distances": yes(cls.accepts_distances),
        "missing values": yes(cls.allows_nan),
        "classes": "needs them" if cls.needs_target else "if given" if cls.uses_target else "no",
        "larger than memory": "all rows" if cls.fits_rows else "a sample",
    }


def name_of(cls: type[Reducer]) -> str:
    return registry.snake_case(cls.__name__)


ONE_AXIS = "The map runs from left to right; the height of a row is its class, or that length.\n"


def method_page(cls: type[Reducer]) -> str:
    """Card, picture, parameters, notes, references."""
    parts, name = sections(cls), name_of(cls)
    one_axis = ONE_AXIS if dimensions(cls) == 1 else ""
    card = "\n".join(f"- **{head}**: {markdown(text)}" for head, text in card_items(cls))
    page = f"""<!-- made by docs/make_pages.py from the class's docstring and declarations -->
# {cls.__name__}

{markdown(parts["summary"])}

{markdown(parts["text"])}

{card}

![maps by {cls.__name__}](../pictures/{name}.png)

Made by `{call(cls)}`. Digits and iris flowers are colored by class, the swiss roll
by the length along its spiral; the [gallery](../gallery.md) shows all methods on these tables.
{one_axis}
```
lowland map INPUT -m {name}
```

"""
    return f"{page}{details(cls, '## ')}\n{LINKS}\n"


def details(cls: Any, head: str) -> str:
    """Reading, parameters, attributes, notes, references and example of a class."""
    parts = sections(cls)
    page = f"""{head}Reading the map

{reading(cls)}
{head}Parameters

{parameters(cls)}
{head}After `fit`

{attributes(cls)}"""
    for title in ("Notes", "References"):
        if title in parts:
            page += f"\n{head}{title}\n\n{markdown(parts[title])}\n"
    if "Examples" in parts:
        page += f"\n{head}Example\n\n```pycon\n{parts['Examples']}\n```\n"
    return page


def card_items(cls: type[Reducer]) -> list[tuple[str, str]]:
    """The card and the abilities, in words."""
    able = abilities(cls)
    return [
        ("Keeps", cls.card.keeps),
        ("Use it", cls.card.use),
        ("Do not use it", cls.card.avoid),
        ("Cost", cls.card.cost),
        ("New rows (`transform`)", able["new rows"]),
        ("Inverse (`inverse_transform`)", able["inverse"]),
        ("Sparse data", able["sparse"]),
        ("Distances in place of rows", able["distances"]),
        *(
            [("Missing values", "NaN; the other values of a row are used")]
            if cls.allows_nan
            else []
        ),
        *([("Learns from classes", "`fit(X, y)`")] if cls.needs_target else []),
        *([("Learns from a target", "if given: `fit(X, y)`")] if cls.uses_target else []),
        ("Paper", cls.reference),
    ]


def reading(cls: type[Reducer]) -> str:
    """What the parts of a map mean, as the class declares it."""
    lines = [f"- **{part}**: {markdown(text)}" for part, text in cls.reading._asdict().items()]
    return "\n".join(lines) + "\n"


def parameters(cls: type[Reducer]) -> str:
    """A table of all declared parameters."""
    rows = []
    # the method's own parameters first, then those of every method
    fields = sorted(cls.parameters().items(), key=lambda item: item[0] in Reducer.parameters())
    for name, field in fields:
        allowed = field.metadata["constraint"].describe()
        text = cls.documentation(name).text
        option, there = option_of(cls, name)
        shown = (
            f"`{field.default!r}`" if there == field.default else f"`{field.default!r}`; {there}"
        )
        rows.append((f"`{name}`", option, shown, cell(allowed), cell(text)))
    return table(["parameter", "option", "default", "allowed", "what it does"], rows)


def option_of(cls: type[Reducer], name: str) -> tuple[str, Any]:
    """The command line's option for a parameter, and the option's default."""
    default = cls.parameters()[name].default
    if name in SPELLED:
        return (f"`{SPELLED[name]}`", default) if name != "verbose" else ("", default)
    for option in method_options(cls).values():
        if option.parameter == name:
            same = option.default == default
            return f"`{option.name}`", default if same else f"`{option.default!r}` as an option"
    return "", default


def attributes(cls: type[Reducer]) -> str:
    """A table of the fitted attributes."""
    rows = []
    for name, fitted in cls.fitted_attributes.items():
        kind = fitted.type.__name__ if fitted.shape is None else shape(fitted.shape)
        rows.append((f"`{name}`", kind, cell(cls.documentation(name).text)))
    return table(["attribute", "shape or type", "what it is"], rows)


def shape(names: tuple[str, ...]) -> str:
    """``(n_rows,)``, ``(n_rows, n_columns)``."""
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

"""``lowland methods``: the list of methods, and the description of one method."""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lowland._base import registry
from lowland.cli.console import Console
from lowland.cli.method_options import method_options
from lowland.cli.options import FRAME

if TYPE_CHECKING:
    from lowland._base.base import Reducer

WIDTH = 100
AsJson = FRAME["as_json"]
ABLE = {
    "inverse": "has an inverse",
    "sparse": "takes sparse data",
    "distances": "takes distances (--distances)",
    "missing_values": "takes missing values (--missing keep)",
    "needs_target": "learns from labels (--target)",
    "uses_target": "learns from a column if one is named (--target)",
}


def methods_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One method.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods, or show one with its options."""
    console = Console(as_json=as_json)
    if name is None:
        found = [entry(cls) for cls in registry.all_methods()]
        console.result(table_lines(found), found)
    else:
        aligns = name.lower().replace("-", "_") in registry.alignment_names()
        found = card(registry.get_alignment(name) if aligns else registry.get(name))
        console.result(card_lines(found), found)


def entry(cls: type[Reducer]) -> dict[str, Any]:
    """One line of the table."""
    name, family = registry.snake_case(cls.__name__), cls.family()
    about = {"summary": cls.summary(), "paper": cls.reference}
    return {"name": name, "aliases": list(cls.aliases), "family": family, **about}


def card(cls: type[Reducer]) -> dict[str, Any]:
    """The description of one method, with its options."""
    options = [option for name, option in method_options(cls).items() if name == option.name]
    return {
        **entry(cls),
        "description": description(cls),
        **cls.card._asdict(),
        "needs_target": cls.needs_target,
        "uses_target": cls.uses_target,
        "inverse": hasattr(cls, "inverse_transform"),
        "sparse": cls.accepts_sparse,
        "distances": cls.accepts_distances,
        "missing_values": cls.allows_nan,
        "reading": cls.reading._asdict(),
        "options": [option.to_dict() for option in options],
    }


def description(cls: type[Reducer]) -> str:
    """The docstring after its first line and before its sections."""
    lines = inspect.cleandoc(cls.__doc__ or "").split("\n")[1:]
    for i, line in enumerate(lines):
        if line and set(line) == {"-"}:  # the underline of the first section's title
            lines = lines[: i - 1]
            break
    return "\n".join(lines).strip()


def table_lines(found: list[dict[str, Any]]) -> list[str]:
    """A block per family; name and summary, then the paper."""
    lines: list[str] = []
    indent = max(len(method["name"]) for method in found) + 4
    for family in registry.FAMILIES:
        members = [method for method in found if method["family"] == family]
        if members:
            lines += ["", family] if lines else [family]
        for method in members:
            lines += wrapped(method["summary"], f"  {method['name']}".ljust(indent), indent)
            lines += wrapped(method["paper"], " " * indent, indent)
    return [
        *lines,
        "",
        "'lowland methods NAME' shows a method and its options.",
        "'lowland align' puts several tables into one map (manifold_alignment).",
    ]


def card_lines(method: dict[str, Any]) -> list[str]:
    """The card as text."""
    also = f", also {', '.join(method['aliases'])}" if method["aliases"] else ""
    lines = [f"{method['name']} ({method['family']}){also}", "", *wrapped(method["summary"])]
    if method["description"]:
        lines += ["", method["description"]]
    lines += [""]
    for term, key in (("keeps", "keeps"), ("use it", "use"), ("not", "avoid"), ("cost", "cost")):
        lines += wrapped(method[key], f"  {term:<8}", 10)
    able = ["places new rows", *(text for key, text in ABLE.items() if method[key])]
    lines += wrapped(", ".join(able), f"  {'able':<8}", 10)
    lines += ["", "how to read its map:"]
    for term, sentence in method["reading"].items():
        lines += wrapped(sentence, f"  {term:<11}", 13)
    used = f"lowland map INPUT -m {method['name']}"
    used = "lowland align INPUT INPUT" if method["family"] == "alignment" else used
    lines += ["", f"options of '{used}':"]
    for option in method["options"]:
        lines += [f"  {option['usage']}"]
        lines += wrapped(option["doc"], " " * 6, 6)
        lines += wrapped(f"{option['allowed']}; default {option['default']}", " " * 6, 6)
    return [*lines, "", *wrapped(method["paper"], "paper: ", 7)]


def wrapped(text: str, first: str = "", indent: int = 0) -> list[str]:
    """The text in lines of a readable width."""
    how = {"initial_indent": first, "subsequent_indent": " " * indent}
    unbroken = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, WIDTH, **how, **unbroken)

"""numpydoc docstrings as Markdown."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

__all__ = ["Item", "cell", "items", "long_texts", "markdown", "sections"]


class Item(NamedTuple):
    """One entry of a Parameters or Attributes section."""

    names: list[str]
    kind: str
    text: str


def sections(owner: Any) -> dict[str, str]:
    """The parts of a docstring by their titles; the first line is "summary", the rest "text"."""
    lines = inspect.cleandoc(owner.__doc__ or "").split("\n")
    found: dict[str, list[str]] = {"summary": lines[:1], "text": []}
    title = "text"
    for i, line in enumerate(lines[1:], start=1):
        underlined = i + 1 < len(lines) and re.fullmatch("-{3,}", lines[i + 1])
        if underlined and line:
            title = line.strip()
            found[title] = []
        elif not re.fullmatch("-{3,}", line):
            found[title].append(line)
    return {name: "\n".join(part).strip("\n") for name, part in found.items()}


def items(section: str) -> list[Item]:
    """The entries of a section: ``name : kind`` lines, each followed by an indented text."""
    found: list[Item] = []
    for line in section.split("\n"):
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            found.append(Item([name.strip() for name in names.split(",")], kind.strip(), ""))
        elif found:
            found[-1] = found[-1]._replace(text=f"{found[-1].text} {line.strip()}".strip())
    return found


def long_texts(section: str) -> dict[str, str]:
    """What the section says of each name.

    An entry for several names ("metric, metric_params") describes the first of them; the others
    are left out, so that the caller shows their declared one-line documentation instead.
    """
    return {item.names[0]: item.text for item in items(section) if item.text}


def markdown(text: str) -> str:
    """Roles and double backticks become code; what Markdown would take for markup is escaped."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text)
    parts = re.split(r"``(.+?)``", text, flags=re.DOTALL)
    plain = [re.sub(r"([*<\\])", r"\\\1", part) for part in parts[::2]]
    code = [f"`{' '.join(part.split())}`" for part in parts[1::2]]
    return "".join(a + b for a, b in zip(plain, [*code, ""], strict=True)).strip()


def cell(text: str) -> str:
    """The same in one line that can stand in a table."""
    return " ".join(markdown(text).split()).replace("|", r"\|")

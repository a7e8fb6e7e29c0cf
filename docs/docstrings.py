"""numpydoc docstrings as Markdown."""

from __future__ import annotations

import inspect
import re
from typing import Any

__all__ = ["cell", "markdown", "sections"]


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

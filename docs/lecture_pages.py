"""The code on the pages of docs/lectures, and the pictures that it draws."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["LECTURES", "Block", "blocks", "drawn", "pages", "pictures", "run"]

LECTURES = Path(__file__).resolve().parent / "lectures"
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\n```\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"^!\[.+\]\(\.\./pictures/lectures/(\w+)\.png\)$", re.MULTILINE)
# Where a picture of a name may be: a file that Python wrote, or in a folder of a command.
PLACES = ("{}.png", "{}/map.png", "{}/maps.png")


class Block(NamedTuple):
    """Code of a page, and the output that the page shows after it."""

    language: str
    text: str
    output: str


def pages() -> list[Path]:
    """All pages but the index."""
    return [path for path in sorted(LECTURES.glob("*.md")) if path.name != "README.md"]


def blocks(page: Path) -> list[Block]:
    """The code of a page that is to be run, in order."""
    return [Block(*found) for found in FENCE.findall(page.read_text(encoding="utf-8"))]


def pictures(page: Path) -> list[str]:
    """The names of the pictures that a page shows."""
    return PICTURE.findall(page.read_text(encoding="utf-8"))


def run(page: Path, folder: Path, instead: Mapping[str, str] | None = None) -> list[str]:
    """Run the code of a page in a folder; what each block printed.

    ``instead`` replaces pieces of the code, such as the size of the data.
    """
    from lowland.cli import main

    printed = []
    names: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        for block in blocks(page):
            text = block.text
            for piece, other in (instead or {}).items():
                text = text.replace(piece, other)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                if block.language == "python":
                    exec(compile(text, str(page), "exec"), names)
                else:
                    for line in filter(None, text.splitlines()):
                        program, *arguments = shlex.split(line)
                        if program != "lowland" or main(arguments) != 0:
                            raise RuntimeError(f"{page}: {line} failed")
            printed.append(output.getvalue())
    finally:
        os.chdir(before)
    return printed


def drawn(name: str, folder: Path) -> Path:
    """The file in which the code of a page has drawn a picture."""
    found = [folder / place.format(name) for place in PLACES]
    for path in [*found, *folder.glob(f"*/{name}.png")]:  # beside the map of a command
        if path.exists():
            return path
    raise FileNotFoundError(f"no code of the page has drawn {name}")

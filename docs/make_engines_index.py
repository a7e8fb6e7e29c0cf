"""What the READMEs in ``src/lowland/_engines`` say of the code: rooms, and functions by module.

The text of a line is the first line of the docstring. Modules are parsed, not imported.
``docs/make_pages.py`` writes and checks it.
"""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["ENGINES", "engine_room", "engine_rooms"]

ENGINES = Path(__file__).resolve().parents[1] / "src/lowland/_engines"
ORDER = Path(__file__).resolve().parents[1] / "tests/test_architecture.py"  # its ENGINE_ROOMS


def engine_rooms() -> str:
    """One line per room, in the order that the architecture test enforces."""
    rooms = _constant(_tree(ORDER), "ENGINE_ROOMS")
    return "".join(
        f"- [{room}]({room}/README.md): {_first_line(_tree(ENGINES / room / '__init__.py'))}\n"
        for room in rooms
    )


def engine_room(name: str) -> str:
    """The public functions and classes of a room, by module."""
    lines = []
    for path in sorted((ENGINES / name).glob("[!_]*.py")):
        tree = _tree(path)
        entries = {
            node.name: _first_line(node)
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        }
        if not entries:
            continue
        lines += [f"**{path.stem}**: {_escaped(_first_line(tree))}", ""]
        lines += [f"- `{name}`: {_escaped(entries[name])}" for name in sorted(entries)]
        lines.append("")
    return "\n".join(lines)


def _first_line(node: ast.Module | ast.FunctionDef | ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").split("\n")[0]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _constant(tree: ast.Module, name: str) -> list[str]:
    """The list of strings that a module assigns to a name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return list(ast.literal_eval(node.value))
    return []


def _escaped(text: str) -> str:
    """Docstring text that Markdown shows as it is."""
    parts = text.replace("``", "`").split("`")
    parts[::2] = [
        part.replace("\\", "\\\\").replace("*", r"\*").replace("<", r"\<").replace("_", r"\_")
        for part in parts[::2]
    ]
    return "`".join(parts)

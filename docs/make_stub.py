"""Write ``__init__.pyi`` of each package, with the public names.

    python docs/make_stub.py             # write
    python docs/make_stub.py --check     # only tell whether it is out of date, exit code 1

Methods and selectors are found by the registry, so a new one needs no edit by hand.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import lowland
from lowland._base import registry

WIDTH = 100
SOURCE = Path(__file__).resolve().parents[1] / "src/lowland"
HEAD = '"""The public names, for editors and type checkers; written by docs/make_stub.py."""'


def stubs() -> Iterator[tuple[Path, str]]:
    """Each stub with its text."""
    classes = [*registry.all_methods(), *registry.all_selectors(), *registry.all_alignments()]
    names = [(module, f"from lowland import {module}") for module in lowland._MODULES]
    names += [(name, f"from {path} import {name}") for name, path in lowland._FUNCTIONS.items()]
    names += [(cls.__name__, f"from {cls.__module__} import {cls.__name__}") for cls in classes]
    yield SOURCE / "__init__.pyi", stub(names, "\n__version__: str\n")
    for module in lowland._MODULES:
        package = importlib.import_module(f"lowland.{module}")
        folder = SOURCE / module
        if folder.is_dir():
            home = {name: getattr(package, name).__module__ for name in package.__all__}
            yield (
                folder / "__init__.pyi",
                stub([(name, f"from {home[name]} import {name}") for name in home]),
            )


def stub(names: list[tuple[str, str]], end: str = "") -> str:
    """The text of a stub: names with the imports that they come from."""
    imports = sorted((line.split()[1], f"{line} as {name}") for name, line in names)
    return "\n".join([HEAD, "", *(wrapped(line) for _, line in imports), end])


def wrapped(line: str) -> str:
    """An import as ruff formats it: a long one in parentheses."""
    if len(line) <= WIDTH:
        return line
    module, name = line.split(" import ")
    return f"{module} import (\n    {name},\n)"


def main(arguments: list[str] | None = None) -> int:
    """Write the stubs, or tell which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if stale")
    check = parser.parse_args(arguments).check
    stale = [
        (path, text)
        for path, text in stubs()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        sys.stdout.write(f"{'out of date' if check else 'wrote'}: {path.relative_to(SOURCE)}\n")
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())

"""Write ``src/lowland/__init__.pyi``, which tells editors and type checkers the public names.

    python docs/make_stub.py             # write
    python docs/make_stub.py --check     # only tell whether it is out of date, exit code 1

Methods and selectors are found by the registry, so a new one needs no edit by hand.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import lowland
from lowland._base import registry

WIDTH = 100
STUB = Path(__file__).resolve().parents[1] / "src/lowland/__init__.pyi"


def stub() -> str:
    """The text of the stub."""
    classes = [*registry.all_methods(), *registry.all_selectors(), *registry.all_alignments()]
    names = [(module, f"from lowland import {module}") for module in lowland._MODULES]
    names += [(name, f"from {path} import {name}") for name, path in lowland._FUNCTIONS.items()]
    names += [(cls.__name__, f"from {cls.__module__} import {cls.__name__}") for cls in classes]
    imports = sorted((line.split()[1], f"{line} as {name}") for name, line in names)
    return "\n".join(
        [
            '"""The public names, for editors and type checkers; written by docs/make_stub.py."""',
            "",
            *(wrapped(line) for _, line in imports),
            "",
            "__version__: str",
            "",
        ]
    )


def wrapped(line: str) -> str:
    """An import as ruff formats it: a long one in parentheses."""
    if len(line) <= WIDTH:
        return line
    module, name = line.split(" import ")
    return f"{module} import (\n    {name},\n)"


def main(arguments: list[str] | None = None) -> int:
    """Write the stub, or tell whether it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if stale")
    check = parser.parse_args(arguments).check
    stale = not STUB.exists() or STUB.read_text(encoding="utf-8") != stub()
    if stale:
        sys.stdout.write(f"{'out of date' if check else 'wrote'}: src/lowland/__init__.pyi\n")
        if not check:
            STUB.write_text(stub(), encoding="utf-8")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())

"""What the contract asks of a method by name, as the method's own reference test states it.

A new method needs no line in ``tests/support``: ``tests/reference/<family>/test_<name>.py`` has a
:class:`Witness` called ``WITNESS``. The tables of ``support.oracles``, ``support.held_out`` and
``support.changes`` are for methods that share formulas or cases.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lowland._base import registry
from support.changes import CHANGES, UNUSED_WITH, Change, Nothing
from support.held_out import CASES
from support.oracles import CLASSES, OBJECTIVES, PLACES, ROWS_BACK

REFERENCE = Path(__file__).resolve().parents[1] / "reference"


class Witness(NamedTuple):
    """Naive formulas for held-out rows, the cases to try them in, and parameters that hide."""

    cases: list[tuple[dict[str, Any], str]]  # parameters, and data of ``held_out.data_of``
    places: Callable | None = None  # see ``support.oracles``: this one or ``objective``
    objective: Callable | None = None
    rows_back: Callable | None = None
    classes: Callable | None = None
    changes: dict[str, Change | Nothing] | None = None  # see ``support.changes``
    unused_with: set[tuple[str, str]] | None = None


TABLES: dict[str, dict] = {
    "cases": CASES,
    "places": PLACES,
    "objective": OBJECTIVES,
    "rows_back": ROWS_BACK,
    "classes": CLASSES,
    "changes": CHANGES,
    "unused_with": UNUSED_WITH,
}


def collect() -> None:
    """Enter the witnesses of all reference tests into the tables."""
    for cls in registry.all_methods():
        path = REFERENCE / cls.family() / f"test_{registry.snake_case(cls.__name__)}.py"
        if not path.exists() or "\nWITNESS = " not in path.read_text(encoding="utf-8"):
            continue
        spec = importlib.util.spec_from_file_location(f"witness_in_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for field, table in TABLES.items():
            given = getattr(module.WITNESS, field)
            if given is not None:
                assert cls.__name__ not in table, f"{cls.__name__} has two entries of {field}"
                table[cls.__name__] = given

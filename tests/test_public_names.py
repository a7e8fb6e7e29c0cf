"""What users import and call is listed in data/public_names.txt: a change of it is a decision.

`python tests/test_public_names.py` writes the list again; its difference belongs in the changelog.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lowland

LIST = Path(__file__).parent / "data" / "public_names.txt"


def signature(thing: Any) -> str:
    """The parameters with their defaults; types may become more exact without a decision."""
    try:
        shown = inspect.signature(thing)
    except (TypeError, ValueError):  # what is not called, a class of Python with another name
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in shown.parameters.values()]
    return str(shown.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, without those of Python and of libraries."""
    foreign = {
        name
        for base in cls.__mro__
        if not base.__module__.startswith("lowland")
        for name in dir(base)
    }
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        value = getattr(value, "__func__", value)
        shown = inspect.isfunction(value) or isinstance(value, property)
        if shown and not name.startswith("_") and name not in foreign:
            yield name, value


def public_names() -> list[str]:
    """Each public name with its signature; each member of classes with the classes that have it."""
    found, owners = set(), defaultdict(set)
    modules = [name for name in dir(lowland) if inspect.ismodule(getattr(lowland, name))]
    for path in ("lowland", *(f"lowland.{name}" for name in modules)):
        module = importlib.import_module(path)
        for name in dir(lowland) if path == "lowland" else module.__all__:
            thing = getattr(module, name)
            found.add(f"{path}.{name}{signature(thing)}")
            for member, value in members(thing) if inspect.isclass(thing) else ():
                owners[f"{member}{signature(value)}"].add(thing.__name__)
    return sorted(found) + [f".{name}: {' '.join(sorted(owners[name]))}" for name in sorted(owners)]


def test_public_names_and_signatures_are_those_of_the_list():
    listed = LIST.read_text(encoding="utf-8").splitlines()
    now = public_names()
    gone, new = sorted(set(listed) - set(now)), sorted(set(now) - set(listed))
    assert (gone, new) == ([], []), "see the first lines of this file"


def test_no_exported_name_is_that_of_a_module_of_its_package():
    """Once it is imported, the module would be found in place of what is exported."""
    for name in lowland._MODULES:
        package = importlib.import_module(f"lowland.{name}")
        modules = {module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []))}
        assert not modules & set(package.__all__), name


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n", encoding="utf-8")

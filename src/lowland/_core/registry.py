"""Which methods exist. A method is one file in a family folder; nothing else lists it.

The class ``LaplacianEigenmaps`` lives in ``lowland/<family>/laplacian_eigenmaps.py``: the file
name is the class name in snake case, so a name can be looked up without importing its neighbors.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
from typing import TYPE_CHECKING, Any

from lowland._core.errors import ParameterError, unknown_name

if TYPE_CHECKING:
    from lowland._core.base import Reducer

__all__ = ["FAMILIES", "all_methods", "get", "model_class", "names", "snake_case"]

FAMILIES = ("linear", "kernel", "mds", "spectral", "neighbor")


def snake_case(class_name: str) -> str:
    """``LaplacianEigenmaps`` -> ``laplacian_eigenmaps``, ``KernelPCA`` -> ``kernel_pca``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()


def modules() -> dict[str, str]:
    """Module path of every method by its name (``pca``), sorted; imports no method."""
    found = {}
    for family in FAMILIES:
        spec = importlib.util.find_spec(f"lowland.{family}")
        if spec is None:  # a family whose first method is still to come
            continue
        for module in pkgutil.iter_modules(spec.submodule_search_locations):
            if not module.name.startswith("_"):
                found[module.name] = f"lowland.{family}.{module.name}"
    return dict(sorted(found.items()))


def names() -> list[str]:
    """The methods' names as the command line spells them, sorted."""
    return list(modules())


def get(name: str) -> type[Reducer]:
    """The class of a method by name; case, ``-`` and ``_`` do not matter."""
    wanted = re.sub(r"[-_]", "", name).lower()
    known = modules()
    for method, path in known.items():
        if method.replace("_", "") == wanted:
            return _class_in(path, method)
    raise ParameterError(unknown_name("method", name, list(known)))


def all_methods() -> list[type[Reducer]]:
    """Every registered class, in the order of :func:`names`."""
    return [_class_in(path, method) for method, path in modules().items()]


def model_class(name: str) -> Any:
    """The class of a model file: a method, or what prepares columns for one."""
    if name == "Preparation":
        return _class_in("lowland.io.preparation", "preparation")
    return get(name)


def _class_in(path: str, method: str) -> type[Reducer]:
    for value in vars(importlib.import_module(path)).values():
        here = isinstance(value, type) and value.__module__ == path
        if here and snake_case(value.__name__) == method:
            return value
    raise ImportError(f"{path} must define a class whose name in snake case is {method!r}.")

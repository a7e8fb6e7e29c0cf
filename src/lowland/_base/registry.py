"""Which methods and public names exist. A method is one file in a family folder; nothing lists it.

The class ``LaplacianEigenmaps`` lives in ``methods/<family>/laplacian_eigenmaps.py``: the file name
is the class name in snake case, so a name can be looked up without importing its neighbors.
Selectors, which keep columns instead of making a map, live in ``selection`` under the same rule,
and methods that put several tables into one map in ``methods/alignment``; both have lists of their
own, so that nothing takes one for a map of a single table.

The public names of a package are imported when they are first used: a command needs few of them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lowland._base.errors import ParameterError, unknown_name

if TYPE_CHECKING:
    from lowland._base.base import Reducer

FAMILIES = (
    "linear",
    "kernel",
    "mds",
    "curvilinear",
    "spectral",
    "unfolding",
    "topographic",
    "neural",
    "latent",
    "embedding",
)
SELECTION = ("selection",)
ALIGNMENT = ("alignment",)
IN_METHODS = (*FAMILIES, *ALIGNMENT)  # rooms of lowland/methods
PREPARATION = ("preparation",)
NEIGHBORS = ("neighbors",)
COLLECTIONS = ("chunks", "dask_collections")  # the module that makes tables of collections
ONE_WORD = {"PaCMAP": "pacmap"}  # names whose capitals begin no words


def snake_case(class_name: str) -> str:
    """``LaplacianEigenmaps`` -> ``laplacian_eigenmaps``, ``KernelPCA`` -> ``kernel_pca``."""
    if class_name in ONE_WORD:
        return ONE_WORD[class_name]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()


def modules(families: tuple[str, ...] = FAMILIES) -> dict[str, str]:
    """Module path of every method by its name (``pca``), sorted; imports no method."""
    found = {}
    for family in families:
        package = f"lowland.methods.{family}" if family in IN_METHODS else f"lowland.{family}"
        spec = importlib.util.find_spec(package)
        if spec is None:  # a family whose first method is still to come
            continue
        for name in _method_files(tuple(spec.submodule_search_locations or ())):
            found[name] = f"{package}.{name}"
    return dict(sorted(found.items()))


@functools.cache
def _method_files(folders: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the modules that hold a method; a folder is read once, because names are looked up
    often and the files of a package do not change while it is used."""
    listed = pkgutil.iter_modules(folders)
    return tuple(module.name for module in listed if not module.name.startswith("_"))


def names() -> list[str]:
    """The methods' names as the command line spells them, sorted."""
    return list(modules())


def get(name: str) -> type[Reducer]:
    """The class of a method by its name or an alias; case, ``-`` and ``_`` do not matter."""
    known = modules()
    for method, path in known.items():
        if _plain(method) == _plain(name):
            return _class_in(path, method)
    for cls in all_methods():  # imports every method, so only for names that no file has
        if _plain(name) in map(_plain, cls.aliases):
            return cls
    if any(_plain(method) == _plain(name) for method in modules(ALIGNMENT)):
        raise ParameterError(
            f"{name} makes one map of several tables; give it a list of them, or use "
            "'lowland align'."
        )
    if any(_plain(selector) == _plain(name) for selector in selector_names()):
        raise ParameterError(
            f"{name} keeps columns instead of making a map; use it with 'lowland select'."
        )
    raise ParameterError(unknown_name("method", name, list(known)))


def all_methods() -> list[type[Reducer]]:
    """Every registered class, in the order of :func:`names`."""
    return [_class_in(path, method) for method, path in modules().items()]


def selector_names() -> list[str]:
    """The selectors' names as the command line spells them, sorted."""
    return list(modules(SELECTION))


def get_selector(name: str) -> Any:
    """The class of a selector by its name, an alias, or the beginning of one name only."""
    known, wanted = modules(SELECTION), _plain(name)
    found = [method for method in known if _plain(method) == wanted]
    if not found:  # aliases need the classes, so only for names that no file has
        for cls in all_selectors():
            if wanted in map(_plain, cls.aliases):
                return cls
        found = [method for method in known if wanted and _plain(method).startswith(wanted)]
    if len(found) == 1:
        return _class_in(known[found[0]], found[0])
    raise ParameterError(unknown_name("selector", name, found or list(known)))


def all_selectors() -> list[Any]:
    """Every selector's class, in the order of :func:`selector_names`."""
    return [_class_in(path, method) for method, path in modules(SELECTION).items()]


def alignment_names() -> list[str]:
    """The names of the methods that put several tables into one map, sorted."""
    return list(modules(ALIGNMENT))


def get_alignment(name: str) -> Any:
    """The class of a method that puts several tables into one map, by its name."""
    known = modules(ALIGNMENT)
    for method, path in known.items():
        if _plain(method) == _plain(name):
            return _class_in(path, method)
    raise ParameterError(unknown_name("method", name, list(known)))


def all_alignments() -> list[Any]:
    """Every class that puts several tables into one map, sorted by name."""
    return [_class_in(path, method) for method, path in modules(ALIGNMENT).items()]


def get_any(class_name: str) -> Any:
    """The class of a model by its own name, as model files give it: of a map, a selector, ..."""
    method = snake_case(class_name)
    path = modules((*SELECTION, *ALIGNMENT, *PREPARATION, *NEIGHBORS)).get(method)
    return get(class_name) if path is None else _class_in(path, method)


def collections() -> Any:
    """What makes tables in chunks of collections, whose partitions are computed when used."""
    return importlib.import_module(".".join(("lowland", *COLLECTIONS)))


def _plain(name: str) -> str:
    return re.sub(r"[-_]", "", name).lower()


def _class_in(path: str, method: str) -> Any:
    for value in vars(importlib.import_module(path)).values():
        here = isinstance(value, type) and value.__module__ == path
        if here and snake_case(value.__name__) == method:
            return value
    raise ImportError(f"{path} must define a class whose name in snake case is {method!r}.")


def exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``homes`` has the public names of each module, separated by spaces. A name that is also the name
    of a module of the package would stand for that module once it is imported. The stub of the
    package, which editors and type checkers read, is written by ``docs/make_stub.py``.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def attribute(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home} - {exports.__name__})

    return attribute, names, sorted(home)

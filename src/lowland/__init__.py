"""lowland: maps of high-dimensional data that people can trust.

    >>> from lowland import PCA
    >>> from lowland.datasets import digits
    >>> PCA(n_components=2).fit_transform(digits().X).shape
    (1797, 2)

Importing lowland imports nothing else: names are looked up when they are first used.
"""

TYPE_CHECKING = False  # as typing's, whose import would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_MODULES = (
    "chunks",
    "datasets",
    "errors",
    "metrics",
    "neighbors",
    "plot",
    "report",
    "selection",
    "tables",
    "trust",
    "workflow",
)
_FUNCTIONS = {
    "compare_methods": "lowland.workflow",
    "load": "lowland._base.models.codec",
    "make_map": "lowland.workflow",
    "open_rows": "lowland.chunks",
    "procrustes": "lowland.metrics.procrustes",
    "score_map": "lowland.workflow",
}


def __getattr__(name: str) -> "Any":
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"lowland.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    if not name.startswith("_"):
        from lowland._base import registry

        known = registry.modules(registry.FAMILIES + registry.SELECTION + registry.ALIGNMENT)
        path = known.get(registry.snake_case(name))
        if path is not None and hasattr(importlib.import_module(path), name):
            return getattr(importlib.import_module(path), name)
    raise AttributeError(f"module 'lowland' has no attribute {name!r}")


def __dir__() -> list[str]:
    from lowland._base import registry

    classes = [*registry.all_methods(), *registry.all_selectors(), *registry.all_alignments()]
    methods = [cls.__name__ for cls in classes]
    return sorted([*methods, *_MODULES, *_FUNCTIONS, "__version__"])

"""Selectors keep columns of a table as they are, instead of making new ones.

    >>> from lowland.datasets import iris
    >>> from lowland.selection import MRMR
    >>> data = iris()
    >>> selector = MRMR(n_features=2).fit(data.X, data.y)
    >>> [data.feature_names[i] for i in selector.get_support(indices=True)]
    ['petal length (cm)', 'petal width (cm)']

A class is imported when it is used; each is also a name of ``lowland`` itself.
"""

from typing import Any

from lowland._base import registry


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(cls.__name__ for cls in registry.all_selectors())
    if not name.startswith("_") and name != name.lower():
        for cls in registry.all_selectors():
            if cls.__name__ == name:
                return cls
    raise AttributeError(f"module 'lowland.selection' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *(cls.__name__ for cls in registry.all_selectors())])

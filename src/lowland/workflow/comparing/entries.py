"""The entries of a comparison: methods, each with the parameters that were given for it.

A method that is compared along a parameter has one entry per value of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.constraints import listed, read_value
from lowland._base.errors import (
    PYTHON,
    ParameterError,
    Spelling,
    count,
    listing,
    shown,
    unknown_name,
)
from lowland._base.params import same_value
from lowland.workflow._parameters import (
    RENAMED,
    RUN_PARAMETERS,
    method_parameters,
    run_names,
    text_constraint,
)

TELLING = ("perplexity", "n_neighbors", "gamma")  # parameters that people compare
LONGEST = 60  # characters of a value in a name
MOST_ALONG = 24  # maps along parameters; more are too small to be seen side by side


class Entry(NamedTuple):
    """A method and its parameters, as the estimator calls them."""

    cls: type[Reducer]
    parameters: dict[str, Any]
    number: int = 1  # among entries whose values cannot be told apart in a name, such as arrays

    @property
    def method(self) -> str:
        """The name of the method."""
        return registry.snake_case(self.cls.__name__)

    @property
    def name(self) -> str:
        """The entry as it is typed: ``tsne:perplexity=5``."""
        return ":".join([self.method, *map("=".join, self._given())])

    @property
    def stem(self) -> str:
        """The entry in the name of a file: ``tsne-perplexity-5``."""
        return re.sub(r"[^A-Za-z0-9._+-]+", "-", re.sub("[:=]", "-", self.name)).strip("-")

    @property
    def title(self) -> str:
        """The entry as a person reads it: ``TSNE, perplexity 5``."""
        return ", ".join([self.cls.__name__, *map(" ".join, self._given())])

    def _given(self) -> list[tuple[str, str]]:
        given = [(RENAMED.get(key, key), _text(value)) for key, value in self.parameters.items()]
        return [*given, ("number", str(self.number))] if self.number > 1 else given


def split_along(texts: Iterable[str]) -> dict[str, list[str]]:
    """``exaggeration=1,4,30`` is a parameter and three values; a value with a comma is quoted."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise ParameterError(
                f"--along: {text!r} is not allowed; expected a parameter and its values, such as "
                "exaggeration=1,4,30."
            )
        if name in found:
            raise ParameterError(f"--along: {name} is given twice; list all of its values once.")
        found[name] = listed([values])
    return found


def comparison_entries(
    methods: Sequence[Any],
    along: Mapping[str, Iterable[Any]] | None = None,
    spelling: Spelling = PYTHON,
) -> list[Entry]:
    """The entries of a comparison, each checked; equal ones are refused.

    ``along`` has the values of parameters. Each method that has the parameter is entered once for
    each value, and the others once.
    """
    option, along_option = spelling.option("methods"), spelling.option("along")
    entries = [_entry(method, option) for method in methods]
    if along is not None and not isinstance(along, Mapping):
        raise ParameterError(
            f"{along_option}: {shown(along)} is not allowed; expected a dictionary of parameters "
            "and lists of values."
        )
    for name, values in (along or {}).items():
        entries = _along(entries, str(name), values, along_option)
    found: list[Entry] = []
    for entry in entries:
        alike = [other for other in found if other._replace(number=1).stem == entry.stem]
        if any(_equal(entry.parameters, other.parameters) for other in alike):
            raise ParameterError(
                f"{option}: {entry.name!r} is given twice; compare values of a parameter as "
                f"name:parameter=value, such as {_example(entry)}."
            )
        found.append(entry._replace(number=1 + len(alike)))
    return found


def _along(entries: list[Entry], name: str, values: Any, option: str) -> list[Entry]:
    """The entries, those of methods with this parameter once for each value."""
    name = _parameter(name)
    able = [entry for entry in entries if name in run_names(entry.cls)]
    if not able:
        raise ParameterError(f"{option}: {_nobody_has(name, [entry.cls for entry in entries])}")
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ParameterError(
            f"{option}: {name}: {shown(values)} is not allowed; expected a list of values."
        )
    tried = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not tried:
        raise ParameterError(f"{option}: {name} has no values; give at least one.")
    if len(able) * len(tried) > MOST_ALONG:
        raise ParameterError(
            f"{option}: {count(len(tried), 'value')} of {name} would make "
            f"{len(able) * len(tried)} maps; give values for at most {MOST_ALONG} maps."
        )
    found: list[Entry] = []
    for entry in entries:
        own = run_names(entry.cls).get(name)
        if own is None:
            found.append(entry)
            continue
        if own in entry.parameters:
            raise ParameterError(
                f"{option}: {entry.name} has a value of {name} already; leave one of them out."
            )
        taken: list[Any] = []
        for value in tried:
            read = _read(entry, name, value, option)
            if any(_same(read, other) for other in taken):
                raise ParameterError(
                    f"{option}: {name} has the value {_text(read)} twice; give each value once."
                )
            taken.append(read)
        found += [entry._replace(parameters={**entry.parameters, own: read}) for read in taken]
    return found


def _parameter(typed: str) -> str:
    return typed.strip().lstrip("-").replace("-", "_")


def _read(entry: Entry, name: str, value: Any, option: str) -> Any:
    """A value that the parameter allows; text is read as it is typed."""
    own = run_names(entry.cls)[name]
    if isinstance(value, str):
        return _typed(entry.cls, [f"{name}={value}"], option)[own]
    constraint = entry.cls.parameters()[own].metadata["constraint"]
    if constraint.allows(value):
        return value
    raise ParameterError(
        f"{option}: {entry.method}: {name}: {shown(value)} is not allowed; expected "
        f"{constraint.describe()}."
    )


def _nobody_has(name: str, classes: list[type[Reducer]]) -> str:
    """Why a comparison cannot go along a parameter that none of its methods has."""
    options = {**RUN_PARAMETERS, **{own: own for own in RUN_PARAMETERS.values()}}
    if name in options:
        return f"{name} is the same for all maps; it is the option {options[name]}."
    known = list(dict.fromkeys(known for cls in classes for known in run_names(cls)))
    owners = [cls for cls in registry.all_methods() if name in run_names(cls)]
    if not owners:
        return unknown_name("parameter", name, known)
    methods = list(dict.fromkeys(registry.snake_case(cls.__name__) for cls in classes))
    having = listing([registry.snake_case(cls.__name__) for cls in owners], 12, quote=False)
    verb = "has" if len(methods) == 1 else "have"
    return f"{', '.join(methods)} {verb} no parameter {name!r}; these methods have it: {having}."


def _same(one: Any, other: Any) -> bool:
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return one == other if numbers else same_value(one, other)


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)


def _entry(method: Any, option: str) -> Entry:
    given: Mapping[str, Any] = {}
    if isinstance(method, tuple) and len(method) == 2 and isinstance(method[1], Mapping):
        method, given = method
    if isinstance(method, type) and issubclass(method, Reducer):
        entry = Entry(method, method_parameters(method, dict(given)))
    elif isinstance(method, str):
        name, *settings = [part.strip() for part in method.split(":")]
        cls = registry.get(name)
        entry = Entry(cls, {**_typed(cls, settings, option), **method_parameters(cls, dict(given))})
    else:
        raise ParameterError(
            f"{option}: {method!r} is not allowed; expected the name or the class of a method, "
            "'name:parameter=value', or a tuple of a method and a dictionary of parameters."
        )
    entry.cls(**entry.parameters).check_params()
    return entry


def _typed(cls: type[Reducer], settings: list[str], option: str) -> dict[str, Any]:
    """Parameters typed as ``perplexity=5``, by the name that the estimator has for them."""
    parameters, names = cls.parameters(), run_names(cls)
    constraints = {
        name: text_constraint(parameters[own].metadata["constraint"]) for name, own in names.items()
    }
    known = {name: constraint for name, constraint in constraints.items() if constraint is not None}
    where = f"{option}: {registry.snake_case(cls.__name__)}"
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = _parameter(name)
        if not equals:
            raise ParameterError(
                f"{where}: {setting!r} is not a setting; write name:parameter=value, such as "
                f"{_example(Entry(cls, {}))}."
            )
        if name not in known:
            if name in RUN_PARAMETERS:
                same = f"is the same for all maps; it is the option {RUN_PARAMETERS[name]}."
                raise ParameterError(f"{where}: {name} {same}")
            raise ParameterError(f"{where}: {unknown_name('parameter', name, [*known])}")
        if names[name] in found:
            raise ParameterError(f"{where}: {name} is given twice in one entry.")
        found[names[name]] = read_value(f"{where}: {name}", known[name], text.strip())
    return found


def _example(entry: Entry) -> str:
    """Two entries of the same method that differ."""
    for name in TELLING:
        field = entry.cls.parameters().get(name)
        if field is not None and isinstance(field.default, int | float) and field.default > 1:
            values = (field.default / 2, field.default * 2)
            return ",".join(f"{entry.method}:{name}={value:g}" for value in values)
    return "tsne:perplexity=5,tsne:perplexity=50"


def _text(value: Any) -> str:
    """A value in a name: short, and without what separates entries."""
    if isinstance(value, float):
        return f"{value:.12g}"
    if hasattr(value, "shape") and np.ndim(value):
        return "x".join(["array", *map(str, value.shape)])
    if isinstance(value, list | tuple):
        return "+".join(_text(item) for item in value)
    text = getattr(value, "__name__", None) or str(value)
    return re.sub(r"[\s,:=]+", "-", text)[:LONGEST]

"""The entries of a comparison: methods, each with the parameters that were given for it.

A method that is compared along a parameter has one entry per value of it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowland._base import registry
from lowland._base.base import Reducer
from lowland._base.constraints import read_value
from lowland._base.errors import ParameterError, count, listing, shown, unknown_name
from lowland._base.params import same_value
from lowland.workflow._parameters import (
    RENAMED,
    RUN_PARAMETERS,
    method_parameters,
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
    def name(self) -> str:
        """The entry as it is typed: ``tsne:perplexity=5``."""
        method = registry.snake_case(self.cls.__name__)
        given = (f"{RENAMED.get(key, key)}={_text(v)}" for key, v in self.parameters.items())
        return ":".join([method, *given, *([f"number={self.number}"] if self.number > 1 else [])])

    @property
    def stem(self) -> str:
        """The entry in the name of a file: ``tsne-perplexity-5``."""
        return re.sub(r"[^A-Za-z0-9._+-]+", "-", re.sub("[:=]", "-", self.name)).strip("-")

    @property
    def title(self) -> str:
        """The entry as a person reads it: ``TSNE, perplexity 5``."""
        given = (f"{RENAMED.get(key, key)} {_text(v)}" for key, v in self.parameters.items())
        more = [f"number {self.number}"] if self.number > 1 else []
        return ", ".join([self.cls.__name__, *given, *more])


def split_entries(text: str) -> list[str]:
    """``pca,tsne:perplexity=5`` are two entries; an entry with a comma is quoted."""
    return _split(text, "methods", "methods")


def split_along(texts: Iterable[str], option: str = "along") -> dict[str, list[str]]:
    """``exaggeration=1,4,30`` is a parameter and three values; a value with a comma is quoted."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise ParameterError(
                f"{option}: {text!r} is not allowed; expected a parameter and its values, such as "
                "exaggeration=1,4,30."
            )
        if name in found:
            raise ParameterError(f"{option}: {name} is given twice; list all of its values once.")
        found[name] = _split(values, option, "values")
    return found


def _split(text: str, option: str, what: str) -> list[str]:
    try:
        records = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise ParameterError(f"{option}: {text!r} is not a list of {what}: {error}.") from error
    return [part.strip() for record in records for part in record if part.strip()]


def comparison_entries(
    methods: Sequence[Any],
    option: str = "methods",
    along: Mapping[str, Iterable[Any]] | None = None,
    along_option: str = "along",
) -> list[Entry]:
    """The entries of a comparison, each checked; equal ones are refused.

    ``along`` has the values of parameters. Each method that has the parameter is entered once for
    each value, and the others once.
    """
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
    name = name.strip().lstrip("-").replace("-", "_")
    able = [entry for entry in entries if name in _called(entry.cls)]
    if not able:
        raise ParameterError(f"{option}: {_nobody_has(name, [entry.cls for entry in entries])}")
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ParameterError(
            f"{option}: {name}: {shown(values)} is not allowed; expected a list of values."
        )
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not listed:
        raise ParameterError(f"{option}: {name} has no values; give at least one.")
    if len(able) * len(listed) > MOST_ALONG:
        raise ParameterError(
            f"{option}: {count(len(listed), 'value')} of {name} would make "
            f"{len(able) * len(listed)} maps; give values for at most {MOST_ALONG} maps."
        )
    found: list[Entry] = []
    for entry in entries:
        has_it = name in _called(entry.cls)
        found += _entries_of_values(entry, name, listed, option) if has_it else [entry]
    return found


def _entries_of_values(entry: Entry, name: str, values: list[Any], option: str) -> list[Entry]:
    own = _called(entry.cls)[name]
    if own in entry.parameters:
        raise ParameterError(
            f"{option}: {entry.name} has a value of {name} already; leave one of them out."
        )
    found: list[Entry] = []
    for value in values:
        read = _read(entry.cls, name, value, option)
        made = entry._replace(parameters={**entry.parameters, own: read})
        if any(_equal(made.parameters, other.parameters) for other in found):
            raise ParameterError(
                f"{option}: {name} has the value {_text(read)} twice; give each value once."
            )
        found.append(made)
    return found


def _read(cls: type[Reducer], name: str, value: Any, option: str) -> Any:
    """A value that the parameter allows; text is read as it is typed."""
    own = _called(cls)[name]
    if isinstance(value, str):
        return _typed(cls, [f"{name}={value}"], option)[own]
    constraint = cls.parameters()[own].metadata["constraint"]
    if constraint.allows(value):
        return value
    method = registry.snake_case(cls.__name__)
    raise ParameterError(
        f"{option}: {method}: {name}: {shown(value)} is not allowed; expected "
        f"{constraint.describe()}."
    )


def _called(cls: type[Reducer]) -> dict[str, str]:
    """Parameters of a method that entries may differ in, by the names that a run has for them."""
    names = (name for name in cls.parameters() if name not in RUN_PARAMETERS)
    return {RENAMED.get(name, name): name for name in names}


def _nobody_has(name: str, classes: list[type[Reducer]]) -> str:
    """Why a comparison cannot go along a parameter that none of its methods has."""
    options = {**RUN_PARAMETERS, **{own: own for own in RUN_PARAMETERS.values()}}
    if name in options:
        return f"{name} is the same for all maps; it is the option {options[name]}."
    known = list(dict.fromkeys(known for cls in classes for known in _called(cls)))
    owners = [cls for cls in registry.all_methods() if name in _called(cls)]
    if not owners:
        return unknown_name("parameter", name, known)
    methods = list(dict.fromkeys(registry.snake_case(cls.__name__) for cls in classes))
    having = listing([registry.snake_case(cls.__name__) for cls in owners], 12, quote=False)
    verb = "has" if len(methods) == 1 else "have"
    return f"{', '.join(methods)} {verb} no parameter {name!r}; these methods have it: {having}."


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    def same(value: Any, beside: Any) -> bool:
        numbers = all(isinstance(each, int | float) for each in (value, beside))
        return value == beside if numbers else same_value(value, beside)

    return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)


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
    called = {RENAMED.get(name, name): name for name in cls.parameters()}
    constraints = {
        name: text_constraint(cls.parameters()[own].metadata["constraint"])
        for name, own in called.items()
    }
    known = [n for n, c in constraints.items() if c is not None and called[n] not in RUN_PARAMETERS]
    method = registry.snake_case(cls.__name__)
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not equals:
            raise ParameterError(
                f"{option}: {setting!r} of {method} is no setting; write name:parameter=value, "
                f"such as {_example(Entry(cls, {}))}."
            )
        constraint = constraints.get(name)
        if name in RUN_PARAMETERS and name not in known:
            raise ParameterError(
                f"{option}: {method}: {name} is the same for all maps; it is the option "
                f"{RUN_PARAMETERS[name]}."
            )
        if constraint is None or name not in known:
            raise ParameterError(f"{option}: {method}: {unknown_name('parameter', name, known)}")
        if called[name] in found:
            raise ParameterError(f"{option}: {method}: {name} is given twice in one entry.")
        found[called[name]] = read_value(f"{option}: {method}: {name}", constraint, text.strip())
    return found


def _example(entry: Entry) -> str:
    """Two entries of the same method that differ."""
    parameters = entry.cls.parameters()
    for name in TELLING:
        field = parameters.get(name)
        if field is not None and isinstance(field.default, int | float) and field.default > 1:
            method = registry.snake_case(entry.cls.__name__)
            return f"{method}:{name}={field.default / 2:g},{method}:{name}={field.default * 2:g}"
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

"""Options of tables and runs, declared once for Python and for the command line.

    scale: str = option(Choice("auto", "none"), default="auto", group="preparation")

A dataclass with such lines and a numpydoc docstring declares a group of options: name, default,
what a value may be, and what it means. :func:`takes_options` makes keywords of a function of them,
:class:`Options` checks them, and the command line makes its own options and their help of them.
Numpy is not imported here, because help is shown without it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from lowland._base.constraints import Boolean, Constraint, Names, OneOf, read_value
from lowland._base.errors import COMMAND_LINE, PYTHON, ParameterError, Spelling, shown
from lowland._base.params import Entry, complete, entries, same_value, short


@dataclasses.dataclass(frozen=True)
class Option:
    """One option; where the default is None, None is allowed, too."""

    constraint: Constraint
    default: Any
    group: str | None  # of the help; "" for what most people need, None for Python only
    metavar: str  # what the help of the command line writes for the value
    also: tuple[str, ...]  # further spellings on the command line, such as "-m"
    example: str  # a value as the command line spells it
    name: str = ""
    entry: Entry = Entry("", "")

    @property
    def help(self) -> str:
        """The first sentence of the documentation, and an example."""
        return f"{short(self.entry)}{f': {self.example}' if self.example else ''}."

    def check(self, value: Any, spelling: Spelling) -> None:
        """Refuse a value that is not allowed."""
        if not ((value is None and self.default is None) or self.constraint.allows(value)):
            raise ParameterError(
                f"{spelling.option(self.name)}: {shown(value)} is not allowed; expected "
                f"{self.constraint.describe()}."
            )

    def take(self, value: Any) -> Any:
        """The value that a keyword of Python stands for; one name is several, too."""
        if value is None:
            return self.default
        return self.constraint.take(value) if isinstance(self.constraint, Names) else value

    def parse(self, typed: Any) -> Any:
        """The value that was typed: a text, several, or whether a flag was given."""
        if typed is None or typed == []:
            return self.default
        if isinstance(self.constraint, Names):
            return self.constraint.parse_all(typed)
        if isinstance(self.constraint, Boolean):
            return typed
        return read_value(COMMAND_LINE.option(self.name), self.constraint, typed)


def option(
    constraint: Constraint,
    *,
    default: Any = None,
    group: str | None = "",
    metavar: str = "",
    also: tuple[str, ...] = (),
    example: str = "",
) -> Any:
    """Declare an option inside a class body; see the module's example."""
    if not metavar and isinstance(constraint, OneOf):
        metavar = "|".join(constraint.choices)
    declared = Option(constraint, default, group, metavar, also, example)
    return dataclasses.field(default=default, metadata={"option": declared})


class Options:
    """Base of the dataclasses that declare options."""

    spelling: Spelling = PYTHON
    # Made of declarations when they are first asked for.
    _declared: ClassVar[dict[str, Option]]

    def __post_init__(self) -> None:
        for name, declared in self.declared().items():
            declared.check(getattr(self, name), self.spelling)

    @classmethod
    def declared(cls) -> dict[str, Option]:
        """The options by name."""
        if "_declared" not in vars(cls):
            known = entries(cls.__doc__, "Parameters")
            fields = [field for field in dataclasses.fields(cls) if "option" in field.metadata]  # type: ignore[arg-type]
            cls._declared = {
                field.name: dataclasses.replace(
                    field.metadata["option"], name=field.name, entry=known[field.name]
                )
                for field in fields
            }
        return cls._declared

    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        given = {name: getattr(self, name) for name in self.declared()}
        return {
            name: value
            for name, value in given.items()
            if not same_value(value, self.declared()[name].default)
        }

    @classmethod
    def from_keywords(cls, data: Any, given: Mapping[str, Any]) -> Self:
        """The options that keywords of a function of ``data`` stand for."""
        declared = cls.declared()
        return cls(**{name: declared[name].take(value) for name, value in given.items()})

    @classmethod
    def from_texts(cls, typed: Mapping[str, Any], **known: Any) -> Self:
        """The options that were typed on the command line."""
        declared = cls.declared()
        given = {name: declared[name].parse(text) for name, text in typed.items()}
        return cls(**{**given, **known, "spelling": COMMAND_LINE})


def takes_options(
    **holders: tuple[type[Options], Sequence[str]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function options as keywords.

    ``table=(TableOptions, names)`` replaces the keyword ``table`` of the function, which gets the
    named options as one object. The signature and the documentation show each option. The first
    argument that is called ``data`` may decide what a value means.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(function)
        place = list(own.parameters).index("data")

        @functools.wraps(function)
        def with_options(*args: Any, **keywords: Any) -> Any:
            data = args[place] if place < len(args) else keywords.get("data")
            for holder, (cls, names) in holders.items():
                given = {name: keywords.pop(name) for name in names if name in keywords}
                keywords[holder] = cls.from_keywords(data, given)
            return function(*args, **keywords)

        parameters, documented = [], {}
        for name, parameter in own.parameters.items():
            if name not in holders:
                parameters.append(parameter)
                continue
            cls, names = holders[name]
            for each in names:
                declared = cls.declared()[each]
                default = None if declared.default == () else declared.default
                parameters.append(parameter.replace(name=each, default=default, annotation=Any))
                documented[each] = declared.entry
        with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        shown = {"Parameters": (documented, documented)}
        with_options.__doc__ = complete(function.__doc__, shown)
        return with_options

    return decorate

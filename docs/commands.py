"""The commands of the program as Markdown, from the signatures of their functions."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Any, NamedTuple

from docstrings import cell, markdown
from typer.models import ArgumentInfo

from lowland.cli.app import app

__all__ = ["COMMANDS", "command_page"]

COMMANDS = {command.name: command.callback for command in app.registered_commands}


class Declared(NamedTuple):
    """One argument or option."""

    spelling: str
    text: str
    is_argument: bool


def command_page(name: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Usage, description and rows of the table of options of a command."""
    declared = [_declared(parameter) for parameter in _signature(COMMANDS[name])]
    arguments = [each.spelling for each in declared if each.is_argument]
    rows = [(f"`{each.spelling}`", each.text) for each in declared]
    usage = " ".join(["lowland", str(name), *arguments, "[OPTIONS]"])
    return usage, markdown(inspect.cleandoc(COMMANDS[name].__doc__ or "")), rows


def _signature(function: Any) -> list[tuple[str, Any, Any, Any]]:
    """Name, type, declaration and default of each parameter that is typed."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if typing.get_origin(hints[name]) is typing.Annotated:
            kind, info = typing.get_args(hints[name])[:2]
            found.append((name, _without_none(kind), info, parameter.default))
    return sorted(found, key=lambda each: each[3] is not inspect.Parameter.empty)


def _without_none(kind: Any) -> Any:
    if isinstance(kind, types.UnionType):
        return next(each for each in typing.get_args(kind) if each is not types.NoneType)
    return kind


def _declared(parameter: tuple[str, Any, Any, Any]) -> Declared:
    name, kind, info, default = parameter
    text = cell(info.help or "")
    if isinstance(info, ArgumentInfo):
        return Declared(info.metavar or name.upper(), text, True)
    # typer keeps the first spelling where a default would stand
    given = [info.default, *(info.param_decls or ())]
    spellings = ", ".join(each for each in given if isinstance(each, str)).replace("/", ", ")
    if kind is not bool:
        spellings += " " + (info.metavar or "VALUE").replace("|", r"\|")
        if info.show_default and default is not None:
            text += f" Default: `{default}`."
    return Declared(spellings, text, False)

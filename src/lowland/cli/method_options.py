"""The options of a method, generated from the parameters it declares.

``n_components`` is ``--n-components VALUE``, a boolean ``whiten`` is ``--whiten`` and
``--no-whiten``; values are read and checked by the parameter's own constraint.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from lowland._base import registry
from lowland._base.constraints import Boolean, Constraint, read_value
from lowland._base.errors import ParameterError
from lowland._base.params import short
from lowland.workflow._parameters import DEFAULT_METHOD, MAP_DEFAULTS, RENAMED, text_constraint

if TYPE_CHECKING:
    from lowland._base.base import Reducer

# The groups of options after those that most people need.
GROUPS = ("input", "columns", "preparation", "map", "pictures", "output", "large tables")
# Parameters of all methods that have an option of another name.
SPELLED = {
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "verbose": "--quiet",
    "scale": "--scale standard",
}
KEY, TYPED, ALL = "lowland.parameters", "lowland.command", "lowland.all"
MOST_OPTIONS = 14  # that a screen has room for


@dataclasses.dataclass(frozen=True)
class MethodOption:
    """One parameter as an option."""

    parameter: str
    name: str
    constraint: Constraint
    default: Any
    doc: str

    @property
    def is_flag(self) -> bool:
        return isinstance(self.constraint, Boolean)

    @property
    def negated(self) -> str:
        return "--no-" + self.parameter.replace("_", "-")

    @property
    def usage(self) -> str:
        return f"{self.name}, {self.negated}" if self.is_flag else f"{self.name} VALUE"

    def to_dict(self) -> dict[str, Any]:
        """The option in plain values, for ``--json``."""
        about = {"allowed": self.constraint.describe(), "doc": self.doc}
        return {"option": self.name, "usage": self.usage, "default": self.default, **about}

    def read(self, text: str) -> Any:
        """The value that ``text`` stands for; refused if the parameter does not allow it."""
        return read_value(self.name, self.constraint, text)


def method_options(cls: type[Reducer]) -> dict[str, MethodOption]:
    """Every option of a method by its spelling, ``--no-`` forms included."""
    from lowland._base.base import Reducer

    # `lowland select` prepares nothing, so `scale` is an option of the selector itself there.
    spelled = set(SPELLED) if issubclass(cls, Reducer) else set(SPELLED) - {"scale"}
    # `lowland align` has no --method that names a method.
    renamed = {} if cls.__module__.startswith("lowland.methods.alignment.") else RENAMED
    options = {}
    for name, field in cls.parameters().items():
        constraint = text_constraint(field.metadata["constraint"])
        if name in spelled or constraint is None:
            continue
        default = MAP_DEFAULTS.get(name, field.default)
        spelling = "--" + renamed.get(name, name).replace("_", "-")
        option = MethodOption(name, spelling, constraint, default, short(cls.documentation(name)))
        options[option.name] = option
        if option.is_flag:
            options[option.negated] = option
    return options


def show_all(ctx: typer.Context, wanted: bool) -> None:
    """Show the help with all options, and end."""
    if wanted:
        from lowland.cli.console import write

        ctx.meta[ALL] = True
        write(ctx.get_help())
        raise typer.Exit


class HelpedCommand(TyperCommand):
    """A command whose help shows its options by group, those that most people need first.

    If there are too many for a screen, --help lists the names of the others, and --help-all
    describes them. A misspelled option is answered with the most similar one.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = shlex.join(["lowland", ctx.info_name or "", *args])
        own = _own_options(self)
        unknown = [name for name, _ in _long_options(self, args) if name not in own]
        return super().parse_args(ctx, self.without(unknown, ctx, args) if unknown else args)

    def without(self, unknown: list[str], ctx: typer.Context, args: list[str]) -> list[str]:
        """The arguments without the options that the command does not declare itself."""
        raise ParameterError(_unknown_option(unknown[0], list(_own_options(self))))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        brief: dict[str, list[str]] = {}
        for param in self.get_params(ctx):
            record, is_option = param.get_help_record(ctx), param.param_type_name == "option"
            group = getattr(param, "rich_help_panel", None) or "options"
            if record is not None:
                groups.setdefault(group if is_option else "arguments", []).append(record)
                brief.setdefault(group, []).append(param.opts[0])
        shown = [name for name in ("arguments", "options", *GROUPS) if name in groups]
        if sum(map(len, groups.values())) > MOST_OPTIONS and ALL not in ctx.meta:
            shown = [name for name in shown if name not in GROUPS]
        for name in shown:
            with formatter.section(name.capitalize()):
                formatter.write_dl(groups[name])
        rest = [(name, ", ".join(brief[name])) for name in GROUPS if name in {*groups} - {*shown}]
        if rest:
            with formatter.section("More options, which --help-all describes"):
                formatter.write_dl(rest)


class MethodCommand(HelpedCommand):
    """A command that also takes the options of the method named by ``--method``."""

    def method_named(self, name: str | None) -> Any:
        """The class that ``--method`` names; the default if it is not given."""
        return registry.get(name or DEFAULT_METHOD)

    def others(self) -> list[Any]:
        """All classes that ``--method`` may name."""
        return registry.all_methods()

    def without(self, unknown: list[str], ctx: typer.Context, args: list[str]) -> list[str]:
        """The arguments without the options of the method, whose values are kept."""
        cls, own = self.method_named(_method_named_in(args)), _own_options(self)
        options = method_options(cls)
        taken: set[int] = set()
        values = ctx.meta[KEY] = {}
        for name, place in _long_options(self, args):
            if name in own or place in taken:
                continue
            if name not in options:
                raise ParameterError(self.unknown(name, cls, [*own, *options]))
            option = options[name]
            taken.add(place)
            _, equals, text = args[place].partition("=")
            if option.is_flag and not equals:
                values[option.parameter] = name == option.name
                continue
            if not equals:
                if place + 1 >= len(args):
                    raise ParameterError(f"{name} needs a value: {option.constraint.describe()}.")
                text = args[place + 1]
                taken.add(place + 1)
            values[option.parameter] = option.read(text)
        return [arg for i, arg in enumerate(args) if i not in taken]

    def unknown(self, name: str, cls: type[Reducer], known: list[str]) -> str:
        """What to say of an option that neither the command nor the method has."""
        parameter = name.removeprefix("--").replace("-", "_")
        if parameter in SPELLED:
            return f"no such option {name}; it is spelled {SPELLED[parameter]}."
        owners = [
            registry.snake_case(c.__name__) for c in self.others() if name in method_options(c)
        ]
        if owners:
            method = registry.snake_case(cls.__name__)
            return f"{method} has no option {name}; it is an option of {', '.join(owners)}."
        return _unknown_option(name, known)


def _own_options(command: TyperCommand) -> dict[str, bool]:
    """The options that the command declares itself, and whether each takes a value."""
    own = {"--help": False}
    for param in command.params:
        if param.param_type_name == "option":
            for spelling in (*param.opts, *param.secondary_opts):
                own[spelling] = not getattr(param, "is_flag", False)
    return own


def _long_options(command: TyperCommand, args: list[str]) -> Iterator[tuple[str, int]]:
    """Name and position of each ``--option``; values of options are skipped."""
    own = _own_options(command)
    i = 0
    while i < len(args) and args[i] != "--":
        name, equals, _ = args[i].partition("=")
        if name.startswith("--"):
            yield name, i
        takes_next = own.get(name, False) and not equals
        i += 2 if takes_next else 1


def _method_named_in(args: list[str]) -> str | None:
    for arg, following in itertools.zip_longest(args, args[1:]):
        if arg in ("-m", "--method"):
            return following
        if arg.startswith("--method="):
            return arg.partition("=")[2]
        if arg.startswith("-m"):
            return arg[2:]
    return None


def _unknown_option(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"no such option {name}" + (f"; did you mean {near[0]}?" if near else "; see --help.")

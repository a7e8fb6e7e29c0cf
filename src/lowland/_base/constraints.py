"""What a parameter may be: sets of values that describe themselves and read themselves from text.

Messages (``expected an integer >= 1 or None``), documentation and the command line's options are
all made from these. ``a | b`` allows either. Numpy is imported where a value is checked, not above,
because help is shown without it.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from lowland._base.errors import ParameterError, shown

LARGE = 2**63  # integers beyond it do not fit into the kernels' types


def _is_bool(value: Any) -> bool:
    import numpy as np

    return isinstance(value, bool | np.bool_)


def read_value(name: str, constraint: Constraint, text: str) -> Any:
    """The value that a text stands for; refused if the parameter does not allow it."""
    try:
        value = constraint.parse(text)
    except ValueError:
        pass
    else:
        if constraint.allows(value):
            return value
    raise ParameterError(f"{name}: {text!r} is not allowed; expected {constraint.describe()}.")


def check_argument(name: str, value: Any, constraint: Constraint) -> None:
    """Refuse an argument of a function that its constraint does not allow."""
    if not constraint.allows(value):
        raise ParameterError(
            f"{name}={shown(value)} is not allowed; expected {constraint.describe()}."
        )


class Constraint:
    """A set of allowed values that can describe itself and read a value from text."""

    what: str = ""  # of most sets: their description

    def allows(self, value: Any) -> bool:
        raise NotImplementedError

    def describe(self) -> str:
        return self.what

    def parse(self, text: str) -> Any:
        """The value that ``text`` spells; ``ValueError`` when it spells none."""
        raise ValueError(text)

    def __or__(self, other: Constraint) -> Constraint:
        return Either((self, other))


@dataclasses.dataclass(frozen=True)
class Either(Constraint):
    """Any of several constraints; text is read by the first that can."""

    options: tuple[Constraint, ...]

    def allows(self, value: Any) -> bool:
        return any(option.allows(value) for option in self.options)

    def describe(self) -> str:
        *most, last = [option.describe() for option in self.options]
        return f"{', '.join(most)} or {last}"

    def parse(self, text: str) -> Any:
        for option in self.options:
            try:
                value = option.parse(text)
            except ValueError:
                continue
            if option.allows(value):
                return value
        raise ValueError(text)

    def __or__(self, other: Constraint) -> Constraint:
        return Either((*self.options, other))


@dataclasses.dataclass(frozen=True)
class Integer(Constraint):
    """An integer (never a bool) between ``low`` and ``high``, both included."""

    low: int | None = None
    high: int | None = None

    def allows(self, value: Any) -> bool:
        return (
            isinstance(value, numbers.Integral)
            and not _is_bool(value)
            and abs(int(value)) < LARGE
            and (self.low is None or int(value) >= self.low)
            and (self.high is None or int(value) <= self.high)
        )

    def describe(self) -> str:
        if self.high is not None:
            return f"an integer from {self.low} to {self.high}"
        return "an integer" if self.low is None else f"an integer >= {self.low}"

    def parse(self, text: str) -> int:
        return int(text)


@dataclasses.dataclass(frozen=True)
class Real(Constraint):
    """A finite number in an interval; ``closed`` names the ends that belong to it."""

    low: float = -math.inf
    high: float = math.inf
    closed: Literal["neither", "left", "right", "both"] = "neither"

    def allows(self, value: Any) -> bool:
        if not isinstance(value, numbers.Real) or _is_bool(value):
            return False
        try:
            value = float(value)
        except (OverflowError, ValueError, TypeError):  # 10**400
            return False
        if not math.isfinite(value):
            return False
        above = value >= self.low if self.closed in ("left", "both") else value > self.low
        below = value <= self.high if self.closed in ("right", "both") else value < self.high
        return bool(above and below)

    def describe(self) -> str:
        if math.isinf(self.low) and math.isinf(self.high):
            return "a finite number"
        if math.isinf(self.high):
            return f"a number {'>=' if self.closed in ('left', 'both') else '>'} {self.low:g}"
        left = "[" if self.closed in ("left", "both") else "("
        right = "]" if self.closed in ("right", "both") else ")"
        return f"a number in {left}{self.low:g}, {self.high:g}{right}"

    def parse(self, text: str) -> float:
        return float(text)


class OneOf(Constraint):
    """One of a few names."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.choices

    def describe(self) -> str:
        return " | ".join(repr(choice) for choice in self.choices)

    def parse(self, text: str) -> str:
        if text not in self.choices:
            raise ValueError(text)
        return text


class Boolean(Constraint):
    """True or False."""

    what = "True or False"

    def allows(self, value: Any) -> bool:
        return _is_bool(value)

    def parse(self, text: str) -> bool:
        if text.lower() in ("true", "yes", "1"):
            return True
        if text.lower() in ("false", "no", "0"):
            return False
        raise ValueError(text)


class Null(Constraint):
    """None: let the method choose."""

    what = "None"

    def allows(self, value: Any) -> bool:
        return value is None

    def parse(self, text: str) -> None:
        if text.lower() != "none":
            raise ValueError(text)


class Function(Constraint):
    """Anything callable."""

    what = "a function"

    def allows(self, value: Any) -> bool:
        return callable(value)


class Having(Function):
    """An object (not a class) with certain methods, such as an estimator of scikit-learn."""

    def __init__(self, what: str, *methods: str) -> None:
        self.what, self.methods = what, methods

    def allows(self, value: Any) -> bool:
        has_all = all(callable(getattr(value, name, None)) for name in self.methods)
        return has_all and not isinstance(value, type | str)


class Text(Constraint):
    """A name that somebody else understands."""

    def __init__(self, what: str) -> None:
        self.what = what

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value)

    def parse(self, text: str) -> str:
        return text


class Several(Constraint):
    """A list, tuple or array of at least one value, each of which another constraint allows."""

    def __init__(self, each: Constraint) -> None:
        self.each = each

    def allows(self, value: Any) -> bool:
        import numpy as np

        if not isinstance(value, list | tuple | np.ndarray) or np.ma.is_masked(value):
            return False
        if isinstance(value, np.ndarray) and value.ndim != 1:
            return False
        return len(value) > 0 and all(self.each.allows(item) for item in value)

    def describe(self) -> str:
        return f"a list, each {self.each.describe()}"

    def parse(self, text: str) -> list[Any]:
        if "," not in text:
            raise ValueError(text)
        return [self.each.parse(part) for part in text.split(",")]


class Array(Constraint):
    """A two-dimensional array of numbers."""

    what = "an array of numbers with two dimensions"

    def allows(self, value: Any) -> bool:
        import numpy as np

        try:
            array = value if hasattr(value, "dtype") else np.asarray(value)
            return np.ndim(array) == 2 and array.dtype.kind in "fiub" and not np.ma.is_masked(value)
        except Exception:  # a ragged list, or an object that only looks like an array
            return False


class Mapping(Constraint):
    """A dictionary whose keys are names."""

    what = "a dictionary"

    def allows(self, value: Any) -> bool:
        return isinstance(value, dict) and all(isinstance(key, str) for key in value)


class Seed(Constraint):
    """What a random generator can be made from (see :func:`lowland._base.context.generator`)."""

    what = "None, an integer >= 0, a numpy Generator or RandomState"

    def allows(self, value: Any) -> bool:
        import numpy as np

        return (
            value is None
            or (isinstance(value, numbers.Integral) and int(value) >= 0 and not _is_bool(value))
            or isinstance(value, np.random.Generator | np.random.RandomState)
        )

    def parse(self, text: str) -> int:
        return int(text)


# What the options of a table and a run may be.


class Anything(Constraint):
    """What the function that uses it checks by itself."""

    def allows(self, value: Any) -> bool:
        return True

    def parse(self, text: str) -> str:
        return text


class Choice(OneOf):
    """One of a few names, in the words of a message for everybody; ``aliases`` are typed, too."""

    def __init__(self, *choices: str, **aliases: str) -> None:
        super().__init__(*choices)
        self.aliases = {alias.replace("_", "-"): choice for alias, choice in aliases.items()}

    def describe(self) -> str:
        return ", ".join(self.choices)

    def parse(self, text: str) -> str:
        return super().parse(self.aliases.get(text, text))


class Names(Constraint):
    """Names of columns."""

    what = "names of columns"

    def allows(self, value: Any) -> bool:
        return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)

    def take(self, value: Any) -> Any:
        """Several names, from one or several."""
        if isinstance(value, str):
            return (value,)
        given = tuple(value) if isinstance(value, Iterable) else (value,)
        return tuple(dict.fromkeys(given)) if self.allows(given) else given

    def parse_all(self, texts: Sequence[str]) -> Any:
        """The value of an option that is typed once or several times."""
        return tuple(split(texts))


def split(texts: Sequence[str]) -> list[str]:
    """``--columns a,b --columns c`` names three columns; a name with a comma is quoted."""
    return list(dict.fromkeys(listed(texts)))


def listed(texts: Sequence[str]) -> list[str]:
    """The values of comma-separated lists; a value with a comma is quoted."""
    import csv
    import io

    # A line break separates values as a comma does, unless it is quoted.
    records = [csv.reader(io.StringIO(text, newline="")) for text in texts]
    try:
        given = [name.strip() for reader in records for record in reader for name in record]
    except csv.Error as error:
        raise ParameterError(f"{list(texts)}: is not a list of values: {error}.") from error
    return [name for name in given if name]


class Orders(Names):
    """The values of columns of text in their order."""

    what = "a dictionary of columns, each with two or more different values in their order"

    def allows(self, value: Any) -> bool:
        return isinstance(value, dict) and all(
            isinstance(name, str) and _is_order(order) for name, order in value.items()
        )

    def take(self, value: Any) -> Any:
        return value

    def parse_all(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """``--order size,weight=low,high --order rank=a,b`` is the order of three columns."""
        found: dict[str, list[str]] = {}
        for text in texts:
            names, equals, values = text.partition("=")
            if not names.strip() or not equals or len(split([values])) < 2:
                raise ParameterError(
                    f"--order: {text!r} is not allowed; expected a column and its values in their "
                    "order, such as 'size=low,medium,high'."
                )
            found |= dict.fromkeys(split([names]), split([values]))
        return found


def _is_order(order: Any) -> bool:
    if not isinstance(order, list | tuple) or not all(isinstance(value, str) for value in order):
        return False
    return len(order) > 1 and len({*order}) == len(order)


# Seconds of the periods that dates and times repeat in; a year is the mean Gregorian year.
PERIODS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0, "year": 31556952.0}
_PERIOD = Real(0)


class Cycles(Orders):
    """The periods of columns."""

    what = (
        "a dictionary of columns, each with its period: a number > 0 or, for dates, "
        f"{', '.join(PERIODS)}"
    )

    def allows(self, value: Any) -> bool:
        return isinstance(value, dict) and all(
            isinstance(name, str)
            and (period in PERIODS if isinstance(period, str) else _PERIOD.allows(period))
            for name, period in value.items()
        )

    def parse_all(self, texts: Sequence[str]) -> dict[str, Any]:
        """``--cyclic hour=24,when=week`` are the periods of two columns."""
        found: dict[str, Any] = {}
        for text in split(texts):
            name, equals, period = (part.strip() for part in text.rpartition("="))
            if not name or not equals or not period:
                raise ParameterError(
                    f"--cyclic: {text!r} is not allowed; expected a column and its period, such "
                    "as 'hour=24' or 'when=week'."
                )
            try:
                found[name] = float(period)
            except ValueError:
                found[name] = period
        return found

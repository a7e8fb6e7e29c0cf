"""Every error lowland raises on purpose, and its one warning.

All errors derive from :class:`LowlandError` and from the built-in that scikit-learn's users expect
(``ValueError``, ``TypeError``, ``MemoryError``), so that ``except ValueError`` keeps working. Each
message names the parameter, the column or the file, shows the offending value and states what to
do.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

# Small pieces of text that several messages use.


def count(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(names: Sequence[str], most: int = 8, *, quote: bool = True) -> str:
    """The first few names, and how many more there are."""
    shown = [repr(name) if quote else name for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more


def shown(value: Any, most: int = 200) -> str:
    """A value for a message: an array by its shape, anything long cut off; never an exception."""
    import numpy as np  # not above: help is shown without it

    if isinstance(value, np.ndarray) and value.ndim > 0:
        return f"array of shape {value.shape} and type {value.dtype}"
    try:
        text = repr(value)
    except Exception:  # such as integers of more than 4300 digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}..."


# Keywords that have another name on the command line.
OPTION_NAMES = {
    "id_column": "id",
    "labels": "label",
    "label_file": "labels",
    "measure": "report",
    "n_jobs": "jobs",
}


class Spelling(NamedTuple):
    """How messages name an option: as a keyword of Python or as one of the command line."""

    command_line: bool

    def option(self, name: str, value: str | None = None) -> str:
        """``impute='mean'`` in Python, ``--impute mean`` on the command line."""
        if not self.command_line:
            return name if value is None else f"{name}={value!r}"
        option = "--" + OPTION_NAMES.get(name, name).replace("_", "-")
        return option if value is None else f"{option} {value}"

    def columns(self, name: str, columns: Sequence[str]) -> str:
        """``use=['a', 'b']`` in Python, ``--use a,b`` on the command line, quoted for a shell."""
        if not self.command_line:
            return f"{name}={list(columns)!r}"
        return self.option(name, shlex.quote(",".join(_quoted(column) for column in columns)))


def _quoted(name: str) -> str:
    """A name in a comma-separated list."""
    odd = any(mark in name for mark in ',"\n\r') or name != name.strip()
    return '"' + name.replace('"', '""') + '"' if odd else name


PYTHON = Spelling(command_line=False)
COMMAND_LINE = Spelling(command_line=True)


class LowlandError(Exception):
    """Base of every error that lowland raises on purpose."""


class ParameterError(LowlandError, ValueError):
    """A parameter has a value outside its declared constraint."""


class NeedsMemoryError(ParameterError):
    """A method or a setting of it cannot be fitted to rows that are read in chunks."""


class DataError(LowlandError, ValueError):
    """The data cannot be used: wrong shape, NaN, infinity, too few rows, no numeric columns."""


class DataTypeError(LowlandError, TypeError):
    """The data hold something that is not a number."""


class MemoryLimitError(LowlandError, MemoryError):
    """The work would need more memory than the process may use; nothing was allocated."""


class ModelFileError(LowlandError, ValueError):
    """A model file is damaged, was tampered with, or is not one of ours."""


class StoppedError(LowlandError, RuntimeError):
    """The run was cancelled before there was anything worth keeping."""


class ClusterError(LowlandError, RuntimeError):
    """A cluster of workers cannot do the work: it is not there, it ended, or its workers differ."""


class ConvergenceWarning(UserWarning):
    """An iterative method stopped before it reached its tolerance."""


MOST_NAMES = 30  # in a message


def unknown_name(kind: str, name: str, known: list[str]) -> str:
    """The message for a name that does not exist, with the nearest one that does."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    there = ", ".join(known[:MOST_NAMES])
    hint = f"did you mean {near[0]!r}?" if near else f"there are {there}{more}."
    return f"unknown {kind} {name!r}; {hint}"


def check_name(kind: str, name: object, known: Sequence[str]) -> None:
    """Refuse what is not one of a few names."""
    if not isinstance(name, str) or name not in known:
        raise ParameterError(unknown_name(kind, str(name), list(known)))

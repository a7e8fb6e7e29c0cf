"""Every error lowland raises on purpose, and its one warning.

All errors derive from :class:`LowlandError` and from the built-in that scikit-learn's users expect
(``ValueError``, ``TypeError``, ``MemoryError``), so that ``except ValueError`` keeps working. Each
message names the parameter, the column or the file, shows the offending value and says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence


class LowlandError(Exception):
    """Base of every error that lowland raises on purpose."""


class ParameterError(LowlandError, ValueError):
    """A parameter has a value outside its declared constraint."""


class NeedsMemoryError(ParameterError):
    """A method or a setting of it cannot be fitted to rows that are read leaf by leaf."""


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

"""The rules that hold for every call, whatever goes in."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning, NotFittedError

from lowland.errors import ConvergenceWarning, LowlandError


class Broken(AssertionError):  # noqa: N818
    """A rule does not hold."""


class UserFault(Exception):  # noqa: N818
    """What a function of the user raises; it passes through lowland."""


class _Refused:
    def __repr__(self) -> str:
        return "REFUSED"


REFUSED = _Refused()
FINE_WARNINGS = (ConvergenceWarning, DataConversionWarning)


def require(fact: Any, rule: str) -> None:
    if not fact:
        raise Broken(rule)


def attempt(function: Callable[..., Any], *args: Any, warned: bool = False, **keywords: Any) -> Any:
    """What a call gives; ``REFUSED`` if it raises one of our own errors.

    Any other exception is a finding, and so is a warning that is not our own. ``warned`` lets
    every warning pass.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = function(*args, **keywords)
        except (LowlandError, NotFittedError) as error:
            require(str(error).strip(), f"{type(error).__name__} without a message")
            value = REFUSED
        except UserFault:
            value = REFUSED
        except TypeError as error:
            if not _wrong_call(error, keywords):
                raise
            value = REFUSED
    for warning in [] if warned else caught:
        if warning.category is not UserWarning and not issubclass(warning.category, FINE_WARNINGS):
            place = f"{warning.filename.split('lowland/')[-1]}:{warning.lineno}"
            raise Broken(f"{warning.category.__name__} at {place}: {warning.message}")
    return value


def _wrong_call(error: TypeError, keywords: dict[str, Any]) -> bool:
    """Whether the call does not fit the signature of the function, or of what it passes on to."""
    assert error.__traceback__ is not None
    passed_on = [f"unexpected keyword argument {name!r}" in str(error) for name in keywords]
    return error.__traceback__.tb_next is None or any(passed_on)


def same_bytes(first: Any, second: Any, rule: str) -> None:
    """Two arrays are equal to the last bit, or both were refused."""
    if first is REFUSED or second is REFUSED:
        require(first is second, f"{rule}: refused only once")
        return
    first, second = dense(first), dense(second)
    same = first.shape == second.shape and first.dtype == second.dtype
    require(same, f"{rule}: other shapes or types")
    if first.tobytes() != second.tobytes():
        different = first.astype(str) != second.astype(str)
        raise Broken(f"{rule}: {int(different.sum())} of {first.size} values differ")


def dense(result: Any) -> np.ndarray:
    """A result as an array; a selector of sparse columns gives a sparse one."""
    return result.toarray() if hasattr(result, "toarray") else np.asarray(result)


def contents(value: Any) -> Any:
    """A description of all that a value holds, to see later whether somebody changed it."""
    if isinstance(value, dict):
        return {key: contents(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [contents(item) for item in value]
    if isinstance(value, np.ndarray):
        held = repr(value.tolist()) if value.dtype.hasobject else np.ma.getdata(value).tobytes()
        mask = np.ma.getmaskarray(value).tobytes() if isinstance(value, np.ma.MaskedArray) else b""
        return [value.shape, str(value.dtype), value.flags.writeable, _digest(held), mask]
    if hasattr(value, "nnz") and hasattr(value, "format"):
        parts = ("data", "indices", "indptr", "coords", "offsets", "rows")
        held = [contents(getattr(value, part)) for part in parts if hasattr(value, part)]
        return [value.format, value.shape, held or sorted(value.items())]
    if hasattr(value, "to_numpy") and hasattr(value, "columns"):
        return [list(map(str, value.columns)), contents(np.asarray(value.to_numpy()))]
    return repr(value) if isinstance(value, str | int | float | None) else None


def unchanged(before: Any, value: Any) -> None:
    require(repr(before) == repr(contents(value)), "an input was modified")


def _digest(held: str | bytes) -> str:
    return hashlib.sha256(held.encode() if isinstance(held, str) else held).hexdigest()

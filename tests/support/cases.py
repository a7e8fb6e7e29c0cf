"""Many cases inside one test: every case runs, and all failures are reported by name.

A parametrized test makes one item per case, and an item costs more than most cases do. ``each``
takes the place of ``pytest.mark.parametrize`` where there are many cheap cases::

    @each("n", [1, 2, 50])
    @each("dtype", [np.float32, np.float64])
    def test_sum(n, dtype): ...

is one item of six cases. Fixtures are made once for all cases. Every case gets its own copy of an
array, a list, a dictionary or a generator, its own folder below ``tmp_path``, a ``monkeypatch``
that is undone after it, and an empty ``capsys``.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import itertools
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

SHOWN = 5  # failures with a traceback; of the others only the names are reported


class Cases:
    """Runs cases one after the other; :meth:`finish` raises what failed as one group."""

    def __init__(self) -> None:
        self.count = 0
        self.failures: list[tuple[str, Exception]] = []
        self.skipped: list[str] = []

    def run(self, name: str, case: Callable[[], object]) -> None:
        self.count += 1
        try:
            case()
        except (pytest.skip.Exception, unittest.SkipTest) as reason:
            self.skipped.append(f"{name}: {reason}")
        except pytest.fail.Exception as failure:  # of pytest.raises; not a subclass of Exception
            error = AssertionError(str(failure)).with_traceback(failure.__traceback__)
            self.failures.append((name, error))
        except Exception as error:
            self.failures.append((name, error))

    def finish(self) -> None:
        """Raise the failures, or skip the test if every case was skipped."""
        assert self.count, "there are no cases"
        if self.failures:
            names = [name for name, _ in self.failures]
            for name, error in self.failures:
                error.add_note(f"in case {name}")
            title = f"{len(names)} of {self.count} cases failed: {'; '.join(names)}"
            raise ExceptionGroup(title, [error for _, error in self.failures[:SHOWN]])
        if len(self.skipped) == self.count:
            pytest.skip("; ".join(dict.fromkeys(self.skipped)))


def each(
    names: str | Sequence[str],
    cases: Iterable[Any],
    ids: Sequence[str] | Callable[[Any], object] | None = None,
) -> Callable[[Callable], Callable]:
    """Loop over ``cases`` inside the test; the arguments are those of ``parametrize``.

    Several decorators give all combinations, the lowest one varying slowest.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_case(names, case, ids, place) for place, case in enumerate(cases)]

    def decorate(test: Callable) -> Callable:
        assert not hasattr(test, "hypothesis"), "hypothesis drives its tests itself: parametrize"
        body = getattr(test, "loop_body", test)
        loops = [*getattr(test, "loops", []), rows]

        @functools.wraps(test)
        def looped(**fixtures: Any) -> None:
            results = Cases()
            for place, combination in enumerate(itertools.product(*loops)):
                given = {k: v for _, values in combination for k, v in values.items()}
                label = ", ".join(label for label, _ in combination)
                with _separate(fixtures, place) as own:
                    results.run(label, functools.partial(body, **own, **given))
            results.finish()

        looped.loop_body, looped.loops = body, loops
        signature = inspect.signature(test)
        looped.__signature__ = signature.replace(
            parameters=[p for p in signature.parameters.values() if p.name not in names]
        )
        assert len(looped.__signature__.parameters) == len(signature.parameters) - len(names)
        return looped

    return decorate


@contextlib.contextmanager
def _separate(fixtures: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """The fixtures as one case gets them, so that no case changes what another one sees."""
    own = dict(fixtures)
    for name, value in fixtures.items():
        if isinstance(value, np.ndarray | np.random.Generator | dict | list):
            own[name] = copy.deepcopy(value)
        elif isinstance(value, pytest.CaptureFixture):
            value.readouterr()
    if "tmp_path" in own:
        own["tmp_path"] /= f"case{place}"
        own["tmp_path"].mkdir()
    if "monkeypatch" in own:
        with pytest.MonkeyPatch.context() as own["monkeypatch"]:
            yield own
    else:
        yield own


def _case(names: list[str], case: Any, ids: Any, place: int) -> tuple[str, dict[str, Any]]:
    label = None
    if hasattr(case, "marks"):  # made by pytest.param
        assert not case.marks, "marks belong to parametrize"
        label = case.id
        case = case.values if len(names) > 1 else case.values[0]
    values = dict(zip(names, case if len(names) > 1 else [case], strict=True))
    if label is None and callable(ids):
        label = ", ".join(str(ids(value)) for value in values.values())
    elif label is None and ids is not None:
        label = str(list(ids)[place])
    if label is None:
        label = ", ".join(f"{name}={_short(value)}" for name, value in values.items())
    return label, values


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

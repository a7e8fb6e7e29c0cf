"""What one call of ``fit`` or ``transform`` carries through the engines."""

from __future__ import annotations

import numbers
import threading
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import ParameterError, shown
from lowland._base.memory import SMALL, available_memory
from lowland._base.monitor import Monitor

# What a fitted estimator computes once for all later calls, such as an index of its rows.
#
# It is not part of the model: it is neither saved, pickled, copied nor compared, and it can always
# be computed again from the fitted attributes, with the same bytes.


LOOKED_AT = 512  # rows of an array that tell whether it was changed in place
LOOKED_BYTES = 2**16  # of wide arrays fewer rows, because every call looks at them
FEWEST = 32
SHARE = 4  # what is kept may take one part in so many of the memory that is left


class Prepared:
    """Results by name; each belongs to the arrays and options that it was computed from.

    A result is computed again when an array is another one or was changed. Several threads may ask
    at once: one computes, the others wait.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._results: dict[str, tuple[tuple[Any, ...], Any, Any, Any]] = {}
        self._nbytes = 0  # of all results when they were last looked at

    def get(
        self, name: str, sources: tuple[Any, ...], options: Any, make: Callable[[], Any]
    ) -> Any:
        """The result ``name`` of these arrays and options; ``make`` computes it."""
        with self._lock:
            marks = tuple(_mark(source) for source in sources)
            known = self._results.get(name)
            if known is not None:
                arrays, old_marks, old_options, result = known
                same = all(a is b for a, b in zip(arrays, sources, strict=True))
                if same and old_marks == marks and old_options == options:
                    return result
            self._results.pop(name, None)  # before another one takes its memory
            result = make()
            self._results[name] = sources, marks, options, result
            return result

    def trim(self) -> None:
        """Drop results that take more than a fair share of the memory that is left."""
        with self._lock:
            kept = sum(int(getattr(entry[3], "nbytes", 0)) for entry in self._results.values())
            grown, self._nbytes = kept > self._nbytes, kept  # to ask the system takes a while
            if grown and kept > SMALL and kept > available_memory() // SHARE:
                self._results.clear()


def _mark(array: Any) -> int:
    """A checksum of some rows: it changes if an array is shifted, scaled or turned in place."""
    if not isinstance(array, np.ndarray) or not array.size:
        return 0
    rows = min(LOOKED_AT, max(FEWEST, LOOKED_BYTES * len(array) // array.nbytes))
    return zlib.crc32(array[:: max(1, len(array) // rows)].tobytes())


class SharedWork:
    """Intermediate results of a fit for the caller who asked for them (``Estimator.sharing``).

    Attributes
    ----------
    graph : NeighborGraph or None
        Neighbors of all fitted rows, in the columns and the metric that the method was given.
    """

    graph: Any = None


class FitContext(NamedTuple):
    """Random generator, number of threads, progress monitor and shared results of one call."""

    rng: np.random.Generator
    threads: int
    monitor: Monitor
    shared: SharedWork | None = None  # if the caller asked for it
    kept: Prepared | None = None  # what the estimator keeps between calls

    def some_rows(self, n: int, m: int) -> Any:
        """The numbers of m random rows of n, ascending; a slice of all if m is not less."""
        return np.sort(self.rng.choice(n, m, replace=False)) if m < n else slice(None)

    def prepared(
        self, name: str, sources: tuple[Any, ...], options: Any, make: Callable[[], Any]
    ) -> Any:
        """What ``make`` computes from these arrays and options, or the estimator has from before.

        ``name`` identifies it; each estimator keeps one result of a name.
        """
        if self.kept is None:
            return make()
        return self.kept.get(name, sources, options, make)


# One way to turn a seed into a random generator; numpy's global state is never touched.


def generator(
    seed: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    """The ``Generator`` that ``seed`` stands for.

    ``None`` draws fresh entropy from the operating system, an integer always gives the same
    stream, a ``Generator`` is used as it is (its stream moves on), and a ``RandomState`` is asked
    for 128 bits, so that it moves on too and two calls give two different streams.

    >>> generator(0).random() == generator(0).random()
    True
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(0, 2**32, size=4, dtype=np.uint32))
    if seed is None:
        return np.random.default_rng()
    # bool is an Integral, but random_state=True is a mistake, not a seed
    if isinstance(seed, numbers.Integral) and not isinstance(seed, bool) and seed >= 0:
        return np.random.default_rng(int(seed))
    raise ParameterError(
        f"random_state={shown(seed)} is not allowed; "
        "give None, an integer >= 0, a numpy Generator or RandomState."
    )

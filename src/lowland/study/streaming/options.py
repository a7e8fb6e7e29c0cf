"""Options about how the rows of a table are gone through: in memory, leaf by leaf, on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np

from lowland._core.errors import ParameterError
from lowland._core.wording import PYTHON, Spelling, shown

ENGINES = ("auto", "memory", "stream", "dask")
MOST = 2**63  # rows


@dataclasses.dataclass(frozen=True)
class StreamOptions:
    """How rows are gone through.

    Parameters
    ----------
    engine : {"auto", "memory", "stream", "dask"}, default="auto"
        "memory" reads the whole table. "stream" reads it leaf by leaf, and "dask" lets workers do
        so. "auto" is "memory" if the table and the fit fit in memory, else "stream".
    scheduler : str, optional
        For "dask": the address of a scheduler, such as "tcp://host:8786", or "local:4" for four
        processes on this machine.
    sample : int, optional
        Rows that a method is fitted to, where rows are read leaf by leaf; by default all rows, or
        as many as a method takes that needs its rows in memory.
    resume : bool, default=False
        Whether to go on with a run that was stopped.
    refine : int, optional
        Steps that move all rows after they are placed.
    """

    engine: str = "auto"
    scheduler: str | None = None
    sample: int | None = None
    resume: bool = False
    refine: int | None = None
    spelling: Spelling = PYTHON

    def __post_init__(self) -> None:
        say = self.spelling.option
        if self.engine not in ENGINES:
            raise ParameterError(
                f"{say('engine')}: {shown(self.engine)} is not allowed; expected "
                f"{', '.join(ENGINES)}."
            )
        for name in ("sample", "refine"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if value is not None and not (whole and 1 <= value < MOST):
                raise ParameterError(
                    f"{say(name)}: {shown(value)} is not allowed; expected an integer >= 1."
                )
            if value is not None and self.engine == "memory":
                raise ParameterError(
                    f"{say(name)}: is for rows that are read leaf by leaf; leave it out, or "
                    f"{say('engine', 'memory')}."
                )
        if self.resume and self.engine == "memory":
            raise ParameterError(
                f"{say('resume')}: is for rows that are read leaf by leaf; leave it out, or "
                f"{say('engine', 'memory')}."
            )
        if self.scheduler is not None and self.engine != "dask":
            raise ParameterError(
                f"{say('scheduler')}: is for {say('engine', 'dask')}; leave it out, or choose that "
                "engine."
            )
        if self.engine == "dask" and not self.scheduler:
            raise ParameterError(
                f"{say('engine', 'dask')} needs a scheduler: {say('scheduler', 'local:4')} starts "
                f"four processes here, {say('scheduler', 'tcp://HOST:8786')} uses a cluster."
            )

    @property
    def asked(self) -> bool:
        """Whether the user asked for rows to be read leaf by leaf."""
        return self.engine in ("stream", "dask") or self.sample is not None

    @property
    def streamed_by(self) -> str:
        """The engine that goes through rows leaf by leaf."""
        return "dask" if self.engine == "dask" else "stream"

    def running(self) -> contextlib.AbstractContextManager[Any]:
        """The engine, for a ``with`` block around everything that goes through rows."""
        if self.engine != "dask":
            return contextlib.nullcontext()
        try:
            from lowland.distributed import Dask  # type: ignore[attr-defined, unused-ignore]
        except ImportError as error:
            raise ParameterError(
                f"{self.spelling.option('engine', 'dask')}: distributed is not installed; "
                "pip install 'lowland[dask]'."
            ) from error
        return Dask(self.scheduler)


def grouped(number: int) -> str:
    """A number of rows for people.

    >>> grouped(950), grouped(10_000_000)
    ('950', '10 000 000')
    """
    return f"{number:,}".replace(",", " ") if number >= 10_000 else str(number)

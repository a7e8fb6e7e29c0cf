"""The command line: it parses options and prints; :mod:`lowland.workflow` does the work.

Numpy, polars and matplotlib are imported by the commands that need them, so that ``lowland --help``
answers at once.
"""

from __future__ import annotations

from lowland._base.interrupts import Ended, Signals, farewell

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the program and return its exit code.

    0 done, 1 stopped early with a partial result written, 2 bad input, 3 a defect, 130 Ctrl-C and
    143 SIGTERM before there was anything to keep, 141 the reader of the output has closed it.

    Without ``argv`` the arguments are those of the process, which ends afterwards.
    """
    with Signals(final=argv is None):
        try:
            from lowland.cli.app import run  # slow, and therefore not before signals are handled

            return run(argv)
        except Ended as error:
            return farewell(error)

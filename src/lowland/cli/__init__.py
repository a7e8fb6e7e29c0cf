"""The command line: it parses options and prints; :mod:`lowland.study` does the work.

Numpy, polars and matplotlib are imported by the commands that need them, so that ``lowland --help``
answers at once.
"""

from lowland.cli.app import main

__all__ = ["main"]

"""The command line: ``lowland map``, ``lowland transform``, ``lowland methods``.

Nothing here imports numpy, polars or matplotlib until a command needs it, so that ``lowland
--help`` answers at once.
"""

from lowland.cli.app import main

__all__ = ["main"]

"""How messages name an option: as a keyword of Python or as an option of the command line."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMMAND_LINE", "PYTHON", "Spelling"]

# Keywords that have another name on the command line.
OPTION_NAMES = {"id_column": "id", "labels": "label", "n_jobs": "jobs"}


class Spelling(NamedTuple):
    """The way in which the user wrote the options of a run."""

    command_line: bool

    def option(self, name: str, value: str | None = None) -> str:
        """``missing='mean'`` in Python, ``--missing mean`` on the command line."""
        if not self.command_line:
            return name if value is None else f"{name}={value!r}"
        option = "--" + OPTION_NAMES.get(name, name).replace("_", "-")
        return option if value is None else f"{option} {value}"


PYTHON = Spelling(command_line=False)
COMMAND_LINE = Spelling(command_line=True)

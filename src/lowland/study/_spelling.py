"""How messages name an option: as a keyword of Python or as an option of the command line."""

from __future__ import annotations

from lowland._core.wording import COMMAND_LINE, PYTHON, Spelling

__all__ = ["COMMAND_LINE", "PYTHON", "Spelling"]

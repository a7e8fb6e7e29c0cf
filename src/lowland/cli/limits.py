"""What the libraries cannot work with: limits of the process, and the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lowland._core.errors import MemoryLimitError
from lowland._core.memory import format_bytes, left_for_process

# Address space of a run on two cores: 1.7 GB, measured. Each thread has a stack and an arena.
LIBRARIES, LIBRARIES_PER_CORE = 1_500_000_000, 150_000_000


def check_limits(arguments: Sequence[str]) -> None:
    """Refuse a limit (``ulimit -v``) so low that the libraries could not even be loaded.

    They end the process where they cannot get memory, without an error that could be reported. An
    instruction set that the processor lacks is refused before anything is read, too.
    """
    if {"--help", "--version"} & {*arguments} or arguments[:1] in ([], ["methods"]):
        return
    need = LIBRARIES + LIBRARIES_PER_CORE * (os.cpu_count() or 1)
    left = left_for_process().get("RLIMIT_AS", need)
    if left < need:
        raise MemoryLimitError(
            f"the limit of memory leaves {format_bytes(left)} to the process, and the libraries "
            f"need {format_bytes(need)} of address space; raise it with 'ulimit -v'."
        )
    from lowland._core.threads import check_instruction_set

    check_instruction_set()

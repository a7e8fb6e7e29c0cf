"""Fresh interpreters, and the processor time that they take."""

from __future__ import annotations

import os
import subprocess
import sys


def cpu_seconds(*arguments: str, enough: float = 0.0, tries: int = 7) -> float:
    """The least processor time of several runs of Python with these arguments.

    Processor time does not depend on what else the machine does, as elapsed time would; the least
    of several runs leaves out cold caches. Stops early once a run takes no more than ``enough``.
    """
    best = float("inf")
    for _ in range(tries):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        user = after.children_user - before.children_user
        best = min(best, user + after.children_system - before.children_system)
        if best <= enough:
            break
    return best

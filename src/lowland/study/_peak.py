"""Peak memory of a piece of work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


class Peak:
    """Bytes above the memory in use at the start; None where the system does not report them."""

    n_bytes: int | None = None


@contextlib.contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure the peak memory of the block.

    Linux keeps the high-water mark of a process, and writing 5 to ``clear_refs`` resets it.
    """
    peak = Peak()
    before = None
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
    yield peak
    after = _status("VmHWM")
    if before is not None and after is not None:
        peak.n_bytes = max(0, after - before)


def _status(name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None

"""How objects travel to workers: as bytes in a task, or as a file that a task reads.

What is scattered to a worker is lost when that worker dies. What a *task* loads is loaded again.
The key of a task contains a digest of everything that its result depends on, so that two runs
never share a result that differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

import lowland
from lowland._core.rows.engines import Job
from lowland._core.rows.leaves import Task
from lowland.distributed.cluster.remote import Stored

INLINE = 1_000_000  # bytes in a task, at most: all of them pass through the scheduler


def digest(*parts: bytes | str) -> str:
    """A name for these bytes, in this version of lowland."""
    found = hashlib.sha256(lowland.__version__.encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()[:32]


def task_digest(shared: str, packed: bytes, task: Task) -> str:
    """A name for the work on one task: work and steps, its rows, and what identifies their files.

    The bytes alone would not do: leaves of a file tell its size and time in ``identity`` only.
    """
    identity = json.dumps([leaf.identity for leaf in task.leaves], default=str)
    return digest(shared, packed, identity)


class Shipping:
    """Packs objects; those above ``INLINE`` bytes go through files in ``scratch``, if there is one.

    The files are removed with :meth:`discard` and :meth:`close`.
    """

    def __init__(self, scratch: Path | None) -> None:
        self.scratch = scratch
        self.written: set[Path] = set()

    def pack(self, value: Any) -> tuple[bytes | Stored, bytes]:
        """What a task gets in place of the object, and its bytes for a digest."""
        from distributed.protocol.pickle import dumps  # by value what is defined in a script

        data = dumps(value)
        if len(data) <= INLINE or self.scratch is None:
            return data, data
        path = self.scratch / f"lowland-{digest(data)}-{uuid.uuid4().hex[:8]}.pickle"
        unfinished = path.with_suffix(".part")
        self.written |= {path, unfinished}
        unfinished.write_bytes(data)
        os.replace(unfinished, path)
        return Stored(str(path)), data

    def pack_job(self, job: Job) -> tuple[bytes | Stored, str]:
        """Work and steps of a job, and their digest."""
        packed, data = self.pack((job.work, job.steps))
        return packed, digest(data)

    def discard(self, packed: bytes | Stored) -> None:
        """Remove the file of an object that no task needs any more."""
        if isinstance(packed, Stored):
            Path(packed.path).unlink(missing_ok=True)
            self.written.discard(Path(packed.path))

    def close(self) -> None:
        """Remove all files that are left."""
        for path in self.written:
            path.unlink(missing_ok=True)
        self.written.clear()

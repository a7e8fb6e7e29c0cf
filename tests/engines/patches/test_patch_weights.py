"""Chunks of local problems, distributed over threads."""

from __future__ import annotations

import numpy as np

from lowland._base.monitor import Monitor
from lowland._engines.patches.patch_weights import in_chunks
from support.cases import each


@each("threads", [1, 2, 5])
def test_threads_ignore_what_their_caller_ignores(threads):
    """What numpy does about overflow does not follow into threads by itself."""

    def work(piece):
        return np.full(piece.stop - piece.start, 1e300) * 1e300

    with np.errstate(over="ignore"), Monitor("test") as monitor:
        found = in_chunks(work, 40, 10**6, threads, monitor, "rows")
    assert len(found) > 1
    assert np.isinf(np.concatenate(found)).all()

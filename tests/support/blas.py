"""One thread of BLAS for tests that compare numbers with numpy's own."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest

from lowland._base.threads import limit_blas

# What may differ with the number of threads is tested with all of them, here and in the contract.
ABOUT_THREADS = re.compile("thread|n_jobs|byte|_bit|seed|alone|at_once")


@pytest.fixture(autouse=True)
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """The formulas of a test call LAPACK with small matrices, on which two threads of BLAS wait for
    each other most of the time; workers that share the cores make it ten times longer."""
    own = ABOUT_THREADS.search(request.node.name)
    with contextlib.nullcontext() if own else limit_blas(1):
        yield

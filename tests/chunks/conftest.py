"""One cluster of 4 worker processes for all tests that want one: starting it takes seconds."""

from __future__ import annotations

import logging

import pytest

from lowland.chunks.connection import KEEP


@pytest.fixture(scope="session")
def cluster():
    """A real cluster; workers that are killed are started again by their nannies."""
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set(KEEP),
        distributed.LocalCluster(
            n_workers=4,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            memory_limit=0,
        ) as processes,
        distributed.Client(processes, set_as_default=False) as client,
    ):
        yield client

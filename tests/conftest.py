"""Data that several suites share, and how BLAS waits while they run."""

import os

import hypothesis
import pytest

# A thread of OpenBLAS without work burns a core for some milliseconds before it sleeps; with as
# many workers as cores, small tables took most of their time so. OpenBLAS reads this when numpy is
# imported; workers and started programs inherit it. No result depends on it.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # it sleeps after 2^4 cycles

import numpy as np

# A deadline would measure the machine; examples drawn anew in every run would hide what changed.
hypothesis.settings.register_profile("lowland", deadline=None, derandomize=True)
hypothesis.settings.load_profile("lowland")


@pytest.fixture
def irregular():
    """A function (n, p, seed) -> table: skewed, correlated, off center, all variances distinct."""

    def make(n, p, seed=0):
        rng = np.random.default_rng(seed)
        spread = (1.0 + np.arange(p)) ** -0.7
        turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
        scores = rng.gamma(2.0, size=(n, p)) * spread
        return scores @ turn + 3 * rng.standard_normal(p)

    return make

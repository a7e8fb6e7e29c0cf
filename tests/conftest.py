"""Data that several suites share."""

import hypothesis
import numpy as np
import pytest

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

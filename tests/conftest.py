"""Parts of the suite, data that several suites share, and how BLAS waits while they run."""

import functools
import os
import random
import signal
import zlib
from types import ModuleType

import hypothesis
import pytest

# A thread of OpenBLAS without work burns a core for some milliseconds before it sleeps; with as
# many workers as cores, small tables took most of their time so. OpenBLAS reads this when numpy is
# imported; workers and started programs inherit it. No result depends on it.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # it sleeps after 2^4 cycles

import numpy as np
import numpy.random.bit_generator as entropy

from support.budget import Budget

# A deadline would measure the machine; examples drawn anew in every run would hide what changed.
hypothesis.settings.register_profile("lowland", deadline=None, derandomize=True)
hypothesis.settings.load_profile("lowland")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", metavar="K/N", help="only part K (0 to N - 1) of N equal parts of the tests"
    )
    parser.addoption(
        "--budget", choices=["check", "write"], help="processor time against tests/budget.toml"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Budget(config))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What is drawn without a seed is another number in each call, and the same in each run: a test
    that fails once in a hundred runs would fail for somebody else. A generator that the tests of a
    module share begins anew, because workers run these tests in any order."""
    entropy.randbits = random.Random(item.nodeid).getrandbits
    for generator, state in _shared_generators(getattr(item, "module", None)):
        generator.bit_generator.state = state


@functools.cache
def _shared_generators(module: ModuleType | None) -> list[tuple[np.random.Generator, dict]]:
    """The generators of a module, with their states before its first test."""
    found = [
        v for v in getattr(module, "__dict__", {}).values() if isinstance(v, np.random.Generator)
    ]
    return [(generator, generator.bit_generator.state) for generator in found]


@pytest.fixture(scope="session", autouse=True)
def _interrupts():
    """Ctrl-C works in tests and what they start, also where the parent ignores it (nohup)."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


COSTLY = {"browser", "cluster"}  # fixtures; tests that use one are slow unless marked "smoke"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, and keep one part: by its name, so that a test stays in its part."""
    for item in items:
        if COSTLY & set(getattr(item, "fixturenames", ())) and not item.get_closest_marker("smoke"):
            item.add_marker(pytest.mark.slow)
    part = config.getoption("--part")
    if not part:
        return
    number, count = map(int, part.split("/"))
    if not 0 <= number < count:
        raise pytest.UsageError(f"--part {part}: the parts of {count} are 0 to {count - 1}")
    chosen = [item for item in items if zlib.crc32(item.nodeid.encode()) % count == number]
    config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
    items[:] = chosen


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

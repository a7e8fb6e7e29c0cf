"""What every kernel is tried with: each instruction set of this machine, both float types."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from lowland import _native
from support.cases import Cases


@pytest.fixture(params=_native.instruction_sets())
def isa(request):
    return request.param


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def run_apart():
    """Run statements in a process of their own, so that a crash fails one test, not the run."""

    def run(code):
        head = "import numpy as np\nfrom lowland import _native\n"
        done = subprocess.run(
            [sys.executable, "-c", head + code], capture_output=True, text=True, timeout=60
        )
        assert done.returncode in (0, 1), f"died with {done.returncode}: {done.stderr}"
        return done.stderr.strip().rsplit("\n", 1)[-1] if done.returncode else done.stdout.strip()

    return run


def _bytes_of(found):
    parts = found if isinstance(found, list | tuple) else [found]
    return [np.asarray(part).tobytes() for part in parts]


@pytest.fixture(scope="session")
def same_for_threads():
    """A check that ``call(threads)`` gives the same bytes for any number of threads."""

    def check(call, others=(2, 3)):
        alone = _bytes_of(call(1))
        for threads in others:
            assert _bytes_of(call(threads)) == alone

    return check


@pytest.fixture(scope="session")
def same_alone():
    """A check that ``call(rows)`` gives a row alone the bytes that it has among all rows."""

    def check(call, places):
        together = call(slice(None))
        for i in places:
            assert _bytes_of(call(slice(i, i + 1))) == _bytes_of([part[i] for part in together])

    return check


@pytest.fixture(scope="session")
def refuses():
    """A check that a kernel takes the arguments ``good``, and none of their ``changes``."""

    def check(kernel, good, changes):
        kernel(**good)
        cases = Cases()
        for name, bad, message in changes:
            cases.run(f"{name}={bad!r}", partial(refused, kernel, {**good, name: bad}, message))
        cases.finish()

    def refused(kernel, arguments, message):
        with pytest.raises(ValueError, match=message):
            kernel(**arguments)

    return check


GAUSSIAN = "gaussian"
SUMMED_IN_T = 128  # terms the repulsion kernels add in the type of the map before they use double


@pytest.fixture(scope="session")
def similarity():
    """K and G of squared distances, and how much a relative error of r^2 can grow in them."""

    def of(r2, decay):
        if decay == GAUSSIAN:
            K = np.exp(-r2)
            return K, K, 1 + 2 * r2
        logarithm = np.log1p(r2 / decay)
        K, base = np.exp(-decay * logarithm), 1 + r2 / decay
        return K, K / base, 2 + r2 / base + (decay + 1) * logarithm

    return of


@pytest.fixture(scope="session")
def exact_repulsion(similarity):
    """A function (Y_new, Y, decay, weights, exclude_self) -> sums over pairs, bounds of rounding.

    Both are a potential and forces; the bounds hold for sums in the type of Y.
    """

    def sums(Y_new, Y, decay, weights=None, exclude_self=False):
        unit, tiny = np.finfo(Y.dtype).eps / 2, np.finfo(Y.dtype).tiny * len(Y)
        wider = np.float64 if Y.dtype == np.float32 else np.longdouble
        Y_new, Y = Y_new.astype(wider), Y.astype(wider)
        r2 = sum(np.subtract.outer(Y_new[:, k], Y[:, k]) ** 2 for k in range(Y.shape[1]))
        K, G, growth = similarity(r2, decay)
        K, G = K.copy(), G.copy()
        if exclude_self:
            np.fill_diagonal(K, 0)
            np.fill_diagonal(G, 0)
        if weights is not None:
            G *= weights[:, None].astype(wider) + weights
        # of the coordinates of r^2, of K and G as far as r^2 reaches them, of the sum
        rounding = unit * (SUMMED_IN_T + (Y.shape[1] + 10) * growth)
        forces, slack = np.empty_like(Y_new), np.empty_like(Y_new)
        for k in range(Y.shape[1]):
            gap = np.subtract.outer(Y_new[:, k], Y[:, k])
            term = G * gap
            forces[:, k] = term.sum(axis=1)
            slack[:, k] = (np.abs(term) * rounding).sum(axis=1) + tiny * np.abs(gap).max(initial=1)
        return (K.sum(axis=1), forces), ((K * rounding).sum(axis=1) + tiny, slack)

    return sums

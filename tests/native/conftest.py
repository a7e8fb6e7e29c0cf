"""What every kernel is tried with: each instruction set of this machine, both float types."""

import subprocess
import sys

import numpy as np
import pytest

from lowland import _native


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

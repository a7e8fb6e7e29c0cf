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

"""``LOWLAND_INSTRUCTION_SET``: which kernels a process takes where nobody names a set."""

import os
import subprocess
import sys

import pytest

from lowland import _native
from lowland._base import threads
from lowland.errors import ParameterError
from support.cases import each

VARIABLE = "LOWLAND_INSTRUCTION_SET"
BEST = _native.instruction_sets()[-1]

# FMA rounds once where a product and a sum round twice, so sums of products tell the sets apart.
INNER = """
import sys
import numpy as np
from lowland import _native
X, zero = np.random.default_rng(0).standard_normal((300, 7)), np.zeros((300, 7))
out = np.empty((7, 7))
_native.inner(X, zero, X, zero, False, out, 1, *sys.argv[1:])
print(out.tobytes().hex())
"""
FIT = "import numpy as np; from lowland import PCA; PCA().fit(np.eye(5)); print('done')"


def run(value, *arguments):
    """Run Python with the variable set to ``value``, or without it."""
    environment = {name: text for name, text in os.environ.items() if name != VARIABLE}
    if value is not None:
        environment[VARIABLE] = value
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def inner(value, *isa):
    done = run(value, "-c", INNER, *isa)
    assert done.returncode == 0, done.stderr
    return done.stdout


@each(
    ("value", "taken"),
    [(None, BEST), ("", BEST), ("auto", BEST), ("baseline", "baseline"), (BEST, BEST)],
)
def test_kernels_take_the_set_that_the_variable_names(value, taken):
    assert inner(value) == inner(None, taken)


@pytest.mark.skipif(BEST == "baseline", reason="needs a second set")
def test_the_sets_differ_here_and_a_caller_who_names_one_gets_it():
    assert inner("baseline") != inner("baseline", BEST) == inner(BEST)


def test_it_is_read_once(monkeypatch):
    taken = _native.instruction_set()
    for value in ("baseline", BEST, "nonsense"):
        monkeypatch.setenv(VARIABLE, value)
        assert _native.instruction_set() == taken


@each("value", ["AVX2", "avx512", "avx2 ", "sse\nline", "0"])
def test_a_name_of_no_set_is_refused_at_the_door(value):
    done = run(value, "-c", FIT)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "ParameterError: environment variable LOWLAND_INSTRUCTION_SET=" in last
    assert repr(value) in last
    assert all(repr(name) in last for name in ("auto", *_native.instruction_sets()))


@pytest.mark.skipif(os.name == "nt", reason="environments of Windows are text")
def test_bytes_that_are_no_text_are_refused_alike():
    done = run(os.fsdecode(b"\xff\xfe"), "-c", FIT)
    assert "ParameterError: environment variable LOWLAND_INSTRUCTION_SET=" in done.stderr


def test_a_command_ends_in_one_line_and_importing_does_nothing():
    done = run("avx3", "-m", "lowland", "map", "iris", "-o", "never")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "LOWLAND_INSTRUCTION_SET='avx3' is not allowed" in line
    assert run("avx3", "-m", "lowland", "--help").returncode == 0
    assert run("avx3", "-c", "import lowland, lowland.metrics").returncode == 0


def test_a_set_that_the_processor_lacks_is_refused(monkeypatch):
    class Old:
        """A processor without AVX2, as the kernels see it."""

        @staticmethod
        def instruction_set():
            raise ValueError

        @staticmethod
        def instruction_sets():
            return ["baseline"]

    monkeypatch.setattr(threads, "_native", Old)
    monkeypatch.setenv(VARIABLE, "avx2")
    with pytest.raises(ParameterError, match=r"'avx2' .*processor .*'auto', 'baseline'\.$"):
        threads.resolve_n_jobs(1)

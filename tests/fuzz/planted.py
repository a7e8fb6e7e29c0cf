"""Cases that break a rule on purpose, to see that the fuzzer notices."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from fuzz.rules import attempt, contents, same_bytes, unchanged


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _foreign_exception() -> None:
    attempt(lambda: {}["x"])


def _warning() -> None:
    attempt(lambda: warnings.warn("overflow", RuntimeWarning, stacklevel=1))


def _modified_input() -> None:
    X = np.zeros(3)
    before = contents(X)
    X[1] = -0.0
    unchanged(before, X)


def _last_bit() -> None:
    same_bytes(np.ones(2), np.nextafter(np.ones(2), 2), "two results")


def _memory() -> None:
    np.ones(2 << 30)  # 16 GB


def _stderr() -> None:
    os.write(2, b"thread '<unnamed>' panicked")


def _hang() -> None:
    time.sleep(1000)


def _slow() -> None:
    while True:
        pass


PLANTED: dict[str, Callable[[], None]] = {
    "crash": _crash,
    "exit": lambda: sys.exit(3),
    "end": lambda: os._exit(3),
    "foreign": _foreign_exception,
    "warning": _warning,
    "modified": _modified_input,
    "bit": _last_bit,
    "memory": _memory,
    "stderr": _stderr,
    "hang": _hang,
    "slow": _slow,
}

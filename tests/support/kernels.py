"""What every kernel is tried with: each instruction set of this machine, both float types."""

from __future__ import annotations

import numpy as np

from lowland import _native
from support.cases import each

each_isa = each("isa", _native.instruction_sets())
each_dtype = each("dtype", [np.float32, np.float64])


def each_kind(test):
    """Both float types with each instruction set."""
    return each_dtype(each_isa(test))

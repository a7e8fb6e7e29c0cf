"""The kinds of a kernel that a test tries: both float types with each instruction set."""

from support.kernels import each_dtype, each_isa

__all__ = ["each_kind"]


def each_kind(test):
    return each_dtype(each_isa(test))

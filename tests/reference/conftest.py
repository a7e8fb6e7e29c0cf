"""Shared by the tests against formulas and peers."""

from support.blas import one_thread

__all__ = ["one_thread"]

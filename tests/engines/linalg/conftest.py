"""Shared by the tests against numpy's full solutions."""

from support.blas import one_thread

__all__ = ["one_thread"]

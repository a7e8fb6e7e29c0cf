"""Compiled kernels: plain arrays and scalars in, results in arrays the caller allocated.

Every kernel takes ``threads`` (its result does not depend on it) and ``isa`` ("auto", or one of
``instruction_sets()``), works for float32 and float64. In the tests each
stands beside its numpy definition.

- ``all_finite(x)``: no NaN, no infinity.
- ``scatter(x, shift, sums, out)``: column sums of ``y = x - shift`` and the upper triangle of
  ``y.T @ y``; exact zeros of y are passed over.
- ``inner(a, shift_a, b, shift_b, symmetric, out)``: ``(a - shift_a).T @ (b - shift_b)``.
- ``project(x, shift, v, out)``: ``(x - shift) @ v``, each row as if it came alone.
- ``sparse_times(starts, columns, values, v, offset, out)``: ``x @ v - offset`` for CSR x, likewise.
  Column numbers are trusted: pass only what scipy has checked.
"""

from lowland._native.kernels import (
    all_finite,
    count_nested,
    inner,
    instruction_sets,
    project,
    scatter,
    sparse_times,
)

__all__ = [
    "all_finite",
    "count_nested",
    "inner",
    "instruction_sets",
    "project",
    "scatter",
    "sparse_times",
]

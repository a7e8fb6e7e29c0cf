"""What the solvers of :mod:`.eigen` cost, for the estimates of methods.

Seconds on two cores of about 3 GHz; ``benchmarks/engine_costs.py`` compares them with measured
times. Iterations take a number of steps that depends on the spectrum: a usual one is assumed.
"""

from __future__ import annotations

from lowland._core.card import Estimate
from lowland._engines.linalg.dense_eigen import is_small

USUAL_BLOCKS = 6  # of vectors until block Lanczos has converged


def all_pairs_cost(order: int, stack: int = 1) -> Estimate:
    """Of ``all_eigenpairs`` of a matrix, or of a stack of matrices."""
    return Estimate(stack * (2e-10 * order**3 + 5e-8 * order**2 + 5e-6), 24 * stack * order**2)


def largest_pairs_cost(order: int, n_pairs: int) -> Estimate:
    """Of ``largest_eigenpairs`` of a dense matrix."""
    if is_small(order, n_pairs):
        return all_pairs_cost(order)
    return operator_pairs_cost(order, n_pairs, Estimate(2e-9 * order**2, 0))


def operator_pairs_cost(order: int, n_pairs: int, product: Estimate) -> Estimate:
    """Of ``largest_eigenpairs`` of an operator with this cost of a product with one block."""
    blocks = USUAL_BLOCKS + n_pairs / 4
    basis = 16 * blocks
    return blocks * product + Estimate(1e-9 * order * basis**2 + 1e-3, 16 * order * basis)


def smallest_pairs_cost(order: int, entries_per_row: float, n_pairs: int) -> Estimate:
    """Of ``smallest_eigenpairs`` of a sparse matrix, by factors or by a filter."""
    if is_small(order, n_pairs):
        return all_pairs_cost(order)
    solves = 1 + n_pairs / 8
    seconds = 8e-7 * order * entries_per_row * solves + 5e-10 * order**2
    height = 128 + 3 * order**0.5
    return Estimate(seconds, 16 * order * (entries_per_row + height + 4 * n_pairs))

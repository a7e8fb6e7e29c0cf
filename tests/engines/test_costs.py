"""Published costs are positive, grow with every size, and know the memory of what they return."""

import pytest

from lowland._base.traits import Estimate
from lowland._engines.kernels.kernel_operators import kernel_matrix_cost, kernel_product_cost
from lowland._engines.linalg.eigen import (
    all_pairs_cost,
    largest_pairs_cost,
    operator_pairs_cost,
)
from lowland._engines.linalg.moments import moments_cost
from lowland._engines.linalg.principal_axes import orthonormal_basis_cost, principal_axes_cost
from lowland._engines.linalg.products import gram_cost, times_cost
from lowland._engines.stress.classical_scaling import classical_scaling_cost
from lowland._engines.stress.majorization import majorization_cost

# the function, its sizes, and the bytes of its result
COSTS = [
    (times_cost, (1000, 20, 5), 8 * 1000 * 5),
    (gram_cost, (1000, 20), 8 * 1000**2),
    (moments_cost, (1000, 20), 8 * 20**2),
    (principal_axes_cost, (1000, 20, 2), 8 * 20 * 2),
    (principal_axes_cost, (1000, 4000, 2), 8 * 4000 * 2),
    (principal_axes_cost, (5000, 4000, 2), 8 * 4000 * 2),
    (orthonormal_basis_cost, (1000, 20), 8 * 1000 * 20),
    (all_pairs_cost, (200, 3), 3 * 8 * 200**2),
    (largest_pairs_cost, (1000, 5), 8 * 1000 * 5),
    (kernel_matrix_cost, (1000, 20), 8 * 1000**2),
    (kernel_product_cost, (1000, 20, 5), 8 * 1000 * 16),
    (classical_scaling_cost, (1000, 2), 8 * 1000 * 2),
    (majorization_cost, (1000, 2, 10), 8 * 1000 * 2),
]


@pytest.mark.parametrize(("cost", "sizes", "result"), COSTS)
def test_costs_grow_with_every_size(cost, sizes, result):
    here = cost(*sizes)
    assert here.seconds > 0
    assert here.n_bytes >= result
    for i in range(len(sizes)):
        more = cost(*(2 * size if i == j else size for j, size in enumerate(sizes)))
        assert more.seconds >= here.seconds
        assert more.n_bytes >= here.n_bytes
    assert cost(*(4 * size for size in sizes)).seconds > 2 * here.seconds


def test_the_cost_of_an_operator_is_that_of_its_products():
    cheap, expensive = (operator_pairs_cost(1000, 3, Estimate(t, 8e6)) for t in (0.01, 1.0))
    assert expensive.seconds - cheap.seconds >= 5 * 0.99
    assert cheap.n_bytes >= 8e6


def test_a_kernel_that_cannot_be_kept_is_computed_for_each_product():
    kept, large = kernel_product_cost(4000, 10, 10), kernel_product_cost(40_000, 10, 10)
    assert large.seconds > 200 * kept.seconds
    assert large.n_bytes < 4 * 40_000**2

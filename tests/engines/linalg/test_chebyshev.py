"""The filter against numpy's Chebyshev polynomials, eigenvalue by eigenvalue."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from lowland._engines.linalg.smallest_solvers import low_pass


@pytest.mark.parametrize("degree", [1, 2, 7, 20])
def test_eigenvalues_go_through_the_polynomial(degree):
    values = np.array([0.0, 0.01, 0.3, 0.31, 1.7, 4.0])
    a, b = 0.3, 4.0
    V = np.eye(6)
    found = np.diag(low_pass(lambda V: values[:, None] * V, degree, a, b)(V))
    expected = chebyshev.chebval((a + b - 2 * values) / (b - a), np.eye(degree + 1)[degree])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert (np.abs(found[2:]) <= 1 + 1e-9).all()
    assert found[0] > found[1] > 1
    np.testing.assert_array_equal(V, np.eye(6))

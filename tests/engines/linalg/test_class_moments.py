"""Sums of rows by class against their definition, also where a column tells nothing in a class."""

import numpy as np
import scipy.sparse

from lowland._base.monitor import Monitor
from lowland._engines.linalg.class_moments import class_moments
from support.cases import each


@each("kind", [np.asarray, scipy.sparse.csr_array])
@each("weights", [None, np.array([2.0, 0.5, 1.0])])
def test_scatter_within_classes_is_its_definition(irregular, kind, weights):
    X, codes = irregular(60, 5), np.arange(60) % 3
    X[np.median(X) > X] = 0
    X[:, 2] = np.array([0.1, 0.0, 0.7])[codes]  # constant in each class, and no sum of powers of 2
    found = class_moments(kind(X), codes, 3, 1, Monitor(), weights)
    means = np.array([X[codes == c].mean(axis=0) for c in range(3)])
    w = np.ones(3) if weights is None else weights
    centered = X - means[codes]
    scatter = (centered * w[codes][:, None]).T @ centered
    np.testing.assert_array_equal(found.counts, 20)
    np.testing.assert_allclose(found.means, means, atol=1e-12)
    np.testing.assert_allclose(found.scatter, scatter, atol=1e-10)
    assert not found.scatter[2].any()
    assert not found.scatter[:, 2].any()

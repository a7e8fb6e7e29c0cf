"""The layouts in which the same numbers may come."""

import numpy as np
import pytest
import scipy.sparse


def _odd_strides(X):
    """A field of records of 12 bytes: no stride is a multiple of the item size."""
    records = np.zeros(X.shape, dtype=[("value", X.dtype), ("flag", np.int32)])
    records["value"] = X
    return records["value"]


def _shifted_bytes(X):
    """The same numbers, starting at an odd address."""
    raw = np.zeros(X.nbytes + 1, np.uint8)[1:]
    view = raw.view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


DENSE_LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "part of a wider table": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "field of records": _odd_strides,
    "odd address": _shifted_bytes,
}


@pytest.fixture(params=DENSE_LAYOUTS)
def dense_layout(request):
    return DENSE_LAYOUTS[request.param]


@pytest.fixture(params=[*DENSE_LAYOUTS, "CSR"])
def layout(request):
    return DENSE_LAYOUTS.get(request.param, scipy.sparse.csr_array)

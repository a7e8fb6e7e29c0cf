"""The layouts in which the same numbers may come, and real maps, half done."""

import functools

import numpy as np
import pytest
import scipy.sparse

from lowland import TSNE, SymmetricSNE
from lowland.datasets import digits


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


@functools.cache
def _half_done(d, dof):
    maps = {}

    def keep(step, Y, loss):
        if step in (100, 300):
            maps[step] = Y.copy()

    shared = {
        "n_components": d,
        "random_state": 0,
        "max_iter": 300,
        "tol": 0,
        "n_jobs": 1,
        "callback": keep,
    }
    gaussian = np.isinf(dof)
    method = SymmetricSNE(**shared) if gaussian else TSNE(dof=dof, method="exact", **shared)
    method.fit(digits().X[: 1797 if dof == 1 else 900])
    return maps


@pytest.fixture(scope="session")
def half_done():
    """A function (d, dof, step) -> float32 map of digits after 100 steps (exaggerated) or 300."""

    def of(d, dof, step=300):
        return _half_done(d, dof)[step].copy()

    return of

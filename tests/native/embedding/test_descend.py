"""descend against its four lines of numpy."""

import numpy as np

from lowland import _native
from support.cases import each
from support.kernels import each_kind

SCALARS = {
    "exaggeration": 3.0,
    "total": 40.0,
    "learning_rate": 0.7,
    "momentum": 0.8,
    "longest": 5.0,
}


def state(n, d, dtype, seed=0):
    """Attraction, repulsion, map, velocities, gains; some velocities and gradients are zero."""
    rng = np.random.default_rng(seed)
    attraction, repulsion, Y, velocity = (rng.standard_normal((n, d)) for _ in range(4))
    repulsion *= SCALARS["total"]
    velocity[::7] = 0
    attraction[::11], repulsion[::11] = 0, 0
    gains = rng.uniform(0.011, 3, size=(n, d))
    return [array.astype(dtype) for array in (attraction, repulsion, Y, velocity, gains)]


def descend(arrays, threads=1, isa="auto", **changes):
    attraction, repulsion, *moving = [array.copy() for array in arrays]
    _native.descend(
        attraction,
        repulsion,
        **{**SCALARS, **changes},
        **dict(zip(("y", "velocity", "gains"), moving, strict=True)),
        threads=threads,
        isa=isa,
    )
    return moving


def definition(arrays, exaggeration, total, learning_rate, momentum, longest):
    attraction, repulsion, Y, velocity, gains = (array.astype(np.float64) for array in arrays)
    gradient = exaggeration * attraction - repulsion / total
    gains = np.where((gradient > 0) != (velocity > 0), gains + 0.2, 0.8 * gains)
    gains = np.maximum(gains, 0.01)
    velocity = momentum * velocity - learning_rate * gains * gradient
    length = np.linalg.norm(velocity, axis=1, keepdims=True)
    velocity = velocity * np.minimum(1, longest / np.maximum(length, 1e-300))
    return Y + velocity, velocity, gains


@each("changes", [{}, {"longest": 0.3}, {"momentum": 0.0, "exaggeration": 1.0}])
@each(("n", "d"), [(200, 1), (200, 2), (200, 3), (200, 5), (9000, 2)])  # tasks of 4096 points
@each_kind
def test_a_step_is_as_defined(n, d, changes, dtype, isa):
    arrays = state(n, d, dtype)
    found = descend(arrays, isa=isa, **changes)
    expected = definition(arrays, **{**SCALARS, **changes})
    for got, true in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            got, true, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-5
        )


@each_kind
def test_threads_do_not_change_a_bit(dtype, isa, same_for_threads):
    arrays = state(9000, 3, dtype)
    same_for_threads(lambda threads: descend(arrays, threads, isa, longest=1.0))


@each_kind
def test_forces_are_not_written_to(dtype, isa):
    attraction, repulsion, *moving = state(20, 2, dtype)
    before = attraction.copy(), repulsion.copy()
    _native.descend(attraction, repulsion, *SCALARS.values(), *moving, 1, isa)
    assert np.array_equal(attraction, before[0])
    assert np.array_equal(repulsion, before[1])


CHANGES = [
    ("attraction", np.zeros((5, 2)), "must have the shape of y"),
    ("repulsion", np.zeros((4, 3)), "must have the shape of y"),
    ("velocity", np.zeros((3, 2)), "must have the shape of y"),
    ("gains", np.zeros((4, 1)), "must have the shape of y"),
    ("y", np.zeros((0, 2)), "must have the shape of y"),
    ("total", 0.0, "total must be positive"),
    ("total", np.nan, "total must be positive"),
    ("threads", 0, "threads must be at least 1"),
]


def test_arrays_that_do_not_fit_are_refused(refuses):
    names = ("attraction", "repulsion", "y", "velocity", "gains")
    good = {**{array: np.zeros((4, 2)) for array in names}, **SCALARS, "threads": 1}
    refuses(_native.descend, good, CHANGES)

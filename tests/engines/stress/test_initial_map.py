"""Starts of stress methods: what lies in one place is separated, whatever the unit."""

import numpy as np

from lowland._engines.stress.initial_map import separated
from support.cases import each

# Points 0 and 1 share a place, 4 and 5 are near each other.
CROWD = np.random.default_rng(1).uniform(-1, 1, (9, 2))
CROWD[1], CROWD[5] = CROWD[0] + 1e-9, CROWD[4] + 1e-4
FLAT = np.column_stack([CROWD[2:], np.full(7, 1e-9)])


@each(
    ("Y", "moved"),
    [(CROWD, np.isin(np.arange(9), [0, 1])[:, None] * [1, 1]), (FLAT, np.tile([0, 0, 1], (7, 1)))],
    ids=["points in one place", "a flat column"],
)
@each("unit", [2.0**-20, 1.0, 2.0**20])
def test_only_what_lies_in_one_place_is_moved_in_every_unit(Y, moved, unit):
    apart = separated(unit * Y, np.random.default_rng(0))
    np.testing.assert_array_equal(apart != unit * Y, moved.astype(bool))
    np.testing.assert_array_equal(apart, unit * separated(Y, np.random.default_rng(0)))

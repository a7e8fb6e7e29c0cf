"""Estimates add up as steps that follow each other."""

from lowland._base.traits import Estimate


def test_seconds_add_and_the_larger_memory_counts():
    first, second = Estimate(1.0, 500.0), Estimate(2.0, 300.0)
    assert first + second == second + first == Estimate(3.0, 500.0)
    assert 4 * second == second * 4 == Estimate(8.0, 300.0)
    assert (first + 2 * second).holding(50.0) == Estimate(5.0, 550.0)

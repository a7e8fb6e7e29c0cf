"""The order of many values: mid-ranks, and means over all values beyond each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._engines.stress.monotone_regression import stable_order


class Order(NamedTuple):
    """Values in ascending order, in groups of equal ones."""

    order: np.ndarray
    group: np.ndarray  # of each value in the given order
    starts: np.ndarray  # of the groups in ascending order, and the number of values

    @classmethod
    def of(cls, values: np.ndarray, threads: int) -> Order:
        order = stable_order(values, threads)
        ordered = values[order]
        new = np.append(True, ordered[1:] != ordered[:-1])
        group = np.empty(len(values), np.int64)
        group[order] = np.cumsum(new) - 1
        return cls(order, group, np.append(np.flatnonzero(new), len(values)))

    def shares(self) -> np.ndarray:
        """Mid-ranks from 0 on, (rank + 1/2) / count - 1/2, so that their mean is 0."""
        middle = (self.starts[:-1] + self.starts[1:] - 1) / 2
        return ((middle + 0.5) / len(self.order) - 0.5)[self.group]

    def means_beyond(self, others: np.ndarray) -> np.ndarray:
        """E[others' 1(value' >= value)] for each value; ties count by half, as in mid-ranks."""
        tail = np.append(np.cumsum(others[self.order][::-1])[::-1], 0.0)
        mean = (tail[self.starts[:-1]] + tail[self.starts[1:]]) / 2 / len(self.order)
        return mean[self.group]

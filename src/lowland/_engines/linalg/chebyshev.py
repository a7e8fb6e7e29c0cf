"""A Chebyshev polynomial of a matrix, which makes small eigenvalues large.

T_m maps [-1, 1] into itself, and outside it grows faster than any other such polynomial of its
degree. With [a, b] mapped to [-1, 1], eigenvalues below a become large: 0 becomes about
cosh(2 m sqrt(a / b)).
"""

from __future__ import annotations

import numpy as np

from lowland._engines.linalg.block_lanczos import Operator


def low_pass(times: Operator, degree: int, a: float, b: float) -> Operator:
    """V -> T_m(((a + b) - 2 M) / (b - a)) V, with M V = ``times(V)``, by T's recurrence.

    Eigenvalues of M above a, up to b, become at most 1 in size, the smaller ones larger than 1.
    """
    center, half = (a + b) / 2, (b - a) / 2

    def filtered(V: np.ndarray) -> np.ndarray:
        before, now = V, (center * V - times(V)) / half
        for _ in range(degree - 1):
            after = times(now)
            after -= center * now
            after *= -2 / half
            after -= before
            before, now = now, after
        return now

    return filtered

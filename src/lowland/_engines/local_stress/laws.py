"""How a pair counts in a local stress: by its distance in the map, in the data, or in both.

Radial laws (Demartines & Herault 1997; Venna & Kaski 2006), with the radii s of both points:

    E   = sum over i < j of w (delta - d)^2,    w = (1 - l) F(d, s) + l F(delta, s)
    F   = 1 up to s ("step"), exp(-u / s) ("exp"), or a smooth fall from 1 at s / 2 to 0 at 3 s / 2
          ("sigmoid"); averaged over the radii of the two points

E itself is lowest where no point is near another: with F(d) small, errors do not count. The rules
of the papers therefore treat F as a constant: point i pulls point j by w (delta - d). Those forces
are the slope of another function, the *potential* of the law,

    U   = sum over i < j of 2 int_delta^d (u - delta) [(1 - l) F(u, s) + l F(delta, s)] du  >= 0

which is what a descent lowers. For F = 1, E and U are raw stress; for l = 1 they are equal.

The symmetric law (Lespinats et al. 2007) is lowered as it stands, with |.| rounded off near 0:

    E   = sum over i < j of |delta - d| F(min(delta, d)),   F(u) = 1 - Phi((u - center) / width)
"""

from __future__ import annotations

from typing import NamedTuple

RADIAL = ("step", "exp", "sigmoid")
KINDS = (*RADIAL, "symmetric")


class Law(NamedTuple):
    """A law by name, and its numbers; those of another kind of law are ignored."""

    kind: str
    tradeoff: float = 0.0
    center: float = 0.0
    width: float = 1.0
    rounding: float = 0.0

    def numbers(self) -> tuple[int, float, float, float, float]:
        """The law as the kernels take it."""
        kind = KINDS.index(self.kind)
        return kind, self.tradeoff, self.center, self.width, self.rounding

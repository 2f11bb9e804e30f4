"""Distributions, as the data plane has them."""

from __future__ import annotations

from typing import Any

from tideover.sim.distributions.base import Distribution
from tideover.sim.plane.plane import Plane


def describe(plane: Plane, distribution: Distribution, into: Any) -> None:
    """Let a ``distribution`` of the plane be this one."""
    law = distribution.law()
    plane.ffi.memmove(plane.ffi.addressof(into), law.struct, plane.ffi.sizeof("distribution"))
    plane.keep(law)


def least(law: Any, lib: Any) -> int:
    """No duration of a ``distribution`` of the plane is shorter (ns); the shortest may be longer."""
    if law.kind in (lib.DRAW_CONSTANT, lib.DRAW_UNIFORM):
        return int(law.low)
    return 0

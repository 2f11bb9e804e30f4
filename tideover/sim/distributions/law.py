"""A distribution as the data plane has it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.sim.draws import Bits
from tideover.sim.plane.library import ffi, lib

_BITS, _INTEGERS = ffi.typeof("uint64_t[]"), ffi.typeof("int64_t[]")


class Law:
    """A ``distribution`` of ``plane.h``: its kind, and the fields that the kind uses.

    ``kept`` are the objects whose memory its pointers point to.
    """

    def __init__(self, kind: int, kept: tuple[object, ...] = (), **fields: Any) -> None:
        self.struct = ffi.new("distribution *", {"kind": kind, **fields})
        self.compiled = kind != lib.DRAW_ELSEWHERE
        self._kept = kept

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One duration (ns) for each of the 64-bit words, in their place if they are contiguous."""
        if not self.compiled:
            raise NotImplementedError("a distribution gives sample or law")
        bits = np.ascontiguousarray(bits)
        drawn = bits.view(np.int64)
        into = ffi.from_buffer(_INTEGERS, drawn, require_writable=True)
        lib.draw_duration_array(self.struct, ffi.from_buffer(_BITS, bits), bits.size, into)
        return drawn


@cache
def elsewhere() -> Law:
    """Of every distribution that is drawn in Python."""
    return Law(lib.DRAW_ELSEWHERE)

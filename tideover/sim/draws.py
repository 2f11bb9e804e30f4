"""Randomness as a function, not a stream.

A draw is a pure function of (seed, replication, component, purpose, tuple, attempt). So two strategies see
the same luck, and neither the size of a train, nor a partition, nor a process can change a result. The mixer
is the finaliser of splitmix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, OOPSLA
2014). There is one implementation, ``draws.h`` of the data plane, which this module calls on arrays.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.sim.plane.library import ffi, lib

Bits = npt.NDArray[np.uint64]

_BITS, _INTEGERS, _FLOATS = (ffi.typeof(f"{kind}[]") for kind in ("uint64_t", "int64_t", "double"))


class Purpose(Enum):
    """What a draw is for; draws for different purposes are independent."""

    CONTENT = "content"
    TARGET = "target"
    SELECT = "select"
    SERVICE = "service"
    GAP = "gap"
    OFFSET = "offset"
    PHASE = "phase"
    LATENCY = "latency"
    FAULT = "fault"
    IDENTITY = "identity"
    HEARTBEAT = "heartbeat"
    LAUNCH = "launch"
    PREPARE = "prepare"
    ACCESS = "access"
    DAY = "day"
    EVENT = "event"
    CONNECTION = "connection"
    DEPLOY = "deploy"
    REPLACEMENT = "replacement"

    __hash__ = object.__hash__  # there is one of each; Enum's own hashes the name anew at every draw


class Draws:
    """Every draw of one replication.

    seed, replication: any integers; together they choose the luck. 0 is a seed like any other.
    """

    def __init__(self, seed: int, replication: int = 0) -> None:
        self.seed = seed
        self.replication = replication
        self._keys: dict[tuple[str, Purpose], int] = {}

    def key(self, component: str, purpose: Purpose) -> int:
        """The 64-bit key of one family of draws."""
        try:
            return self._keys[component, purpose]
        except KeyError:
            text = f"{self.seed}/{self.replication}/{component}/{purpose.value}".encode()
            key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
            self._keys[component, purpose] = key
            return key

    def identity(
        self, component: str, index: npt.NDArray[np.int64], attempt: npt.NDArray[np.int64] | None
    ) -> Bits:
        """A 64-bit id of each tuple: half of the mixing of ``bits``, as nothing is drawn."""
        return _drawn(lib.draw_identity_array, self.key(component, Purpose.IDENTITY), index, attempt)

    def bits(
        self,
        component: str,
        purpose: Purpose,
        index: npt.NDArray[np.int64],
        attempt: npt.NDArray[np.int64] | None = None,
    ) -> Bits:
        """64 random bits for each index (a tuple's uid, a call's number); shape of ``index``.

        ``attempt`` enters the draw where it is not zero.
        """
        return _drawn(lib.draw_bits_array, self.key(component, purpose), index, attempt)

    def moment(self, component: str, purpose: Purpose, within: int, number: int = 0) -> int:
        """An integer in [0, ``within``), uniform: the draw of that number."""
        bits = self.bits(component, purpose, np.array([number]))
        return int(bits[0] >> np.uint64(11)) * within >> 53


def _drawn(draw: Any, key: int, index: npt.NDArray[np.int64], attempt: npt.NDArray[np.int64] | None) -> Bits:
    index = np.ascontiguousarray(index)
    drawn = np.empty(index.shape, np.uint64)
    attempts = ffi.NULL
    if attempt is not None:
        if attempt.shape != index.shape:
            raise ValueError(f"attempts of shape {attempt.shape} for indexes of shape {index.shape}")
        attempts = ffi.from_buffer(_INTEGERS, np.ascontiguousarray(attempt))
    draw(key, ffi.from_buffer(_INTEGERS, index), attempts, index.size, ffi.from_buffer(_BITS, drawn))
    return drawn


def mix(z: Bits) -> Bits:
    """Finaliser of splitmix64, in place; returns its argument."""
    words = ffi.from_buffer(_BITS, z, require_writable=True)
    lib.mix64_array(words, z.size, words)
    return z


def uniform01(bits: Bits) -> npt.NDArray[np.float64]:
    """Bits to float64 in the open interval (0, 1): 53 bits, centred in their cells, never 0 or 1."""
    bits = np.ascontiguousarray(bits)
    found = np.empty(bits.shape, np.float64)
    lib.uniform01_array(ffi.from_buffer(_BITS, bits), bits.size, ffi.from_buffer(_FLOATS, found))
    return found


def below(bits: Bits, n: int) -> npt.NDArray[np.int64]:
    """Bits to integers in [0, n), 0 < n < 2**31, from the upper 32 bits (bias below n / 2**32)."""
    bits = np.ascontiguousarray(bits)
    found = np.empty(bits.shape, np.int64)
    lib.below_array(ffi.from_buffer(_BITS, bits), n, bits.size, ffi.from_buffer(_INTEGERS, found))
    return found

"""Randomness as a function, not a stream.

A draw is a pure function of (seed, replication, component, purpose, tuple, attempt). So two strategies see
the same luck, and neither the size of a train, nor a partition, nor a process can change a result. The mixer
is the finaliser of splitmix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, OOPSLA
2014).
"""

from __future__ import annotations

import hashlib
from enum import Enum

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_ATTEMPT = np.uint64(0xD6E8FEB86659FD93)
_S30, _S27, _S31, _S11, _S32 = (np.uint64(n) for n in (30, 27, 31, 11, 32))

_BELOW_1 = 1 - 2.0**-53


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

    __hash__ = object.__hash__  # there is one of each; Enum's own hashes the name anew at every draw


class Draws:
    """Every draw of one replication.

    seed, replication: any integers; together they choose the luck. 0 is a seed like any other.
    """

    def __init__(self, seed: int, replication: int = 0) -> None:
        self.seed = seed
        self.replication = replication
        self._keys: dict[tuple[str, Purpose], np.uint64] = {}

    def key(self, component: str, purpose: Purpose) -> np.uint64:
        """The 64-bit key of one family of draws."""
        try:
            return self._keys[component, purpose]
        except KeyError:
            text = f"{self.seed}/{self.replication}/{component}/{purpose.value}".encode()
            key = np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))
            self._keys[component, purpose] = key
            return key

    def identity(
        self, component: str, index: npt.NDArray[np.int64], attempt: npt.NDArray[np.int64] | None
    ) -> Bits:
        """A 64-bit id of each tuple: half of the mixing of ``bits``, as nothing is drawn."""
        z = index.view(np.uint64) * _GOLDEN
        z += self.key(component, Purpose.IDENTITY)
        if attempt is not None:
            z += attempt.view(np.uint64) * _ATTEMPT
        z ^= z >> _S30
        z *= _M1
        z ^= z >> _S27
        return z

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
        z = index.view(np.uint64) * _GOLDEN
        z += self.key(component, purpose)
        if attempt is not None:
            z += attempt.view(np.uint64) * _ATTEMPT
        return mix(z)


def mix(z: Bits) -> Bits:
    """Finaliser of splitmix64, in place; returns its argument."""
    t = z >> _S30
    z ^= t
    z *= _M1
    np.right_shift(z, _S27, out=t)
    z ^= t
    z *= _M2
    np.right_shift(z, _S31, out=t)
    z ^= t
    return z


def uniform01(bits: Bits) -> npt.NDArray[np.float64]:
    """Bits to float64 in the open interval (0, 1): 53 bits, centred in their cells, never 0 or 1."""
    u = (bits >> _S11).astype(np.float64)
    u += 0.5
    u *= 2.0**-53
    return np.minimum(u, _BELOW_1, out=u)  # the centre of the last cell is no float64


def below(bits: Bits, n: int) -> npt.NDArray[np.int64]:
    """Bits to integers in [0, n), n < 2**31, from the upper 32 bits (bias below n / 2**32)."""
    found = bits >> _S32
    found *= np.uint64(n)
    found >>= _S32
    return found.view(np.int64)

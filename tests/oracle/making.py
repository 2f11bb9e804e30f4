"""What random worlds are made of: times in ticks, and what a strategy's settings are drawn with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tideover.sim.distributions import Distribution, Exponential

from .worlds import MS, ms

TICK_MS = 100
TICK = TICK_MS * MS


@cache
def up_to(top: int) -> st.SearchStrategy[int]:
    """Any integer from 0 to ``top``, all alike, made of small ones.

    In place of larger integers hypothesis also tries constants that it finds in our source. With them the
    worlds of a derandomized test would change with any line of code, and with what else was imported.
    """
    places = -(-top.bit_length() // 6)
    digits = st.tuples(*[st.integers(0, 63)] * places)
    return digits.map(lambda ds: sum(d << 6 * i for i, d in enumerate(ds)) * (top + 1) >> 6 * places)


@cache
def times(ties: bool, *small: float) -> st.SearchStrategy[float]:
    """Milliseconds: some of the given ticks, or any."""
    some = up_to(len(small) - 1).map(lambda i: small[i] * TICK_MS)
    odd = up_to(round(max(small) * TICK)).map(lambda ns: ns / MS)
    return some if ties else st.one_of(some, odd)


@cache
def durations(ties: bool, *small: float) -> st.SearchStrategy[Distribution]:
    """Constant; if not for ties, also exponential."""
    constant = times(ties, *small).map(ms)
    if ties:
        return constant
    mean = max(1, round(max(small) * TICK) // 2)
    return st.one_of(constant, st.just(Exponential(mean=mean)))


@dataclass
class Maker:
    """What a strategy's parameters are made of. ``hosts``: how many, None: each task has one of its own;
    ``bolts``: their names.
    """

    draw: st.DrawFn
    ties: bool
    hosts: int | None
    bolts: list[str]

    def some(self, *values: Any) -> Any:
        """One of these."""
        return self.draw(st.sampled_from(values))

    def maybe(self) -> bool:
        return self.draw(st.booleans())

    def ns(self, *small: float) -> int:
        """A time of about these milliseconds."""
        return round(self.draw(times(self.ties, *small)) * MS)

"""Walker's alias method: one of n outcomes with given weights, in constant time per draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tideover.sim.draws import Bits
from tideover.sim.plane.library import ffi, lib

_COIN_BITS = 32


class AliasTable:
    """Draws indexes in [0, n) with probabilities proportional to ``weights``.

    The table has 2**k >= n cells. The upper k bits of a draw choose a cell, the lower 32 toss a coin
    between the cell's own index and its alias. All of it is done in integers: ``units`` holds how many of
    the 2**(k + 32) equally likely draws give each index, so the probabilities are known exactly; they
    differ from the weights given by the rounding to such units only.

    Alastair J. Walker: *An efficient method for generating discrete random variables with general
    distributions*, ACM TOMS 3, 1977; Michael D. Vose: *A linear algorithm for generating random numbers
    with a given distribution*, IEEE TSE 17, 1991.

    >>> table = AliasTable([3, 1])
    >>> (table.units / table.total).tolist()
    [0.75, 0.25]
    """

    def __init__(self, weights: Sequence[float] | npt.NDArray[np.float64]) -> None:
        p = np.asarray(weights, np.float64)
        cells_log2 = max(1, (len(p) - 1).bit_length())
        self.total = 1 << (cells_log2 + _COIN_BITS)
        self.units = np.rint(p / p.sum() * self.total).astype(np.int64)
        # What rounding adds or takes goes to the heaviest outcome, where it matters least.
        self.units[np.argmax(self.units)] += self.total - int(self.units.sum())
        self._own, self._alias = _pair_up(self.units, 1 << cells_log2)
        self.struct = ffi.new("alias_table *", {"log2_cells": cells_log2})
        """As the data plane has it, for as long as this table lives."""
        self.struct.own = ffi.from_buffer("uint32_t[]", self._own)
        self.struct.alias = ffi.from_buffer("int64_t[]", self._alias)

    def index(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One index for each 64-bit word."""
        bits = np.ascontiguousarray(bits)
        found = np.empty(bits.shape, np.int64)
        into = ffi.from_buffer("int64_t[]", found)
        lib.draw_index_array(self.struct, ffi.from_buffer("uint64_t[]", bits), bits.size, into)
        return found


def _pair_up(
    units: npt.NDArray[np.int64], cells: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """For each cell how many of its 2**32 coins are its own, and the index that gets the others."""
    full = 1 << _COIN_BITS
    rest = units.tolist() + [0] * (cells - len(units))
    own = np.zeros(cells, np.uint32)
    alias = np.arange(cells, dtype=np.int64)
    small = [i for i, r in enumerate(rest) if r < full]
    large = [i for i, r in enumerate(rest) if r > full]
    while small:
        i, j = small.pop(), large[-1]
        own[i], alias[i] = rest[i], j
        rest[j] -= full - rest[i]
        if rest[j] <= full:
            large.pop()
            if rest[j] < full:
                small.append(j)
    return own, alias

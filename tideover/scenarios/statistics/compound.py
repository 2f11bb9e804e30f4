"""The sum of a random number of random times: a compound Poisson distribution, by Fourier transform.

The characteristic function of the sum is exp(m (phi - 1)), with m the mean number of events and phi the
characteristic function of one of them: Grubel and Hermesmeier, Computation of Compound Distributions I, ASTIN
Bulletin 29, 1999. No draw is made, so the same input gives the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEAST_CELLS, MOST_CELLS = 1 << 13, 1 << 20
"""Cells of the lattice on which the sum is found."""
FINE = 16
"""Cells to the root mean square of one event: dividing it between two cells adds 0.1 % to its square."""
_SPREAD = 12.0
"""Standard deviations on either side of the mean that the lattice has room for."""


@dataclass(frozen=True)
class Compound:
    """The distribution of the sum, on a lattice: ``chance[i]`` of ``first + i * step``."""

    first: float
    step: float
    chance: Floats

    def quantile(self, q: float) -> float:
        """The least value that the sum does not exceed with probability ``q``."""
        place = int(np.searchsorted(np.cumsum(self.chance), q - 1e-12))
        return self.first + self.step * min(place, len(self.chance) - 1)

    def above(self, limit: float) -> float:
        """The probability that the sum exceeds ``limit``."""
        values = self.first + self.step * np.arange(len(self.chance))
        return float(min(1.0, self.chance[values > limit + self.step / 2].sum()))


def compound_poisson(parts: Sequence[tuple[float, Floats]]) -> Compound:
    """The sum of independent compound Poisson sums.

    ``parts``: of each the mean number of events, and values of one event that are equally likely (none below
    0, at least one).
    """
    mean = sum(count * float(values.mean()) for count, values in parts)
    spread = sum(count * float((values**2).mean()) for count, values in parts) ** 0.5
    longest = max((float(values.max()) for _, values in parts), default=0.0)
    room = 2 * _SPREAD * spread + 2 * longest
    if room == 0:
        return Compound(0.0, 1.0, np.ones(1))
    events = sum(count for count, _ in parts)
    wanted = room / (spread / events**0.5) * FINE
    cells = min(MOST_CELLS, max(LEAST_CELLS, 1 << int(np.ceil(np.log2(wanted)))))
    step = room / cells
    first = max(0, int((mean - _SPREAD * spread - longest) / step))
    exponent = np.zeros(cells // 2 + 1, dtype=np.complex128)
    for count, values in parts:
        exponent += count * (np.fft.rfft(_on_lattice(values, step, cells)) - 1)
    whole = np.maximum(np.fft.irfft(np.exp(exponent), cells), 0.0)  # of the sum modulo the lattice
    chance = np.roll(whole, -(first % cells))
    return Compound(first * step, step, chance / chance.sum())


def _on_lattice(values: Floats, step: float, cells: int) -> Floats:
    """Each value's chance, divided between its two neighbours on the lattice so that the mean is kept."""
    places = values / step
    low = np.floor(places).astype(np.int64)
    part = places - low
    found = np.bincount(low, 1 - part, cells) + np.bincount(low + 1, part, cells)
    return np.asarray(found / len(values))

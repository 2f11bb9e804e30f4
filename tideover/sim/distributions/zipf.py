"""Which key: a few are frequent, most are rare."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tideover.sim.distributions.alias import AliasTable
from tideover.sim.draws import Bits
from tideover.sim.registry import Part


class Zipf(Part):
    """Zipf's law over ``keys`` keys: key i (from 0) has a probability proportional to 1 / (i + 1)**exponent.

    exponent 0 is uniform; words of a language have about 1. Not a duration: it draws the index of a key.

    George K. Zipf: *Human behavior and the principle of least effort*, 1949.

    >>> import numpy as np
    >>> Zipf(keys=2, exponent=1.0).index(np.array([0, 2**63], np.uint64)).tolist()
    [0, 1]
    >>> Zipf(keys=3, exponent=0.0).probabilities.tolist()
    [0.3333333333333333, 0.3333333333333333, 0.3333333333333333]
    """

    keys: Annotated[int, Field(ge=1, le=2**22, description="number of keys")]
    exponent: Annotated[float, Field(ge=0, le=20, description="skew; 0 is uniform")] = 1.0

    def index(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One key in [0, keys) for each 64-bit word."""
        return _table(self.keys, self.exponent).index(bits)

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Probability of each key."""
        return _probabilities(self.keys, self.exponent)


def _probabilities(keys: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


@lru_cache(maxsize=16)
def _table(keys: int, exponent: float) -> AliasTable:
    return AliasTable(_probabilities(keys, exponent))

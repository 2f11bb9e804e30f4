"""What a distribution is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tideover.sim.distributions.law import Law, elsewhere
from tideover.sim.draws import Bits
from tideover.sim.registry import Part, Registry

DISTRIBUTIONS: Registry[Distribution] = Registry("distribution")


class Distribution(Part):
    """A distribution of durations in nanoseconds.

    Subclasses give ``law`` or ``sample``, and ``mean_ns``, and register themselves with
    ``@DISTRIBUTIONS.register(name)``.
    """

    kind: ClassVar[str]

    def law(self) -> Law:
        """As the data plane has it; by default it is drawn in Python, by ``sample``."""
        return elsewhere()

    def sample(self, bits: Bits) -> npt.NDArray[np.int64]:
        """One duration (ns, >= 0, rounded with rint) for each of the 64-bit words; may overwrite ``bits``."""
        return self.law().sample(bits)

    @property
    def mean_ns(self) -> float:
        """The mean, in nanoseconds."""
        raise NotImplementedError

"""What a spout emits."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tideover.sim.draws import Draws
from tideover.sim.registry import Part, Registry
from tideover.sim.train import Ints

SPOUTS: Registry[Spout] = Registry("spout")


class Spout(Part):
    """The content of a spout's tuples: a pure function of the root, so a retry carries what the first attempt
    carried.

    Subclasses give ``content`` and ``key_count``, name their fields in ``emits``, and may end the stream by
    ``limit``.
    """

    kind: ClassVar[str]
    emits: ClassVar[tuple[str, ...]] = ()

    @property
    def key_count(self) -> int:
        """How many different keys there are."""
        raise NotImplementedError

    @property
    def key_names(self) -> tuple[str, ...] | None:
        """What the keys stand for, if they have names."""
        return None

    def shares(self) -> npt.NDArray[np.float64]:
        """Part of the roots that each key has, in the long run; they add up to 1."""
        return np.full(self.key_count, 1 / self.key_count)

    @property
    def limit(self) -> int | None:
        """How many roots a task emits in all; None: no end."""
        return None

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, Ints | None]:
        """Key and value (None: 1) of each root; ``number`` is the root's number within its task."""
        raise NotImplementedError

    def stamps_of(self, number: Ints) -> Ints | None:
        """When the events of a task's roots with these numbers took place (ns); None: by ``event_delay``."""
        return None

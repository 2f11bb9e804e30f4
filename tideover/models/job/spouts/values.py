"""Numbers from a list, to be summed."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.models.job.spouts.base import SPOUTS, Spout
from tideover.sim.draws import Draws
from tideover.sim.train import Ints


@SPOUTS.register("values")
class Values(Spout):
    """The numbers of ``values`` in order, all under one key; ``repeat`` starts again at the end.

    >>> Values(values=(2, 3, 3, 5)).limit
    4
    """

    emits: ClassVar[tuple[str, ...]] = ("key",)
    values: Annotated[
        tuple[int, ...], Field(min_length=1, description="the numbers, in the order of emission")
    ]
    repeat: Annotated[bool, Field(description="start again at the end of the list")] = False

    @property
    def key_count(self) -> int:
        return 1

    @property
    def limit(self) -> int | None:
        return None if self.repeat else len(self.values)

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, Ints]:
        table = np.array(self.values, np.int64)
        return np.zeros(len(root), np.int64), table[number % len(table)]

"""Numbers from a list, to be summed."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from tideover.models.job.spouts.base import SPOUTS, Spout
from tideover.sim.draws import Draws
from tideover.sim.train import Ints
from tideover.sim.units import Duration

MOST = 2**63 - 1
"""Greatest sum that int64 holds."""
MOST_REPEATED = 10**12
"""Greatest number of those that come again and again: millions of such have a sum that int64 holds."""


@SPOUTS.register("values")
class Values(Spout):
    """The numbers of ``values`` in order, all under one key; ``repeat`` starts again at the end.

    >>> Values(values=(2, 3, 3, 5)).limit
    4
    """

    emits: ClassVar[tuple[str, ...]] = ("key",)
    values: Annotated[
        tuple[int, ...],
        Field(min_length=1, description="the numbers, in the order of emission"),
    ]
    repeat: Annotated[bool, Field(description="start again at the end of the list")] = False
    stamps: Annotated[
        tuple[Duration, ...] | None,
        Field(
            description="when the event of each took place, for windows by event, as in [3 s, 5 s]; "
            "default: by event_delay"
        ),
    ] = None

    @model_validator(mode="after")
    def _as_many(self) -> Values:
        if self.stamps is not None and len(self.stamps) != len(self.values):
            raise ValueError(
                f"there are {len(self.values)} values and {len(self.stamps)} stamps: give as many"
            )
        if self.stamps is not None and self.repeat:
            raise ValueError("stamps are of a list that ends: repeat does not go with them")
        sizes = [abs(value) for value in self.values]
        if sum(sizes) > MOST or (self.repeat and max(sizes) > MOST_REPEATED):
            raise ValueError(
                f"values add up to more than int64 holds: their sum may be {MOST:,}, each "
                f"{MOST_REPEATED:,} with repeat"
            )
        return self

    @property
    def key_count(self) -> int:
        return 1

    @property
    def limit(self) -> int | None:
        return None if self.repeat else len(self.values)

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, Ints]:
        table = np.array(self.values, np.int64)
        return np.zeros(len(root), np.int64), table[number % len(table)]

    def stamps_of(self, number: Ints) -> Ints | None:
        return None if self.stamps is None else np.array(self.stamps, np.int64)[number]

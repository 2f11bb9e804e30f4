"""Spouts: what is emitted. One class a kind.

Spouts' tasks ask for content; a kind of one's own is a class here, or in a plug-in.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.models.operators.kinds import SENTENCES
from tideover.sim.distributions import Zipf
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.registry import Part, Registry
from tideover.sim.train import Ints
from tideover.sim.units import Duration

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
        raise NotImplementedError

    @property
    def key_names(self) -> tuple[str, ...] | None:
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


@SPOUTS.register("keys")
class Keys(Spout):
    """One of ``keys`` keys; the i-th most frequent has a weight of i ** -``exponent`` (0: all alike).

    >>> Keys(keys=100).key_count
    100
    """

    emits: ClassVar[tuple[str, ...]] = ("key",)
    keys: Annotated[int, Field(ge=1, le=1 << 22, description="number of different keys")] = 1
    exponent: Annotated[float, Field(ge=0, le=10, description="exponent of Zipf's law; 0: uniform")] = 0.0
    order: Annotated[
        Literal["random", "in_turn"],
        Field(description="drawn, or one key after the other: then tasks are loaded alike"),
    ] = "random"

    @model_validator(mode="after")
    def _one_order(self) -> Keys:
        if self.order == "in_turn" and self.exponent:
            raise ValueError("keys that come in turn come equally often: exponent does not go with order")
        return self

    @property
    def key_count(self) -> int:
        return self.keys

    def shares(self) -> npt.NDArray[np.float64]:
        return Zipf(keys=self.keys, exponent=self.exponent).probabilities

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, None]:
        if self.keys == 1:
            return np.zeros(len(root), np.int64), None
        if self.order == "in_turn":
            return number % self.keys, None
        bits = draws.bits(component, Purpose.CONTENT, root)
        if self.exponent > 0:
            return Zipf(keys=self.keys, exponent=self.exponent).index(bits), None
        return below(bits, self.keys), None


@SPOUTS.register("sentences")
class Sentences(Spout):
    """One of Stableford's five sentences, drawn uniformly (`tideover.models.operators.kinds`).

    >>> Sentences().key_count
    5
    """

    emits: ClassVar[tuple[str, ...]] = ("sentence",)

    @property
    def key_count(self) -> int:
        return len(SENTENCES)

    @property
    def key_names(self) -> tuple[str, ...]:
        return SENTENCES

    def content(self, component: str, draws: Draws, root: Ints, number: Ints) -> tuple[Ints, None]:
        return below(draws.bits(component, Purpose.CONTENT, root), len(SENTENCES)), None


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
        tuple[int, ...], Field(min_length=1, description="the numbers, in the order of emission")
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

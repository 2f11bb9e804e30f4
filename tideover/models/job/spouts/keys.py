"""Keys, evenly or by Zipf's law."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from tideover.models.job.spouts.base import SPOUTS, Spout
from tideover.sim.distributions.zipf import Zipf
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.train import Ints


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

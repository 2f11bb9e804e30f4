"""Sentences to be split into words."""

from __future__ import annotations

from typing import ClassVar

from tideover.models.job.spouts.base import SPOUTS, Spout
from tideover.models.operators.vocabulary import SENTENCES
from tideover.sim.draws import Draws, Purpose, below
from tideover.sim.train import Ints


@SPOUTS.register("sentences")
class Sentences(Spout):
    """One of Stableford's five sentences, drawn uniformly (`tideover.models.operators.vocabulary`).

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

"""Sentences into words."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tideover.models.operators.base import BOLTS, Bolt, Children, Floats
from tideover.models.operators.generic import expand
from tideover.models.operators.vocabulary import FLAT, LENGTHS, LONGEST, STARTS, WORDS
from tideover.sim.draws import Draws
from tideover.sim.train import Train


@BOLTS.register("split_words")
class SplitWords(Bolt):
    """A tuple for each word of the sentence, in order.

    >>> SplitWords().fan_out
    7
    """

    emits: ClassVar[tuple[str, ...]] = ("word",)

    @property
    def fan_out(self) -> int:
        return LONGEST

    def key_count(self, upstream: int) -> int:
        return len(WORDS)

    def key_names(self, upstream: tuple[str, ...] | None) -> tuple[str, ...]:
        return WORDS

    def rates(self, inputs: Floats) -> Floats:
        sentence = np.minimum(np.arange(len(inputs)), len(LENGTHS) - 1)
        by_sentence = np.bincount(sentence, weights=inputs, minlength=len(LENGTHS))
        by_word = np.bincount(FLAT, weights=np.repeat(by_sentence, LENGTHS), minlength=len(WORDS))
        return np.asarray(by_word, np.float64)

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        sentence = np.minimum(train.key, len(LENGTHS) - 1)
        copies = LENGTHS.take(sentence)
        rows, position = expand(copies)
        key = FLAT.take(STARTS.take(sentence).take(rows) + position)
        return Children(rows, position, key, copies)

"""Kinds of bolts: one class a kind, registered under its name.

Scenarios name them, tasks call them. A new operator is a class here, or in a plugin.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from tideover.models.operators.base import BOLTS, Bolt, Children, Floats, Stateful
from tideover.models.operators.keyed_state import KeyedPairs, KeyedSums, KeySet, RunningSums, Sessions
from tideover.models.operators.state import State
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.registry import setting
from tideover.sim.train import Ints, Train

# The five sentences of Stableford's word count, as numbers.
#
# T. Stableford, *Implementing operator state checkpoint based fault-tolerance in Apache Storm*, City
# University London, 2015. 4.4 words a sentence on average, 19 different words.

SENTENCES = (
    "tinker taylor soldier spy",
    "the good the bad and the ugly",
    "from dusk till dawn",
    "alice in wonderland",
    "gone with the wind",
)

WORDS: tuple[str, ...] = tuple(dict.fromkeys(word for sentence in SENTENCES for word in sentence.split()))

LENGTHS = np.array([len(sentence.split()) for sentence in SENTENCES], np.int64)
STARTS = np.cumsum(LENGTHS) - LENGTHS
FLAT = np.array([WORDS.index(word) for sentence in SENTENCES for word in sentence.split()], np.int64)
LONGEST = int(LENGTHS.max())


@BOLTS.register("distinct")
class Distinct(Stateful):
    """At the end of a window emits each key that has come in it, once, in order, with value 1, and clears."""

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    slides: ClassVar[bool] = True

    def new_state(self, keys: int) -> State:
        return KeySet(keys) if self.window.gap is None else Sessions(keys, self.window.gap, once=True)


@BOLTS.register("filter")
class Filter(Bolt):
    """Each tuple is handed on with probability ``keep``, always the same for the same tuple."""

    keep: Annotated[float, Field(ge=0, le=1, description="probability that a tuple is handed on")]

    def rates(self, inputs: Floats) -> Floats:
        return inputs * self.keep

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        kept = uniform01(draws.bits(component, Purpose.SELECT, train.uid)) < self.keep
        return Children(rows=np.flatnonzero(kept), copies=kept.astype(np.int64))


@BOLTS.register("forward")
class Forward(Bolt):
    """One tuple in, the same out: a queue with a service time."""

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        return Children()


def expand(copies: Ints) -> tuple[Ints, Ints]:
    """Rows and positions of the children, if parent i has ``copies[i]`` of them.

    >>> expand(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    rows = np.arange(len(copies), dtype=np.int64).repeat(copies)
    starts = copies.cumsum() - copies
    position = np.arange(len(rows), dtype=np.int64)
    position -= starts.repeat(copies)
    return rows, position


@BOLTS.register("generic")
class Generic(Bolt):
    """Each tuple makes ``selectivity`` tuples on average: the whole part always, one more with the rest as
    probability.
    """

    selectivity: float = setting("tuples out per tuple in, on average", 1.0, ge=0, le=64)

    @property
    def fan_out(self) -> int:
        return max(1, math.ceil(self.selectivity))

    def rates(self, inputs: Floats) -> Floats:
        return inputs * self.selectivity

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        whole = math.floor(self.selectivity)
        part = self.selectivity - whole
        copies = np.full(train.n, whole, np.int64)
        if part > 0:
            copies += uniform01(draws.bits(component, Purpose.SELECT, train.uid)) < part
        rows, position = expand(copies)
        return Children(rows, position, copies=copies)


@BOLTS.register("running_count")
class RunningCount(Stateful):
    """Adds up the tuples' values by key from the beginning; at the end of each window emits all sums as they
    are by then, in order of key, and goes on with them.
    """

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    forgets: ClassVar[bool] = False

    def new_state(self, keys: int) -> State:
        return RunningSums(keys)


@BOLTS.register("split_words")
class SplitWords(Bolt):
    """A tuple for each word of the sentence, in order."""

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


@BOLTS.register("windowed_count")
class WindowedCount(Stateful):
    """Adds up the tuples' values by key; at the end of a window emits all sums, in order of key, and
    clears.
    """

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    slides: ClassVar[bool] = True

    def new_state(self, keys: int) -> State:
        return KeyedSums(keys) if self.window.gap is None else Sessions(keys, self.window.gap)


@BOLTS.register("windowed_join")
class WindowedJoin(Stateful):
    """Joins the two streams that it reads by key: at the end of a window emits each key that both have in it,
    in order, with the number of pairs (of tuples with values: the sum of the products), and clears.

    One tuple stands for all pairs of its key.
    """

    emits: ClassVar[tuple[str, ...]] = ("key", "count")
    slides: ClassVar[bool] = True
    sides: ClassVar[int | None] = 2

    def new_state(self, keys: int) -> State:
        return KeyedPairs(keys)

"""Channels: latency, order, and what is on the wire at a given moment."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.sim.link import Channel, Latency
from tideover.sim.train import Ints, Train

NOBODY = cast(Any, None)  # a channel asks nothing of its ends
departures = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=12), min_size=1, max_size=6)
"""Trains of gaps between departures."""
spread = st.lists(st.integers(0, 100), min_size=1, max_size=20)
"""Latencies of the messages, again and again."""


def jitter(values: list[int]) -> Latency:
    """Latency of message number i: the i-th of the values, which repeat."""
    table = np.array(values, np.int64)
    return lambda number: table[number % len(table)]


def trains(gaps: list[list[int]]) -> list[Train]:
    """Rising departures over all trains; uid is the message's number."""
    flat = np.cumsum(np.array([g for part in gaps for g in part], np.int64))
    cuts = np.cumsum([len(part) for part in gaps])[:-1]
    uid = np.arange(len(flat), dtype=np.int64)
    return [Train(t, u, t, u) for t, u in zip(np.split(flat, cuts), np.split(uid, cuts), strict=True)]


def drained(channel: Channel, until: int = 1 << 60) -> list[tuple[int, int]]:
    """(message, arrival) of what arrives up to ``until``."""
    train = channel.take(until)
    return [] if train is None else list(zip(train.uid.tolist(), train.time.tolist(), strict=True))


@pytest.mark.parametrize("latency", [0, 7])
def test_constant_latency_by_hand(latency: int) -> None:
    channel = Channel(NOBODY, NOBODY, latency, 10, True)
    for train in trains([[1, 2], [0]]):
        channel.send(train)
    assert (channel.next_arrival, channel.last_arrival) == (1 + latency, 3 + latency)
    assert drained(channel) == [(0, 1 + latency), (1, 3 + latency), (2, 3 + latency)]
    assert channel.bytes == 30


def test_jitter_by_hand() -> None:
    """Message 1 would overtake message 0, and message 3 message 2 of the train before: they wait."""
    channel = Channel(NOBODY, NOBODY, jitter([10, 2, 30, 1]), 10, True)
    for train in trains([[1, 4, 5], [2]]):
        channel.send(train)
    assert drained(channel) == [(0, 11), (1, 11), (2, 40), (3, 40)]


@given(departures, spread)
def test_arrivals_are_the_running_maximum(gaps: list[list[int]], latency: list[int]) -> None:
    """Law: first in, first out; arrival = max(departure + latency, arrival of the message ahead)."""
    channel = Channel(NOBODY, NOBODY, jitter(latency), 10, True)
    sent = trains(gaps)
    for train in sent:
        channel.send(train)
    left = [t for train in sent for t in train.time.tolist()]
    plain = [t + latency[i % len(latency)] for i, t in enumerate(left)]
    assert drained(channel) == list(enumerate(itertools.accumulate(plain, max)))


@given(departures, spread, st.integers(0, 5))
def test_arrivals_do_not_depend_on_how_trains_are_cut(
    gaps: list[list[int]], latency: list[int], constant: int
) -> None:
    found = []
    for parts in (gaps, [[g for part in gaps for g in part]], [[g] for part in gaps for g in part]):
        for way in (jitter(latency), constant):
            channel = Channel(NOBODY, NOBODY, way, 10, True)
            for train in trains(parts):
                channel.send(train)
            found.append((drained(channel), channel.messages))
    assert found[0] == found[2] == found[4]
    assert found[1] == found[3] == found[5]


@given(departures, spread, st.lists(st.integers(0, 700), max_size=5))
def test_take_splits_exactly(gaps: list[list[int]], latency: list[int], moments: list[int]) -> None:
    """Law: ``take(until)`` gives what arrives at or before ``until``, each message once, and leaves the
    rest.
    """
    channel = Channel(NOBODY, NOBODY, jitter(latency), 10, True)
    for train in trains(gaps):
        channel.send(train)
    parts = [zip(part.uid.tolist(), part.time.tolist(), strict=True) for part in channel.wire]
    whole = [row for part in parts for row in part]
    before = -1
    for until in sorted(moments):
        assert drained(channel, until) == [(m, t) for m, t in whole if before < t <= until]
        assert channel.next_arrival == next((t for _, t in whole if t > until), None)
        assert channel.take(until) is None
        before = until
    assert drained(channel) == [(m, t) for m, t in whole if t > before]
    assert channel.last_arrival is None


class Counting:
    """A tap that numbers messages from 1, and keeps none."""

    sent = 0

    def number(self, train: Train) -> Train:
        first, self.sent = self.sent + 1, self.sent + train.n
        return train.adding(**self.columns(np.arange(first, first + train.n)))

    def columns(self, numbers: Ints) -> dict[str, Ints]:
        return {"number": numbers}

    def save(self) -> Callable[[], None]:
        return partial(setattr, self, "sent", self.sent)


def test_a_tap_numbers_what_is_sent_and_not_what_is_put() -> None:
    channel = Channel(NOBODY, NOBODY, 0, 10, True)
    channel.tap = Counting()
    first, second, replay = trains([[1, 2], [3], [4]])
    channel.send(first)
    channel.send(second)
    channel.put(replay.adding(number=-replay.uid))
    train = channel.take(100)
    assert train is not None
    assert train.column("number").tolist() == [1, 2, 3, -3]
    assert channel.messages == 4


def test_an_empty_train_is_nothing() -> None:
    channel = Channel(NOBODY, NOBODY, 3, 10, True)
    (train,) = trains([[1]])
    channel.send(train.pick(slice(0, 0)))
    assert (channel.take(100), channel.next_arrival, channel.messages) == (None, None, 0)

"""First in, first out, for messages of which some bring others about."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from tideover.sim.fifo import departures
from tideover.sim.train import Ints, rising

NONE: Ints = np.zeros(0, np.int64)
Load = tuple[Ints, Ints]
"""When messages come, in order, and how long each takes (ns)."""


class Contention:
    """A first-in first-out server that one level of the data plane uses, or several.

    Of one level's messages the departures are exact. Of several levels the data plane moves one after the
    other, so when an earlier level is served, what later levels send in the same step is not known yet. In
    its place stands what they sent in the time before, as long as the step, moved to the step; later levels
    see what earlier ones really sent, and at the step's end the backlog is what all have really sent.

    So each level waits behind a load with the right rate, the right bursts and the right backlog to begin
    with; that levels thin out one another within a step is lost. The wait comes out too long by up to a third
    (three hosts, load 0.9), at the 99th percentile by up to a half (ten hosts). Where messages take up to a
    hundredth of the latency between hosts, mean and 99th percentile of the latency and throughput are within
    2 % at loads up to 0.9 (tests/models/test_cards.py).
    """

    def __init__(self) -> None:
        self.free_at = 0
        self._total = 0
        self._levels: list[int] = []
        self._from = 0
        self._to = 0
        self._now: dict[int, Load] = {}
        """What each level has sent in this step."""
        self._before: dict[int, deque[Load]] = {}
        """What each level sent in earlier ones, since ``_since``, step by step."""
        self._since = 0

    def share(self, levels: set[int], now: int) -> None:
        """From now on these levels use it; all have moved up to ``now``."""
        if self.exact and len(levels) > 1:  # nobody knows what each sent in the time before
            self._from = self._to = self._since = now
            self._now, self._before = {}, {}
        self._levels = sorted(levels)
        self._before = {level: loads for level, loads in self._before.items() if level in levels}

    @property
    def exact(self) -> bool:
        """Whether only one level uses it."""
        return len(self._levels) < 2

    def step(self, level: int, now: int, time: Ints, service: Ints) -> Ints:
        """Departures of a level's messages, which have come (at ``time``, in any order; ties as they stand)
        by ``now``. Of several levels each moves in every step, the lowest first.
        """
        if not len(time):
            return time if self.exact else self._among_others(level, now, (time, service))
        self._total += int(service.sum())
        order = rising(time)
        mine = time[order], service[order]
        if self.exact:
            served = self._serve([mine])
            self.free_at = int(served[-1])
        else:
            served = self._among_others(level, now, mine)
        done = np.empty_like(time)
        done[order] = served
        return done

    def serve_one(self, time: int, service: int) -> int:
        """Departure of the next message (at ``time``), where only one level uses it."""
        self._total += service
        self.free_at = max(self.free_at, time) + service
        return self.free_at

    def save(self) -> Callable[[], None]:
        """Remember how it is, where only one level uses it; returns what brings that back."""
        free_at, total = self.free_at, self._total

        def restore() -> None:
            self.free_at, self._total = free_at, total

        return restore

    def busy_ns(self, now: int) -> int:
        """For how long it has served up to ``now`` (ns)."""
        return self._total - max(0, self.free_at - now)

    def _serve(self, loads: list[Load]) -> Ints:
        """Departures of the first of these loads beside the others."""
        if len(loads) == 1:
            time, service = loads[0]
            return departures(time, service.copy(), self.free_at)
        time, service = (np.concatenate(columns) for columns in zip(*loads, strict=True))
        order = np.argsort(time, kind="stable")
        done = np.empty_like(time)
        done[order] = departures(time[order], service[order], self.free_at)
        return done[: len(loads[0][0])]

    def _among_others(self, level: int, now: int, mine: Load) -> Ints:
        if level == self._levels[0]:
            self._from, self._to, self._now = self._to, now, {}
        self._now[level] = mine
        served = self._serve([mine, *self._others(level)]) if len(mine[0]) else mine[0]
        if level == self._levels[-1]:
            self._end_step()
        return served

    def _others(self, level: int) -> list[Load]:
        loads = (self._now.get(other) or self._expected(other) for other in self._levels if other != level)
        return [load for load in loads if len(load[0])]

    def _expected(self, level: int) -> Load:
        """What a later level may send in this step: what it sent in the time before, over and over."""
        span = min(self._to, 2 * self._from - self._since) - self._from
        if span <= 0 or level not in self._before:
            return NONE, NONE
        loads = [load for load in self._before[level] if load[0][-1] > self._from - span]
        time, service = (np.concatenate(columns) for columns in zip((NONE, NONE), *loads, strict=True))
        first = int(time.searchsorted(self._from - span, "right"))
        time, service = time[first:], service[first:]
        times = range(-((self._from - self._to) // span))
        again = np.concatenate([time + (i + 1) * span for i in times])
        last = int(again.searchsorted(self._to, "right"))
        return again[:last], np.tile(service, len(times))[:last]

    def _end_step(self) -> None:
        """All levels have sent what they send in this step."""
        sent = [load for load in self._now.values() if len(load[0])]
        if sent:
            time, service = (np.concatenate(columns) for columns in zip(*sent, strict=True))
            order = np.argsort(time, kind="stable")
            self.free_at = int(departures(time[order], service[order], self.free_at)[-1])
        self._remember()

    def _remember(self) -> None:
        """Keep what was sent in the longest step so far, up to now."""
        keep = max(self._from - self._since, self._to - self._from)
        self._since = max(0, self._to - keep)
        for level, load in self._now.items():
            before = self._before.setdefault(level, deque())
            if len(load[0]):
                before.append(load)
            while before and before[0][0][-1] <= self._since:
                before.popleft()

"""What is measured while a simulation runs: latency, throughput, backlog over time. Accounts write it, the
evaluation reads it.

History is pruned as it is made: latencies become histograms per second, counts become one number per 10 ms.
Nothing here grows with the number of tuples; in long runs nothing grows with time in which nothing happens.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import numpy.typing as npt

from tideover.sim.histogram import Histogram
from tideover.sim.train import Ints, grown
from tideover.sim.units import S

SLOT = S // 100
"""Resolution of throughput and backlog, ns."""
LONG = 100_000 * S
"""A run of more than a day and a bit has too many slots to keep one number for each."""
GATHERED = 1 << 16
"""Most latencies, or times of events, that are kept as they are."""
NONE: Ints = np.zeros(0, np.int64)


def slots_of(times: Ints) -> Ints:
    """Numbers of the slots that moments (ns) are in: each shows at the first boundary at or after it."""
    return (times + (SLOT - 1)) // SLOT


class Series:
    """Counts of events in slots of 10 ms; grows by a few bytes per slot. Events that come a few at a time are
    gathered, and counted when there are many, or when the counts are read.
    """

    def __init__(self) -> None:
        self._counts: Ints = np.zeros(1024, np.int64)
        self._gathered: list[Ints] = []
        self._size = 0

    def add(self, times: Ints) -> None:
        """Count events at these moments (ns), in any order."""
        if len(times) > GATHERED // 8:
            self._count(times)
        elif len(times):
            self._gathered.append(times)
            self._size += len(times)
            if self._size > GATHERED:
                self._flush()

    def _flush(self) -> None:
        if self._gathered:
            self._count(np.concatenate(self._gathered))
            self._gathered, self._size = [], 0

    def _count(self, times: Ints) -> None:
        slots = slots_of(times)
        first = int(slots.min())
        counts = np.bincount(slots - first)
        self._reserve(first + len(counts))
        self._counts[first : first + len(counts)] += counts

    def _reserve(self, slots: int) -> None:
        if slots > len(self._counts):
            self._counts = grown(self._counts, max(slots, 2 * len(self._counts)))

    def times(self) -> Ints:
        """Boundaries of the slots in which something happened."""
        self._flush()
        return np.flatnonzero(self._counts) * SLOT

    def until(self, end: int) -> Ints:
        """Counts of all slots whose boundary is at or before ``end`` ns."""
        self._flush()
        n = end // SLOT + 1
        out = np.zeros(n, np.int64)
        out[: min(n, len(self._counts))] = self._counts[:n]
        return out


class FewCounts(Series):
    """The same for a long run: grows with the slots in which something happens, not with time."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[tuple[Ints, Ints]] = []

    def _count(self, times: Ints) -> None:
        self._parts.append(np.unique(slots_of(times), return_counts=True))

    def put(self, slots: Ints, counts: Ints) -> None:
        """So many events happened in these slots."""
        if len(slots):
            self._parts.append((slots, counts))

    def events(self) -> tuple[Ints, Ints]:
        """The slots in which something happened, rising, and how much in each."""
        self._flush()
        if len(self._parts) != 1:
            every = [np.concatenate(column) for column in zip((NONE, NONE), *self._parts, strict=True)]
            slots, places = np.unique(every[0], return_inverse=True)
            counts = np.zeros(len(slots), np.int64)
            np.add.at(counts, places, every[1])
            self._parts = [(slots, counts)]
        return self._parts[0]

    def times(self) -> Ints:
        return self.events()[0] * SLOT

    def at(self, slots: Ints) -> Ints:
        """Counts in these slots."""
        known, counts = self.events()
        places = np.minimum(known.searchsorted(slots), len(known) - 1)
        return np.where(known[places] == slots, counts[places], 0) if len(known) else np.zeros_like(slots)

    def until(self, end: int) -> Ints:
        return self.at(np.arange(end // SLOT + 1, dtype=np.int64))


class LatencyLog:
    """Latencies by second of completion: exact moments, and histograms.

    What comes in short trains is gathered first: to bin it second by second costs more than to simulate it,
    and a short run is over before there is much of it.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, Histogram] = {}
        self._filling: set[int] = set()
        self._gathered: list[tuple[Ints, Ints]] = []
        """Times and latencies that are not in the histograms."""
        self._size = 0

    def add(self, times: Ints, latency: Ints) -> None:
        """Tuples done at ``times``, each with its latency (ns); sorted when there are many."""
        if len(times):
            self._gathered.append((times, latency))
            self._size += len(times)
        if self._size > GATHERED:
            self._sort_in(*self._rest())
            self._gathered, self._size = [], 0

    def _rest(self) -> tuple[Ints, Ints]:
        """What is not in the histograms, in order of time."""
        if not self._gathered:
            return NONE, NONE
        times, latency = (np.concatenate(column) for column in zip(*self._gathered, strict=True))
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            times, latency = times[order], latency[order]
        self._gathered = [(times, latency)]
        return times, latency

    def _sort_in(self, times: Ints, latency: Ints) -> None:
        seconds, begins = np.unique(times // S, return_index=True)
        for second, part in zip(seconds.tolist(), np.split(latency, begins[1:]), strict=True):
            self._of(second).add(part)

    def _of(self, second: int) -> Histogram:
        if second not in self._filling:
            # tasks report a step one after the other: the second before may not be over yet
            for past in [s for s in self._filling if s < second - 1]:
                self._seconds[past].pack()
                self._filling.discard(past)
            self._filling.add(second)
            self._seconds.setdefault(second, Histogram())
        return self._seconds[second]

    def merge(self, second: int, part: Histogram) -> None:
        """Add the latencies of tuples that were done in a second."""
        self._of(second).merge(part)

    def over(self, seconds: npt.NDArray[np.bool_], first: int) -> Histogram:
        """Histogram of the seconds marked in ``seconds``, of which the first is second ``first``."""
        whole = Histogram()
        for second, part in self._seconds.items():
            if first <= second < first + len(seconds) and seconds[second - first]:
                whole.merge(part)
        times, latency = self._rest()
        place = times // S - first
        inside = (place >= 0) & (place < len(seconds))
        inside[inside] = seconds[place[inside]]
        whole.add(latency[inside])
        whole.flush()
        return whole

    def by_second(self, seconds: Ints) -> tuple[list[float | None], list[int | None]]:
        """Exact mean and greatest latency (ns) of each of these ``seconds`` (rising); None: none."""
        times, latency = self._rest()
        begins, ends = times.searchsorted(seconds * S), times.searchsorted((seconds + 1) * S)
        counts, filled = ends - begins, begins < ends
        sums, most = np.zeros((2, len(seconds)), np.int64)
        if filled.any():
            padded = np.append(latency, 0)  # so that there is something to begin with at the last end
            cuts = np.stack((begins[filled], ends[filled]), axis=1).ravel()
            sums[filled] = np.add.reduceat(padded, cuts)[::2]
            most[filled] = np.maximum.reduceat(padded, cuts)[::2]
        count, total, greatest = counts.tolist(), sums.tolist(), most.tolist()
        for place, second in enumerate(seconds.tolist() if self._seconds else ()):
            if second in self._seconds:
                part = self._seconds[second]
                part.flush()
                count[place] += part.count
                total[place] += part.sum
                greatest[place] = max(greatest[place], part.max)
        means = [whole / n if n else None for whole, n in zip(total, count, strict=True)]
        return means, [most if n else None for most, n in zip(greatest, count, strict=True)]

    def copy(self) -> LatencyLog:
        new = LatencyLog()
        new._seconds, new._filling = deepcopy(self._seconds), set(self._filling)
        new._gathered, new._size = list(self._gathered), self._size
        return new


class Span:
    """Latencies from a fault to the last replayed tuple; the end is known only afterwards.

    ``committed`` holds what is inside for certain, ``tail`` what has come since the newest replayed tuple.
    With ``resolution`` the span goes on to the end of the last logged second, as for a reader of logs of that
    resolution.
    """

    def __init__(self, resolution: int | None) -> None:
        self.committed = Histogram()
        self._tail = Histogram()
        self._resolution = resolution
        self.end = -1
        """Tuples done at or before this instant (ns) are inside."""
        self._replayed = False
        self._step: list[tuple[Ints, Ints]] = []

    def goes_on(self, now: int) -> bool:
        """Whether what is done from this instant on is inside, even if nothing more is replayed."""
        return self.end >= now

    def add(self, times: Ints, latency: Ints, replayed: npt.NDArray[np.bool_] | None) -> None:
        """Tuples done at ``times`` (rising); ``replayed`` marks those replayed because of the fault."""
        if replayed is not None and replayed.any():
            last = int(times[np.flatnonzero(replayed)[-1]])
            end = last if self._resolution is None else (last // self._resolution + 1) * self._resolution - 1
            self.end = max(self.end, end)
            self._replayed = True
        self._step.append((times, latency))

    def settle(self) -> None:
        """After a step of the data plane, when all tasks have reported: what is inside is known."""
        if self._replayed:  # whatever was done in earlier steps came before it
            self.committed.merge(self._tail)
            self._tail.clear()
            self._replayed = False
        for times, latency in self._step:
            inside = int(times.searchsorted(self.end, "right"))
            self.committed.add(latency[:inside])
            self._tail.add(latency[inside:])
        self._step.clear()


class Recorder:
    """Latencies, throughput, backlog and outputs over time."""

    def __init__(self, duration: int = 0, latencies: bool = True) -> None:
        """``duration``: of the run (ns); ``latencies``: whether anybody will ask for them."""
        self._latencies = latencies
        self.is_long = duration > LONG
        series = FewCounts if self.is_long else Series
        self.latency = LatencyLog()
        self.from_first: LatencyLog | None = None
        """Latencies since the first emission of a tuple's root; None: the same, none was emitted again."""
        self.done = series()
        self.entered = series()
        self.left = series()
        self.back = series()
        """Of those that left, who entered again in the same slot."""
        self.output = series()
        self._outputs: dict[object, int] = {}

    def note_output(self, what: object, now: int) -> None:
        """Something rare (a window) was put out ``now``; of the same thing put out twice the first counts."""
        self._outputs[what] = min(now, self._outputs.get(what, now))

    def outputs(self) -> Ints:
        """Moments of output, rising: exact for windows, slot boundaries for streams of tuples."""
        if self._outputs:
            return np.unique(np.array(list(self._outputs.values()), np.int64))
        return self.output.times()

    def backlog(self, end: int) -> tuple[Ints, Ints]:
        """Roots in the system at each slot boundary up to ``end``, and at any time in the slot before it."""
        entered, left = self.entered.until(end), self.left.until(end)
        backlog = np.cumsum(entered - left)
        return backlog, backlog + left - self.back.until(end)

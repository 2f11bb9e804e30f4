"""What is said of a run, from what was recorded tuple by tuple, by the definitions in docs/semantics.md.

Times are read at boundaries of 10 ms ("slots"): slot number n is what happens after boundary n - 1, up to n.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .clock import Part
from .windows import Verdict

if TYPE_CHECKING:
    from .program import World
    from .record import Outage

SECOND = 1_000_000_000
SLOT = SECOND // 100
CALM = 4 * SECOND
PASSING, RESTART, WRITING = "passing_s", ("delay_s", "launch_s", "prepare_s"), "write_s"
STAGES = ("detect_s", PASSING, *RESTART, "restart_s", WRITING, "restore_s", "wait_s", "replay_s")
"""One after the other; the second if it passes by itself, the next three if heartbeats are missed, that of
writing if others have written what it took.
"""
NEVER_REACHED = 1 << 62
"""More than any count."""
Latencies = dict[str, float | None]
Counts = npt.NDArray[np.int64]
"""One for each slot."""
Truths = npt.NDArray[np.bool_]
"""The same."""


@dataclass
class Figures:
    """The figures of one replication. Times in ns; latencies in ms."""

    recoveries: list[dict[str, Any]] = field(default_factory=list)
    latency: Latencies = field(default_factory=dict)
    end_to_end: Latencies = field(default_factory=dict)
    throughput: dict[str, float | None] = field(default_factory=dict)
    windows: dict[str, int] = field(default_factory=dict)
    cost: dict[str, float | None] = field(default_factory=dict)
    tasks: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By task: how long it was busy, blocked by a full queue, and up."""
    backlog: list[int] = field(default_factory=list)
    """At the end of each slot."""
    backlog_without_failures: list[int] = field(default_factory=list)
    present: list[int] = field(default_factory=list)
    """At any time in each slot."""


def slot_of(moment: int) -> int:
    """The slot that a moment is in."""
    return -(-moment // SLOT)


def summary(values: list[int]) -> Latencies:
    """The six figures, in ms; a quantile is the value at rank ceil(q * n)."""
    if not values:
        return dict.fromkeys(("median", "mean", "std", "p95", "p99", "max"))
    ordered = sorted(values)

    def quantile(q: float) -> float:
        return ordered[max(1, math.ceil(q * len(ordered))) - 1] / 1e6

    mean = sum(values) / len(values)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    tails = {"median": quantile(0.5), "p95": quantile(0.95), "p99": quantile(0.99)}
    return tails | {"mean": mean / 1e6, "std": std / 1e6, "max": ordered[-1] / 1e6}


def around(values: Sequence[int] | Counts, before: int, after: int, edge: int) -> npt.NDArray[np.int64]:
    """Row by row, what is so many slots before and after each slot; ``edge``: where there are none.

    Shape (slots, before + 1 + after).
    """
    padded = np.pad(np.asarray(values, np.int64), (before, after), constant_values=edge)
    return np.lib.stride_tricks.sliding_window_view(padded, before + 1 + after)


class Course:
    """A run, slot by slot."""

    def __init__(self, world: World) -> None:
        self.slots = world.scenario.run.duration // SLOT + 1
        self.backlog, self.present = self._roots(world)
        self.done = [0] * self.slots
        for tuple_ in world.record.done:
            if slot_of(tuple_.time) < self.slots:
                self.done[slot_of(tuple_.time)] += 1
        record = world.record
        self.outputs = sorted(
            set(record.windows_out.values()) or {slot_of(time) * SLOT for time in record.tuples_out}
        )
        self.beat = world.protocol.beat()

    def _roots(self, world: World) -> tuple[list[int], list[int]]:
        """How many are there at the end of each slot, and at any time in it."""
        here: set[int] = set()
        backlog: list[int] = []
        present: list[int] = []
        for slot, moves in groupby(world.record.moves, lambda move: slot_of(move[0])):
            for counts in (backlog, present):
                counts += [len(here)] * (slot - len(counts))
            seen = set(here)
            for _, root, change in moves:
                seen.add(root)
                (here.add if change > 0 else here.discard)(root)
            backlog.append(len(here))
            present.append(len(seen))
        for counts in (backlog, present):
            counts += [len(here)] * (self.slots - len(counts))
            del counts[self.slots :]
        return backlog, present

    def in_ten_seconds(self) -> Counts:
        """Tuples that were done in the 10 s up to the end of each slot."""
        return around(self.done, 10 * SECOND // SLOT - 1, 0, 0).sum(axis=1)


class Comparison(Part):
    """A run beside the same without failures."""

    def __init__(self, world: World, quiet: World, verdict: Verdict, other: Verdict) -> None:
        super().__init__(world)
        self.run, self.quiet = Course(world), Course(quiet)
        self.reach = max(CALM, 2 * self.quiet.beat) // SLOT
        self.interval = self.quiet.beat if world.layout.needs.batches else 0
        self.end = world.scenario.run.duration
        self.wrong = [span for place, span in verdict.bad.items() if place not in other.bad]
        recovering = [
            (outage.at, over) for outage in world.outages.all if (over := self.work_done(outage)) > outage.at
        ]
        self.behind = self._more_than_normal() | self.covered(recovering)
        first = min((outage.at for outage in world.outages.all), default=0)
        astray = [(max(begin, first), over) for begin, over in self.wrong if over > first]
        self.astray = self.behind | self.covered(astray)
        self.low: Truths | None = None
        self.least: Counts = np.zeros(0, np.int64)

    def covered(self, spans: Iterable[tuple[int, int]]) -> Truths:
        """Slots from the one that follows a span's begin to the one with its end."""
        slots = np.zeros(self.run.slots, np.bool_)
        for begin, over in spans:
            slots[begin // SLOT + 1 : slot_of(over) + 1] = True
        return slots

    def _more_than_normal(self) -> Truths:
        """Where more roots are there than within 4 s (or two intervals) of it without failures."""
        normal = around(self.quiet.present, self.reach, self.reach, 0).max(axis=1)
        more = np.maximum(1.25 * normal, normal + len(self.world.spouts))
        return np.asarray(self.run.present) > more

    def work_done(self, outage: Outage) -> int:
        """When all that was hit was up, and everything restored and replayed."""
        if outage.masked or outage.unfelt:
            return outage.at
        back = 2 * self.end if outage.back is None else outage.back
        others = (outage.written, outage.restored_at, outage.timed_out_at, outage.last_replay)
        return max(outage.at, back, *(moment for moment in others if moment is not None))

    def calm_from(self, bad: Truths, since: int) -> int | None:
        """From when on nothing is ``bad`` for 4 s (or an interval); for 1 s, if that is cut off."""
        begin = slot_of(since) + 1
        for slot in range(begin, self.run.slots + 1):
            if slot > begin and not bad[slot - 1]:
                continue  # it has begun before
            until = slot + int(np.argmax(bad[slot:])) if bad[slot:].any() else None
            if until is None:
                calm = self.run.slots - slot > max(SECOND, self.interval) // SLOT
            else:
                calm = until - slot > max(CALM, self.interval) // SLOT
            if calm:
                return since if slot == begin else (slot - 1) * SLOT
        return None

    def recovery(self, outage: Outage) -> dict[str, Any]:
        """Everything that is said of one fault."""
        caught_up: int | None = self.calm_from(self.behind, self.work_done(outage))
        over, last = None, self._last(outage, caught_up)
        if outage.unfelt:
            caught_up = over = outage.at
        elif last is not None and not self.world.protocol.settled(last):
            caught_up = None
        missing = self.world.ledger.missing(outage.lost)
        if not outage.unfelt and caught_up is not None and not self._for_good(outage, missing):
            over = self.calm_from(self.astray, caught_up)
        stretch = outage.at, self.end if over is None else over
        kind, where = outage.told or (outage.fault.kind, outage.fault.where)
        return {
            "kind": kind,
            "component": where,
            "failed_at_s": outage.at,
            "detected_at_s": None if outage.passes else outage.noticed,
            "ready_at_s": outage.back,
            "time_to_recover_s": None if over is None else over - outage.at,
            "state_recovery_s": self._state_recovery(outage, finished=last is None),
            "catch_up_s": None if caught_up is None else self._shown(outage, caught_up) - outage.at,
            "throughput_90_s": self._throughput_back(outage),
            "output_gap_s": longest_silence(self.run.outputs, *stretch),
            "sink_spacing_s": longest_silence(self.quiet.outputs, *stretch),
            **self._stages(outage, caught_up, over),
            "restored": outage.restored,
            "replayed": outage.replayed,
            "dropped": outage.dropped,
            "missing": missing,
            "extra": outage.extra,
            **self._tried(outage),
            "latency": summary(self._until_replayed(outage, lambda done: done.time - done.born)),
            "end_to_end": summary(self._until_replayed(outage, lambda done: done.time - done.first)),
        }

    def _last(self, outage: Outage, caught_up: int | None) -> Outage | None:
        """Of the fault and those that took its tasks before it was over, each before the one before it was,
        the last; None if all were over when its tasks were hit once more.
        """
        chain = [outage]
        for other in self.world.outages.all[outage.number + 1 :]:
            if set(other.tasks) & set(outage.tasks) and not other.unfelt:
                busy = any(one is old for one in chain for old in other.found_open)
                if caught_up is not None and caught_up < other.at and not busy:
                    return None
                chain.append(other)
        return chain[-1]

    def _for_good(self, outage: Outage, missing: int) -> bool:
        """Whether a state lacks something, or has it twice, and no window has ended since."""
        hit = {task.logical for task in outage.tasks if task.stateful and not task.idle}
        ended = {place[:2] for place, (time, _) in self.world.record.window_times.items() if time > outage.at}
        return bool(missing or outage.extra) and not hit <= ended

    def _shown(self, outage: Outage, caught_up: int) -> int:
        window, ready = self.world.scenario.run.lag_window, outage.back
        if window is None or ready is None or caught_up < ready:
            return caught_up
        number = (caught_up - ready) // window
        return ready + (number + 2) * window

    def _state_recovery(self, outage: Outage, finished: bool) -> int | None:
        settled = finished or self.world.protocol.settled(outage)
        if outage.last_replay is None or not settled or outage.back is None:
            return None
        cut = self.world.scenario.run.log_resolution or 1
        return (max(outage.last_replay, outage.back) // cut - outage.back // cut) * cut

    def _stages(self, outage: Outage, caught_up: int | None, over: int | None) -> dict[str, int | None]:
        """One after the other, each until what it names is done."""
        ends = {"detect_s": outage.noticed}
        if outage.passes:
            ends[PASSING] = outage.back
        elif self.world.listener is not None and outage.hit:
            ends |= zip(RESTART, (outage.ordered, outage.launched, outage.back), strict=True)
        ends["restart_s"] = outage.back
        if outage.written is not None:
            ends[WRITING] = outage.written
        ends |= {
            "restore_s": outage.restored_at,
            "wait_s": outage.timed_out_at,
            "replay_s": outage.last_replay,
        }
        reached, stages = outage.at, {}
        for name, end in ends.items():
            later = reached if end is None or outage.masked or outage.unfelt else max(reached, end)
            stages[name], reached = later - reached, later
        stages["catch_up_stage_s"] = None if caught_up is None else caught_up - reached
        stages["windows_stage_s"] = None if over is None or caught_up is None else over - caught_up
        return stages

    def _tried(self, outage: Outage) -> dict[str, int]:
        closed = getattr(self.world.scenario.detector, "connection", None)
        return {} if closed is None else {"failed_restarts": outage.failed_restarts}

    def _throughput_back(self, outage: Outage) -> int | None:
        over = self.work_done(outage)
        if over == outage.at:
            return 0
        if self.low is None:
            normal = self.quiet.in_ten_seconds().copy()
            normal[: 10 * SECOND // SLOT] = NEVER_REACHED  # before 10 s have passed nothing is
            self.least = around(normal, self.reach, self.reach, NEVER_REACHED).min(axis=1)
            self.low = (self.run.in_ten_seconds() < 0.9 * self.least) & (self.least < NEVER_REACHED)
        low, least = self.low, self.least
        first = outage.at // SLOT
        latest = first + over // SLOT - first + 10 * SECOND // SLOT
        fall = next((slot for slot in range(first, min(latest, self.run.slots)) if low[slot]), None)
        if fall is None:
            known = [each for each in least[first:latest] if each < NEVER_REACHED]
            return 0 if any(known) else None
        back = next((slot for slot in range(fall, self.run.slots) if not low[slot]), None)
        return None if back is None else (back - first) * SLOT

    def _until_replayed(self, outage: Outage, latency: Callable[[Any], int]) -> list[int]:
        """Of the tuples measured from the fault until the last one that was replayed because of it."""
        after = self.world.record.done[outage.done_before :]
        last = max((done.time for done in after if done.because == outage.number), default=None)
        if last is None:
            return []
        cut = self.world.scenario.run.log_resolution
        until = last if cut is None else (last // cut + 1) * cut - 1
        return [latency(done) for done in after if done.time <= until]

    def usual_seconds(self, rows: Iterable[dict[str, Any]]) -> list[int]:
        """The whole seconds after the warm-up that no fault, recovery or catch-up touches."""
        spans = []
        for outage, row in zip(self.world.outages.all, rows, strict=True):
            settled = row["catch_up_stage_s"] is not None
            reached = outage.at + self._reached(row) if settled else self.end
            if not outage.unfelt:
                spans.append((outage.at, max(reached, self.end if outage.back is None else outage.back)))
        first = -(-self.world.scenario.run.warmup // SECOND)
        per, touched = SECOND // SLOT, self.covered(spans)
        return [
            second
            for second in range(first, self.end // SECOND)
            if not touched[second * per + 1 : (second + 1) * per + 1].any()
        ]

    @staticmethod
    def _reached(row: dict[str, Any]) -> int:
        """From the fault until caught up, as the stages have it."""
        return sum(row.get(name, 0) for name in (*STAGES, "catch_up_stage_s"))


def longest_silence(outputs: list[int], begin: int, end: int) -> int | None:
    """Of those that end after ``begin``, and begin before ``end``, or at ``begin``."""
    found = [(one, later) for one, later in pairwise(outputs) if later > begin]
    return max((later - one for one, later in found if one < end or one <= begin), default=None)


def figures(world: World, quiet: World, verdict: Verdict, other: Verdict) -> Figures:
    """All figures of a run that has ended; ``quiet``: the same without failures."""
    both = Comparison(world, quiet, verdict, other)
    rows = [both.recovery(outage) for outage in world.outages.all]
    seconds = set(both.usual_seconds(rows))
    record = world.record
    usual = [done for done in record.done if done.time // SECOND in seconds]
    return Figures(
        recoveries=rows,
        latency=summary([done.time - done.born for done in usual]),
        end_to_end=summary([done.time - done.first for done in usual]),
        throughput=_throughput(world),
        windows=verdict.counts,
        cost=_cost(world, quiet),
        tasks={task.name: (record.busy[task], record.blocked[task], record.up[task]) for task in world.tasks},
        backlog=both.run.backlog,
        backlog_without_failures=both.quiet.backlog,
        present=both.run.present,
    )


def _throughput(world: World) -> dict[str, float | None]:
    """Of the whole seconds after the warm-up; a second has its last instant, not its first."""
    run = world.scenario.run
    seconds = range(-(-run.warmup // SECOND), run.duration // SECOND)
    counts = [sum(s * SECOND < done.time <= (s + 1) * SECOND for done in world.record.done) for s in seconds]
    if not counts:
        return dict.fromkeys(("mean", "min", "max"))
    return {"mean": statistics.fmean(counts), "min": min(counts), "max": max(counts)}


def _cost(world: World, quiet: World) -> dict[str, float | None]:
    delays = world.sinks.delays
    visible = {"visible_s": None, "visible_max_s": None} if world.sinks.withhold else {}
    if delays:
        visible = {"visible_s": sum(delays) / len(delays) / SECOND, "visible_max_s": max(delays) / SECOND}
    (cpu, sent), (normal_cpu, normally_sent) = (_work(each) for each in (world, quiet))
    return {
        "cpu_s": cpu,
        "network_bytes": sent,
        "normal_cpu_s": normal_cpu,
        "normal_network_bytes": normally_sent,
        "store_bytes": world.protocol.bytes_stored(),
        "peak_buffered_tuples": world.record.most_kept,
        "hosts": len(world.used),
        **visible,
    }


def _work(world: World) -> tuple[float, int]:
    """How long all tasks were busy (s), and what they sent to other hosts (bytes)."""
    sent = sum(channel.bytes_to_others for task in world.tasks for channel in task.inputs.values())
    return sum(world.record.busy.values()) / SECOND, sent + world.record.control_bytes

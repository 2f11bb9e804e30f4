"""The figures of a run, each with its definition, from what was recorded. `simulation` asks for them; a new
one is a value here, and a column in `tideover.models.schema`, which says where it is shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tideover.models.accounts.recoveries import Recovery
from tideover.models.config import hour_of_day
from tideover.models.evaluation.curves import (
    CALM,
    SECOND,
    SLACK,
    Axis,
    Bools,
    Curves,
    first_calm,
    greatest_near,
    least_near,
    reach_of,
    too_high,
)
from tideover.models.runtime.views import Outage
from tideover.models.schema import HEADLINE, ending
from tideover.models.world import World
from tideover.sim.recorder import SLOT
from tideover.sim.train import Ints
from tideover.sim.units import MS, S

Row = dict[str, Any]
Figures = dict[str, float | None]

_ABOVE_P95, _ABOVE_MEDIAN = 1.25, 300 * MS


def latency_figures(world: World, outage: Outage) -> Row:
    """``outage_end_s`` and ``latency_recovered_s`` of a failure, if the scenario asks for them: when the
    latency is normal again, as somebody reads it off a chart, second by second.

    M. Geldenhuys et al., *Demeter*, 2024 (arXiv 2403.02129), published latencies of this kind; a second is
    normal there if it lies below both bounds that ``normal_latency`` knows.
    """
    calm, end = world.scenario.run.calm, world.scenario.run.duration
    if calm is None:
        return {}
    back = outage.failed_at if outage.masked or outage.unfelt else outage.ready_at
    first = _normal_from(world, back, -(-calm // S)) if back <= end else None
    return {
        "outage_end_s": (back - outage.failed_at) / S if back <= end else None,
        "latency_recovered_s": None if first is None else max(0, first * S - outage.failed_at) / S,
    }


def _normal_from(world: World, since: int, seconds: int) -> int | None:
    """The first of so many seconds in a row, from that of ``since`` on, that are normal; None: there are none
    before the run ends. A second without a tuple is not.
    """
    every = np.arange(world.scenario.run.duration // S, dtype=np.int64)
    means, _ = world.recorder.latency.by_second(every)
    latency = np.array([np.inf if mean is None else mean for mean in means])
    failed = min(outage.failed_at for outage in world.outages) // S
    most = normal_latency(latency[-(-world.scenario.run.warmup // S) : failed])
    run = 0
    for second in range(since // S, len(latency)):
        run = run + 1 if latency[second] <= most else 0
        if run == seconds:
            return second - seconds + 1
    return None


def normal_latency(before: npt.NDArray[np.float64]) -> float:
    """The highest that is normal (ns): 1.25 times the 95th percentile of the seconds before the first
    failure, or 300 ms above their median, whichever is more.

    >>> import numpy as np
    >>> normal_latency(np.full(20, 2.0e9)) / 1e9
    2.5
    >>> normal_latency(np.array([])) / 1e9
    0.3
    """
    known = before[np.isfinite(before)]
    if not len(known):
        return float(_ABOVE_MEDIAN)
    return max(_ABOVE_P95 * float(np.quantile(known, 0.95)), float(np.median(known)) + _ABOVE_MEDIAN)


def failed_restarts(world: World, outage: Outage) -> Row:
    """How many restarts failed before the one that brought back what a failure had hit, if any could."""
    detector = world.scenario.detector
    if detector is None or not detector.tries_again:
        return {}
    return {"failed_restarts": outage.failed_restarts}


def drain_figures(lag: Ints, without: Ints, failed_at: int, spouts: int) -> Row:
    """How long queues before spouts take to drain: the greatest lag after a failure, and how long it is more
    than normal (s; None: to the end of the run); nothing if there are no queues.

    ``lag``, ``without``: unread records at the beginning of each second, of the run and of its reference.
    Normal is what it is of a backlog (`tideover.models.evaluation.curves`), looked at second by second.
    """
    if not len(lag):
        return {}
    first, calm = -(-failed_at // S), CALM // S
    near = greatest_near(without, calm)
    end, too_high = len(lag) - first, lag > np.maximum(SLACK * near, near + spouts)
    high = np.append(np.flatnonzero(too_high[first:]), end)
    rests = np.diff(high, prepend=-1) - 1  # seconds between those in which the lag is too great
    long_enough = np.flatnonzero((rests >= calm) | ((high == end) & (rests > 0)))
    if not len(long_enough):
        return {"max_lag": int(lag[first:].max(initial=0)), "drain_s": None}
    over = first + int(high[long_enough[0]] - rests[long_enough[0]])
    most = int(lag[first : over + 1].max(initial=0))
    return {"max_lag": most, "drain_s": 0.0 if over == first else over - failed_at / S}


def availability(recoveries: Iterable[Mapping[str, Any]], begin_s: float, end_s: float) -> Figures:
    """``availability``: the part of the time from ``begin_s`` to ``end_s`` outside of every recovery.

    Those that overlap count once; what is not recovered from by the end lasts until then. None: there is no
    such time.

    Availability is readiness for correct service (Avizienis et al., Basic Concepts and Taxonomy of Dependable
    and Secure Computing, 2004, section 2.3); correct is here what would have been without failures.
    """
    spans = [
        (one["failed_at_s"], end_s if one[HEADLINE] is None else one["failed_at_s"] + one[HEADLINE])
        for one in recoveries
    ]
    if end_s <= begin_s:
        return {"availability": None}
    down, reached = 0.0, begin_s
    for first, last in sorted(spans):
        down += max(0.0, min(last, end_s) - max(first, reached))
        reached = max(reached, last)
    return {"availability": 1 - down / (end_s - begin_s)}


TEN_SECONDS = 10 * SECOND
UNKNOWN = 1 << 62
"""More than any count."""


class Comparison:
    """A run with failures beside its reference, slot by slot, and the rows of its recoveries.

    behind    more backlog than normal, or something that a fault hit is down, or not yet restored or replayed
    wrong     that, or a window that will come out wrong, or does not come out when it is due
    beat      period (ns) of the backlog where tuples are done in batches: its peaks have to be normal; else 0
    """

    def __init__(self, world: World, found: Curves, without: Curves) -> None:
        self.world, self.found, self.without, self.axis = world, found, without, found.axis
        self.end = world.scenario.run.duration
        self.behind = too_high(found.present, without.present, without.beat, len(world.job.spouts))
        for recovery in world.recoveries.all:
            if (done := recovery.done_at) > recovery.outage.failed_at:
                self.behind[_slots(self.axis, recovery.outage.failed_at, done)] = True
        self.wrong = self.behind.copy()
        first = min((outage.failed_at for outage in world.outages), default=0)
        for place in found.bad.keys() - without.bad.keys():
            begin, end = found.bad[place]
            if end > first:
                self.wrong[_slots(self.axis, max(begin, first), end)] = True
        self.beat = without.beat if world.job.needs.batches else 0

    def normal_from(self, abnormal: Bools, since: int) -> int | None:
        """When the backlog (``behind``), or also what is put out (``wrong``), is what it would have been
        without failures (within the tolerance of `tideover.models.evaluation.curves`), and stays so for 4 s,
        or as long as a batch takes (ns); None: not before the run ends. Another failure before it is
        established prolongs it.
        """
        begin = self.axis.place(-(-since // SLOT)) + 1
        first = first_calm(abnormal, begin, self.beat)
        if first is None:
            return None
        return since if first == begin else self.axis.slot(first - 1) * SLOT

    def throughput_back(self, recovery: Recovery) -> float | None:
        """Seconds from the fault until throughput over 10 s is back at 90 % of what it would have been.

        What it would have been is the least of any whole 10 s that end within 4 s (or two beats) of that
        instant. A fall counts if it begins within 10 s of the time when the tasks were down or replays were
        under way: others are the load's own. 0 if there is none; None if it does not come back before
        the end, or if there is nothing to come back to: without failures, too, it is 0 now and then.
        """
        axis, at, recovered = self.axis, recovery.outage.failed_at, recovery.done_at
        failed = axis.place(at // SLOT)
        if recovered == at:
            return 0.0  # nothing was down
        whole = _trailing(self.without.done)
        whole[: axis.place(TEN_SECONDS)] = UNKNOWN
        looked_at = slice(failed, axis.place(self.end // SLOT) + 1)
        least = least_near(whole, reach_of(self.without.beat) // SLOT)[looked_at]
        low = (least < UNKNOWN) & (_trailing(self.found.done)[looked_at] < 0.9 * least)
        affected = axis.place(recovered // SLOT) - failed + TEN_SECONDS
        if not low[:affected].any():
            return 0.0 if ((least > 0) & (least < UNKNOWN))[:affected].any() else None
        dip = int(np.argmax(low))
        back = np.flatnonzero(~low[dip:])
        if not len(back):
            return None
        return (axis.slot(failed + dip + int(back[0])) - axis.slot(failed)) * SLOT / S

    def outcome(self, recovery: Recovery) -> tuple[bool, int | None, int | None]:
        """Of a recovery whether all was replayed that was to be, when the backlog was caught up with, and
        when it was over (ns; None: not by the end).

        Caught up is looked for from the moment when all that was hit is up and everything was restored and
        replayed: before it there is nothing to catch up with (source replay waits for its timeout with an
        empty backlog). If replicas masked the fault: from the fault. It is over when the windows that are put
        out are right, too, from then on.
        """
        outage, settled = recovery.outage, self.world.job.context.settled
        if outage.unfelt:
            return False, outage.failed_at, outage.failed_at
        caught_up = self.normal_from(self.behind, recovery.done_at)
        last = self._replaced_by(outage, caught_up)
        if last is not None and not settled(last):
            caught_up = None
        right = caught_up is not None and not self._state_is_wrong(recovery)
        over = self.normal_from(self.wrong, caught_up) if right and caught_up is not None else None
        return last is None or settled(outage), caught_up, over

    def _replaced_by(self, outage: Outage, caught_up: int | None) -> Outage | None:
        """Whose replay makes good what an outage took: its own, or that of the last that hit one of its tasks
        before all was replayed and ``caught_up`` (ns), and so took it over. None: all was before the next
        one.
        """
        chain = [outage]
        for later in self.world.outages[outage.number + 1 :]:
            if not later.unfelt and not set(later.tasks).isdisjoint(outage.tasks):
                caught = caught_up is not None and caught_up < later.failed_at
                if caught and not any(one in later.unsettled for one in chain):
                    return None
                chain.append(later)
        return chain[-1]

    def _state_is_wrong(self, recovery: Recovery) -> bool:
        """Whether, to the end of the run, a state lacks what the outage took, or has something twice: no
        window has ended since that would have cleared it.
        """
        state = self._state(recovery)
        if not (state["missing"] or state["extra"]):
            return False
        keep = [task for task in recovery.outage.tasks if getattr(task, "state", None) is not None]
        hit = [task for task in keep if not task.idle]
        failed, windows = recovery.outage.failed_at, self.world.windows
        return any(windows.last_of(task.component.name, task.index) <= failed for task in hit)

    def _state(self, recovery: Recovery) -> dict[str, int]:
        ledger = self.world.ledger
        missing = sum(ledger.missing(component, uid) for component, uid in recovery.lost_effects)
        return {
            "restored": recovery.restored,
            "replayed": recovery.replayed,
            "dropped": recovery.dropped,
            "missing": missing + recovery.missing_closed,
            "extra": ledger.extra[recovery.outage.number],
        }

    def row(self, recovery: Recovery, replayed: bool, caught_up: int | None, over: int | None) -> Row:
        """A row of the recoveries (times in s, latencies in ms), without the run's identity. ``replayed``:
        all that was to be sent again because of it was.
        """
        world, outage = self.world, recovery.outage
        found, without, at = self.found, self.without, recovery.outage.failed_at
        stretch = at, self.end if over is None else over
        shown = None if caught_up is None else (self._shown(outage, caught_up) - at) / S
        row: Row = {
            "kind": outage.kind,
            "component": outage.component,
            "failed_at_s": at / S,
            **hour_of_day(world.scenario, at),
            "detected_at_s": None if outage.passes else self._told(outage, outage.detected_at),
            "ready_at_s": self._told(outage, outage.ready_at),
            **failed_restarts(world, outage),
            "time_to_recover_s": None if over is None else (over - at) / S,
            "state_recovery_s": self._state_recovery(recovery) if replayed else None,
            "catch_up_s": shown,
            "throughput_90_s": self.throughput_back(recovery),
            "output_gap_s": longest_silence(found.outputs, *stretch),
            "sink_spacing_s": longest_silence(without.outputs, *stretch),
            **latency_figures(world, outage),
            **drain_figures(found.lag, without.lag, at, len(world.job.spouts)),
            **self._stages(recovery, caught_up, over),
            **self._state(recovery),
        }
        for what, span in (("latency", recovery.span), ("end_to_end", recovery.from_first or recovery.span)):
            row |= {f"{what}_{name}_ms": value for name, value in span.committed.summary(MS).items()}
        return row

    def _shown(self, outage: Outage, caught_up: int) -> int:
        """When a metric shows that the backlog is gone (ns): at once, or by ``run.lag_window``.

        Kafka's consumers keep the greatest lag of the current window and of the one before
        (``metrics.num.samples: 2``), counted from their start, which is here the moment of readiness. So what
        is over shows as over when the second window after it begins.
        """
        window = self.world.scenario.run.lag_window
        if window is None or caught_up < outage.ready_at:
            return caught_up
        return outage.ready_at + window * ((caught_up - outage.ready_at) // window + 2)

    def _state_recovery(self, recovery: Recovery) -> float | None:
        """From ready until the last replayed tuple has arrived (0: before all was ready); as the difference
        of two cut stamps if logs are cut. None: nothing was replayed.
        """
        if recovery.last_replay is None:
            return None
        resolution, ready = self.world.scenario.run.log_resolution or 1, recovery.outage.ready_at
        over = max(recovery.last_replay, ready)
        return (over // resolution - ready // resolution) * resolution / S

    def _told(self, outage: Outage, moment: int) -> float | None:
        """A moment (s) as the row has it. Where each fault says how long it takes, also what comes after the
        end is known.
        """
        return None if outage.stages is not None and moment > self.end else moment / S

    def _stages(self, recovery: Recovery, caught_up: int | None, over: int | None) -> Figures:
        """The time to recover in parts, one after the other: each ends when what it names is done, if that is
        later than all before. Those that come after the end of the run are None.
        """
        outage = recovery.outage
        moments: dict[str, int | None] = {"detect_s": outage.detected_at}
        if outage.stages is not None:
            ordered, launched = outage.stages
            moments |= {"delay_s": ordered, "launch_s": launched, "prepare_s": outage.ready_at}
        if outage.passes:
            moments["passing_s"] = outage.ready_at
        moments["restart_s"] = outage.ready_at
        if outage.written_at is not None:
            moments["write_s"] = outage.written_at
        moments |= {
            "restore_s": recovery.restored_at,
            "wait_s": recovery.timed_out_at,
            "replay_s": recovery.last_replay,
        }
        done, reached = recovery.done_at, outage.failed_at
        stages: Figures = {}
        for name, moment in moments.items():
            before, reached = reached, max(reached, min(moment or 0, done))
            stages[name] = None if self._told(outage, reached) is None else (reached - before) / S
        stages["catch_up_stage_s"] = None if caught_up is None else (caught_up - reached) / S
        stages["windows_stage_s"] = None if over is None or caught_up is None else (over - caught_up) / S
        return stages


def _slots(axis: Axis, begin: int, end: int) -> slice:
    """The places of slots with instants after ``begin`` up to ``end`` (ns); a slot has its last instant, not
    its first.
    """
    return slice(axis.place(begin // SLOT + 1), axis.place(-(-end // SLOT) + 1))


def _trailing(done: Ints) -> Ints:
    total = np.cumsum(done, dtype=np.int64)
    trailing = total.copy()
    trailing[TEN_SECONDS:] -= total[:-TEN_SECONDS]
    return trailing


def longest_silence(outputs: Ints, begin: int, end: int) -> float | None:
    """Longest silence of the sink (s) of those that contain or follow ``begin`` and start before ``end``
    (ns), or at ``begin``; None: there is none that is ended by an output.
    """
    starts, ends = outputs[:-1], outputs[1:]
    counted = (ends > begin) & ((starts < end) | (starts <= begin))
    return int((ends - starts)[counted].max()) / S if counted.any() else None


def recoveries(world: World, found: Curves, without: Curves) -> tuple[list[Row], Bools]:
    """One row per fault, and which slots of 10 ms are after the warm-up and outside every recovery and
    catch-up. ``without``: the reference, the same run without failures. The world's ledger is balanced.
    """
    both = Comparison(world, found, without)
    felt = [outage.number for outage in world.outages if not outage.unfelt]
    lost: Counter[int] = (
        Counter()
    )  # roots that each outage has cost, and would not have been lost without any
    for number, roots in world.losses.by_outage(np.setdiff1d(world.ledger.lost, without.hurt)).items():
        lost[max((one for one in felt if one <= number), default=-1)] += roots
    outside = found.axis.at > world.scenario.run.warmup // SLOT
    rows = []
    for recovery in world.recoveries.all:
        outage = recovery.outage
        replayed, caught_up, over = both.outcome(recovery)
        row = both.row(recovery, replayed, caught_up, over)
        roots = 0 if outage.unfelt else lost[outage.number]
        rows.append(row | {"ended": ending(row[HEADLINE], roots), "roots_lost": roots})
        if not outage.unfelt:
            reached = both.end if caught_up is None else caught_up
            outside[_slots(found.axis, outage.failed_at, max(reached, outage.ready_at))] = False
    return rows, outside


def steady_seconds(world: World, outside: Bools, axis: Axis) -> tuple[Bools, int]:
    """Which whole seconds after the warm-up are ``outside`` throughout (in those that are not kept nothing is
    done), and the first of them.
    """
    first = -(-world.scenario.run.warmup // S)
    last = world.scenario.run.duration // S
    steady = np.ones(max(0, last - first), dtype=bool)
    slots = outside[axis.slots_of(first, last)].reshape(-1, SECOND)
    steady[axis.seconds(first, last) - first] = np.logical_and.reduce(slots, axis=1)
    return steady, first


def timeline(world: World, curves: Curves, without: Curves) -> list[Row]:
    """One row per second: throughput, latency, greatest backlog, and what that would have been.

    A second has its first instant, not its last: what a fault does at 75 s is in the row of second 75. Of a
    long run only seconds near to what happens.
    """
    seconds = curves.axis.seconds(0, world.scenario.run.duration // S)
    slots, recorder = len(seconds) * SECOND, world.recorder
    done = curves.done[1 : slots + 1].reshape(-1, SECOND)
    backlog, normal = (each.backlog[:slots].reshape(-1, SECOND) for each in (curves, without))
    columns: dict[str, Sequence[Any]] = {
        "second": seconds.tolist(),
        "throughput_per_s": done.sum(axis=1, dtype=np.float64).tolist(),
    }
    for what, log in (("latency", recorder.latency), ("end_to_end", recorder.from_first or recorder.latency)):
        means, most = log.by_second(seconds)
        columns[f"{what}_mean_ms"] = [None if mean is None else mean / 1e6 for mean in means]
        columns[f"{what}_max_ms"] = [None if value is None else value / 1e6 for value in most]
    columns["backlog"] = backlog.max(axis=1).tolist()
    columns["backlog_without_failures"] = normal.max(axis=1).tolist()
    if world.lag.records:
        columns["lag"] = [world.lag.records[second] for second in columns["second"]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# The blocks of ``runs``: of a run as a whole.


def throughput(world: World, found: Curves) -> Figures:
    """Of the whole seconds after the warm-up."""
    first, last = -(-world.scenario.run.warmup // S), world.scenario.run.duration // S
    if last <= first:
        return {"mean": None, "min": None, "max": None}
    per_second = found.done[found.axis.slots_of(first, last)].reshape(-1, SECOND).sum(axis=1)
    every = len(per_second) == last - first  # in seconds that are not kept nothing is done
    return {
        "mean": float(per_second.sum() / (last - first)),
        "min": float(per_second.min()) if every else 0.0,
        "max": float(per_second.max()),
    }


def dependability(world: World, rows: Sequence[Row]) -> Figures:
    scenario = world.scenario
    found = availability(rows, scenario.run.warmup / S, scenario.run.duration / S)
    if scenario.detector is None or not scenario.detector.false_detections:
        return found
    return found | {"false_detections": sum(row["kind"] == "false_detection" for row in rows)}


def ledger(world: World, balance: Mapping[str, int]) -> dict[str, int]:
    """``balance``: what became of the roots."""
    return {
        **balance,
        "replayed": len(world.losses.replayed),
        "duplicated": world.ledger.duplicated,
        "false_timeouts": len(world.losses.false_timeouts),
        "late": len(world.losses.late),
    }


def windows(world: World) -> dict[str, int]:
    seen = world.windows.count  # without a reference nothing can have disturbed them
    counts = {"emitted": seen, "correct": seen, "wrong": 0, "missing": 0}
    if world.reference is not None:
        counts = world.reference.counts
    return counts if world.readers is None else counts | {"expired": world.readers.expired}


def cost(world: World, found: Curves, without: Curves) -> Figures:
    job, measured = world.job, world.recoveries
    # what an hour of the machines costs that have tasks or stand by
    prices = [h.price for h in job.deployment.cluster.hosts if h.number in job.used or h.reserve]
    given = [price for price in prices if price is not None]
    figures: Figures = {
        "cpu_s": found.cpu_s,
        "network_bytes": found.network_bytes,
        "normal_cpu_s": without.cpu_s,
        "normal_network_bytes": without.network_bytes,
        "store_bytes": sum(store.bytes for store in (job.store, *job.stores.values())),
        "peak_buffered_tuples": measured.peak_buffered,
        "hosts": len(job.used),
    }
    if given:
        figures["price_per_h"] = math.fsum(given)
    if job.needs.log and any(bound.holds_back for bound in job.deployment.bounds.values()):
        # barriers may have to wait in full queues
        took, aligned = [each for each, _ in measured.snapshots], [each for _, each in measured.snapshots]
        figures |= {
            "snapshots": len(took),
            "snapshot_s": sum(took) / len(took) / S if took else None,
            "snapshot_max_s": max(took) / S if took else None,
            "alignment_s": sum(aligned) / len(took) / S if took else None,
        }
    if world.readers is not None:
        delays = world.readers.delays
        mean = delays.mean  # which counts all of them
        figures["visible_s"] = None if mean is None else mean / S
        figures["visible_max_s"] = None if mean is None else delays.max / S
    return figures

"""From what was recorded to the figures of a recovery. Each docstring has its definition."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tideover.models.outage import Outage
from tideover.models.world import World
from tideover.sim.recorder import SLOT
from tideover.sim.train import Ints
from tideover.sim.units import S

Bools = npt.NDArray[np.bool_]

SECOND = S // SLOT
"""Slots in a second."""


class Curves(NamedTuple):
    """What a run looked like over time: one value per slot of 10 ms, and the moments of output.

    backlog   roots in the system at the slot's boundary
    present   roots in the system at any time in the slot: does not depend on where calls fall in a slot
    """

    backlog: Ints
    present: Ints
    done: Ints
    outputs: Ints


def curves(world: World) -> Curves:
    """The curves of a run that has ended."""
    end = world.scenario.run.duration
    backlog, present = world.recorder.backlog(end)
    return Curves(backlog, present, world.recorder.done.until(end), world.recorder.outputs())


def caught_up_at(world: World, curves: Curves, outage: Outage, usual: Bools, until: int) -> int | None:
    """When the backlog is back at or under its 99th percentile in the ``usual`` slots before the fault, for
    1 s (ns); None: not before ``until``.

    Looked for from the moment when the task is ready and everything was replayed: before it there is nothing
    to catch up with (source replay waits for its timeout with an empty backlog). If replicas masked the
    fault: from the fault. Where tuples are done in batches the backlog is a saw: its peaks are compared, and
    it has to stay down for a batch at least.
    """
    failed = outage.failed_at
    known = usual[: failed // SLOT + 1]
    before = curves.present[: len(known)][known]
    pulse = world.protocol.pulse(failed) // SLOT
    if len(before) > pulse > 0:
        before = np.lib.stride_tricks.sliding_window_view(before, pulse + 1).max(axis=1)
    if not len(before):
        return None
    normal = int(np.quantile(before, 0.99, method="inverted_cdf"))
    # spouts that were restarted may from then on call together: a root of each may always be on its way
    normal = normal + len(world.spouts) if pulse else max(normal, len(world.spouts))
    start = failed if outage.masked else max(failed, outage.ready_at, outage.last_replay or 0)
    begin, end = -(-start // SLOT), until // SLOT
    high = np.flatnonzero(curves.present[begin : end + 1] > normal)
    quiet_from = np.concatenate(([0], high + 1))
    quiet_to = np.concatenate((high, [end + 1 - begin]))
    long_enough = np.flatnonzero(quiet_to - quiet_from > max(SECOND, pulse))
    if not len(long_enough):
        return None
    first = int(quiet_from[long_enough[0]])
    return start if first == 0 else (begin + first) * SLOT


def _shown(world: World, outage: Outage, caught_up: int) -> int:
    """When a metric shows that the backlog is gone (ns): at once, or by ``run.lag_window``.

    Kafka's consumers keep the greatest lag of the current window and of the one before
    (``metrics.num.samples: 2``), counted from their start, which is here the moment of readiness. So what is
    over shows as over when the second window after it begins.
    """
    window = world.scenario.run.lag_window
    if window is None or caught_up < outage.ready_at:
        return caught_up
    return outage.ready_at + window * ((caught_up - outage.ready_at) // window + 2)


def throughput_back(curves: Curves, outage: Outage, usual: Bools, until: int) -> float | None:
    """Seconds from the fault until throughput over 10 s is back at 90 % of its mean in the ``usual`` slots
    before.

    A fall counts if it is deeper than any before the fault, and begins within 10 s of the time when the tasks
    were down or replays were under way: others are the load's own. 0 if there is none; None if it does not
    come back before ``until`` (ns).
    """
    failed = outage.failed_at // SLOT
    known = usual[: failed + 1]
    before = curves.done[: failed + 1][known]
    if not before.any():
        return None
    length = 10 * SECOND
    need = 0.9 * float(before.mean()) * length
    total = np.concatenate(([0], np.cumsum(curves.done)))
    spans = total[length : failed + 2] - total[: max(0, failed + 2 - length)]
    counted = np.concatenate(([0], np.cumsum(known)))
    whole = counted[length:] - counted[:-length] == length
    need = min(need, spans[whole].min(initial=need))
    ends = np.arange(failed, until // SLOT + 1)
    trailing = total[ends + 1] - total[np.maximum(ends + 1 - length, 0)]
    low = trailing < need
    recovered = max(outage.ready_at, outage.restored_at or 0, outage.last_replay or 0)
    if recovered == outage.failed_at:
        return 0.0  # nothing was down
    affected = (recovered - outage.failed_at) // SLOT + length
    if not low[:affected].any():
        return 0.0
    dip = int(np.argmax(low))
    back = np.flatnonzero(~low[dip:])
    return None if not len(back) else (dip + int(back[0])) * SLOT / S


def output_gap(outputs: Ints, failed: int, until: int) -> int | None:
    """Longest silence of the sink that contains or follows ``failed`` and ends at or before ``until``
    (ns).
    """
    starts, ends = outputs[:-1], outputs[1:]
    counted = (ends > failed) & (ends <= until)
    return int((ends - starts)[counted].max()) if counted.any() else None


def usual_spacing(gaps: Ints) -> float | None:
    """The silence (s) that half of the time is spent in shorter ones: tasks that put out together do not
    count as often.
    """
    if not len(gaps) or not gaps.any():
        return None
    ordered = np.sort(gaps)
    half = int(np.searchsorted(np.cumsum(ordered), ordered.sum() / 2))
    return float(ordered[half]) / S


def recoveries(world: World, curves: Curves) -> tuple[list[dict[str, Any]], Bools]:
    """One row per fault, and which slots of 10 ms are usual: after the warm-up, outside every recovery and
    catch-up.

    What is usual before a fault leaves out earlier ones, too: a backlog that one of them has left is not what
    the next has to come back to.
    """
    usual = np.arange(len(curves.done)) > world.scenario.run.warmup // SLOT
    rows = []
    for outage in world.outages:
        later = [o.failed_at for o in world.outages if o.failed_at > outage.failed_at]
        until = min([*later, world.scenario.run.duration])
        known = bool(usual[: outage.failed_at // SLOT + 1].any())
        caught_up = caught_up_at(world, curves, outage, usual, until)
        rows.append(_recovery(world, curves, outage, usual, until, caught_up))
        reached = [outage.ready_at, outage.restored_at, outage.last_replay]
        reached.append(until if caught_up is None and known else caught_up)
        over = max(moment for moment in reached if moment is not None)
        usual[outage.failed_at // SLOT + 1 : -(-over // SLOT) + 1] = False
    return rows, usual


def _recovery(
    world: World, curves: Curves, outage: Outage, usual: Bools, until: int, caught_up: int | None
) -> dict[str, Any]:
    """One row of the recoveries (times in s, latencies in ms), without the run's identity."""
    gap = output_gap(curves.outputs, outage.failed_at, until)
    gaps = np.diff(curves.outputs)
    replayed = outage.last_replay is not None and world.protocol.settled(outage)
    row: dict[str, Any] = {
        "kind": outage.kind,
        "component": outage.component,
        "failed_at_s": outage.failed_at / S,
        "detected_at_s": outage.detected_at / S,
        "ready_at_s": outage.ready_at / S,
        "state_recovery_s": _state_recovery(world, outage) if replayed else None,
        "catch_up_s": None
        if caught_up is None
        else (_shown(world, outage, caught_up) - outage.failed_at) / S,
        "throughput_90_s": throughput_back(curves, outage, usual, until),
        "output_gap_s": None if gap is None else gap / S,
        "sink_spacing_s": usual_spacing(gaps),
        **_stages(outage, caught_up),
        **_state(world, outage),
    }
    row |= {f"latency_{name}_ms": value for name, value in outage.span.committed.summary(1e6).items()}
    return row


def _state_recovery(world: World, outage: Outage) -> float:
    """From ready until the last replayed tuple has arrived (0: before all was ready); as the difference of
    two cut stamps if logs are cut.
    """
    assert outage.last_replay is not None
    resolution = world.scenario.run.log_resolution or 1
    over = max(outage.last_replay, outage.ready_at)
    return (over // resolution - outage.ready_at // resolution) * resolution / S


def _stages(outage: Outage, caught_up: int | None) -> dict[str, float | None]:
    restored, replayed = outage.restored_at, outage.last_replay
    done = max(t for t in (outage.ready_at, restored, replayed) if t is not None)
    return {
        "detect_s": (outage.detected_at - outage.failed_at) / S,
        "restart_s": (outage.ready_at - outage.detected_at) / S,
        # some may be restored, and replayed to, before the last of what was hit is ready
        "restore_s": None if restored is None else max(0, restored - outage.ready_at) / S,
        "replay_s": None if replayed is None else (done - max(outage.ready_at, restored or 0)) / S,
        "catch_up_stage_s": None if caught_up is None else max(0, caught_up - done) / S,
    }


def _state(world: World, outage: Outage) -> dict[str, int]:
    missing = sum(world.ledger.missing(task.component, uid) for task, uid in outage.lost_effects)
    return {
        "restored": outage.restored,
        "replayed": outage.replayed,
        "dropped": outage.dropped,
        "missing": missing + outage.missing_closed,
        "extra": outage.extra,
    }


def steady_seconds(world: World, usual: Bools) -> tuple[Bools, int]:
    """Which whole seconds after the warm-up are ``usual`` throughout, and the first of them."""
    first = -(-world.scenario.run.warmup // S)
    last = world.scenario.run.duration // S
    slots = usual[first * SECOND + 1 : last * SECOND + 1].reshape(-1, SECOND)
    return np.logical_and.reduce(slots, axis=1), first


def timeline(world: World, curves: Curves) -> list[dict[str, Any]]:
    """One row per second: throughput, latency, greatest backlog.

    A second has its first instant, not its last: what a fault does at 75 s is in the row of second 75.
    """
    rows = []
    for second in range(world.scenario.run.duration // S):
        begin, end = second * SECOND, (second + 1) * SECOND
        latency = world.recorder.latency.second(second)
        rows.append(
            {
                "second": second,
                "throughput_per_s": float(curves.done[begin + 1 : end + 1].sum()),
                "latency_mean_ms": None if latency is None or latency.mean is None else latency.mean / 1e6,
                "latency_max_ms": None if latency is None else latency.max / 1e6,
                "backlog": int(curves.backlog[begin:end].max(initial=0)),
            }
        )
    return rows

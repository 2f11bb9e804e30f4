"""What a Flink job's failures and checkpoints identify, what not, and what they predict of other failures.

A recovery is made of parts (`parts`): until it is detected, a delay before each restart, until there are
slots, until all tasks are deployed, until they have their state. Predictions put the parts together again as
Flink does it:

- A restart does not wait for what is lost: it comes its delay after the failure. Meanwhile a replacement may
  register, so slots are there at the later of both.
- If connections break with the process, the failure shows at once, but the JobManager counts the process
  among its own until heartbeats cannot be delivered, so restarts go to it in vain. If the machine or its
  network is lost, nothing shows until ``heartbeat.timeout`` after the last heartbeat, which came up to
  ``heartbeat.interval`` before.
- After a task's own exception slots are there at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs.catch_up import LOADS
from tideover.calibrate.logs.durations import ENDS, next_one, observed, spread
from tideover.calibrate.logs.findings import Failure, Prediction, Quantity, Setting, unknown

HEARTBEATS = (10.0, 50.0)
"""``heartbeat.interval`` and ``heartbeat.timeout`` of Flink (``HeartbeatManagerOptions``), s."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)", re.IGNORECASE)
_UNITS = {
    "": 1e-3,
    "ms": 1e-3,
    "milli": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_DRAWS = 1024
FACTORS = (0.5, 1.0, 5.0, 30.0)
"""Checkpoint intervals for which something is predicted, as parts of the one that was measured."""


class Parts(NamedTuple):
    """Durations (s) of the parts of all recoveries of a kind; a part that a log does not show lacks.

    detected     from the first sign until a task counts as failed
    delay        from then, or from a restart's failure, until the next restart
    restarts     how many restarts a recovery took
    slots        from the last restart until there are slots for all tasks
    replaced     from the first sign until there are slots for all tasks
    deployed     from slots until the last task has started
    loaded       from then until all tasks run
    """

    detected: list[float]
    delay: list[float]
    restarts: list[int]
    slots: list[float]
    replaced: list[float]
    deployed: list[float]
    loaded: list[float]
    outage: list[float]
    snapshot: list[float]


def parts(failures: Sequence[Failure]) -> Parts:
    found = Parts([], [], [], [], [], [], [], [], [])
    for failure in failures:
        found.detected.append(failure.after("detected") or 0.0)
        since = failure.at("detected")
        for stage in failure.stages:
            if stage.name == "restart_failed":
                since = stage.at
            elif stage.name == "restart_tried" and since is not None:
                found.delay.append(stage.at - since)
                since = None
        marks = [failure.at(name) for name in ("restart_tried", "slots", "deployed", "running", "snapshot")]
        tried, slots, deployed, running, snapshot = marks
        if running is None or tried is None:
            continue
        found.restarts.append(failure.attempts)
        found.outage.append(running - failure.began)
        if slots is not None:
            found.slots.append(slots - tried)
            found.replaced.append(slots - failure.began)
            found.deployed.append((deployed or running) - slots)
        found.loaded.append(running - (deployed or running))
        if snapshot is not None:
            found.snapshot.append(snapshot - running)
    return found


def seconds(text: str) -> float | None:
    """A duration as Flink's configuration has it (``TimeUtils``): without a unit, in milliseconds.

    >>> seconds("2000"), seconds("1 min"), seconds("1.5s"), seconds("soon")
    (2.0, 60.0, 1.5, None)
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    unit = found[2].lower()
    near = unit if unit in _UNITS else unit.rstrip("s")
    near = {"millisecond": "ms", "second": "s", "minute": "min", "hour": "h", "day": "d"}.get(near, near)
    return None if near not in _UNITS else float(found[1]) * _UNITS[near]


def heartbeats(settings: Mapping[str, Setting]) -> tuple[float, float]:
    """Interval and timeout, s; Flink's defaults where nothing is set."""
    keys = ("heartbeat.interval", "heartbeat.timeout")
    given = [seconds(settings[key].value) if key in settings else None for key in keys]
    interval, timeout = (
        default if value is None else value for value, default in zip(given, HEARTBEATS, strict=True)
    )
    return interval, timeout


def interval_of(checkpoints: pd.DataFrame, settings: Mapping[str, Setting]) -> tuple[float | None, str]:
    """The checkpoint interval, s, and where it is from: the configuration, or the checkpoints themselves."""
    key = "execution.checkpointing.interval"
    if key in settings and (given := seconds(settings[key].value)):
        return given, f"set at {settings[key].mark}"
    seen = checkpoints.dropna(subset=["triggered_at_s"]).sort_values("checkpoint")
    following = np.diff(seen["checkpoint"].to_numpy(float)) == 1
    apart = np.diff(seen["triggered_at_s"].to_numpy(float))[following]
    return (float(np.median(apart)), "as checkpoints were triggered") if len(apart) >= 2 else (None, "")


def quantities(
    failures: Sequence[Failure], checkpoints: pd.DataFrame, settings: Mapping[str, Setting]
) -> Iterator[Quantity]:
    """Values with their intervals, and last what the logs do not tell."""
    if failures:
        yield from _of_recoveries(failures)
    else:
        yield unknown("outage", "s", "no failure is in the logs; one whose log is given too tells its parts")
    given, told = interval_of(checkpoints, settings)
    every = "time between two checkpoints"
    if given is None:
        yield unknown(
            "checkpoint_interval", "s", f"{every}: neither set nor seen; REST's checkpoints would tell"
        )
    else:
        yield Quantity(
            "checkpoint_interval", "s", given, given, given, len(checkpoints), True, f"{every}, {told}"
        )
    done = checkpoints.dropna(subset=["duration_s"])
    yield spread(
        "checkpoint_duration",
        "s",
        done["duration_s"].tolist(),
        "from a checkpoint's trigger until it is complete",
    )
    yield spread("checkpoint_size", "bytes", done["size_bytes"].tolist(), "bytes that a checkpoint wrote")
    if failures:
        yield from _untold()


def _of_recoveries(failures: Sequence[Failure]) -> Iterator[Quantity]:
    killed, threw = (parts([f for f in failures if (f.kind == "kill") == lost]) for lost in (True, False))
    both = parts(failures)
    yield observed(
        "detected", killed.detected, "from the first sign of a lost process until a task counts as failed"
    )
    yield observed("restart_delay", both.delay, "from a failure until the restart after it")
    yield spread("restarts", "1", both.restarts, "restarts of one recovery, the ones in vain too")
    yield observed(
        "replacement", killed.replaced, "from the first sign of a lost process until there are slots again"
    )
    if threw.slots:
        yield observed(
            "slots", threw.slots, "from a restart until there are slots, where no process was lost"
        )
    yield observed("deployment", both.deployed, "from slots until the last task has started")
    yield observed("state_load", both.loaded, "from then until the last task has its state, and runs")
    yield observed("outage", both.outage, "from the first sign until all tasks run")
    yield observed("first_checkpoint", both.snapshot, "from then until the first checkpoint is complete")


def _untold() -> Iterator[Quantity]:
    kill = (
        "from the loss of a process until its first sign: not in a JobManager's log, so the times above are "
        "too short by it; what killed the process (the kernel, Kubernetes, a supervisor) tells when"
    )
    yield unknown("unseen", "s", kill)
    more = (
        "a series of the source's lag or rate from a minute before a failure until it is caught up tells it"
    )
    yield unknown("rate", "tuples/s", f"input rate: no log of Flink has it; {more}")
    yield unknown("capacity", "tuples/s", f"most that the job can do after an outage: {more}")
    yield unknown("catch_up", "s", f"from all tasks running until nothing waits: {more}")


MOST_HELP = (
    "a series of the source's lag (records_lag_max, pendingRecords) or of its rate, every few seconds, from "
    "a minute before a failure until what waited is worked off: it tells the rate, the capacity after an "
    "outage and the catch-up at once"
)
A_FAILURE = "one failure: kill a TaskManager of a job under its usual load, and give the log of that hour"


def draws(
    failures: Sequence[Failure], settings: Mapping[str, Setting], delay: float | None = None
) -> dict[str, Floats]:
    """Parts of the next recovery, drawn evenly from their distributions (a Halton sequence): s each."""
    from scipy.stats import qmc

    killed, both = parts([f for f in failures if f.kind == "kill"]), parts(failures)
    points = qmc.Halton(6, scramble=False).random(_DRAWS + 1)[1:]
    beat, timeout = heartbeats(settings)
    found = {"heartbeats": timeout - beat * points[:, 0]}
    seen = {
        "detected": killed.detected,
        "delay": both.delay if delay is None else [],
        "replaced": killed.replaced,
        "deployed": both.deployed,
        "loaded": both.loaded,
    }
    for column, (name, values) in enumerate(seen.items(), 1):
        if values:
            found[name] = next_one(values, points[:, column])
    if delay is not None:
        found["delay"] = np.full(_DRAWS, delay)
    return found


def even(n: int, step: float = 2**0.5) -> Floats:
    """Numbers that fill the unit interval evenly, in an order that has nothing to do with other draws."""
    return np.asarray((np.arange(n) + 0.5) * step % 1, float)


def predictions(
    failures: Sequence[Failure], checkpoints: pd.DataFrame, settings: Mapping[str, Setting]
) -> Iterator[Prediction]:
    """Outages of failures of other kinds and settings, and what waits after them; nothing if no recovery was
    seen whole.
    """
    drawn = draws(failures, settings)
    if "deployed" not in drawn or "loaded" not in drawn or "delay" not in drawn:
        return
    start = drawn["deployed"] + drawn["loaded"]
    outages = {"a task throws an exception": drawn["delay"] + start}
    again = outages["a task throws an exception"]
    if "replaced" in drawn:
        again = np.maximum(drawn["replaced"], drawn["detected"] + drawn["delay"]) + start
        outages |= {
            "a process is killed, and replaced as before": again,
            "a process is killed, with a spare slot": _spare(failures, drawn) + start,
            "a machine is lost, and replaced as before": (
                np.maximum(drawn["heartbeats"] + drawn["delay"], drawn["replaced"]) + start
            ),
        }
    for what, outage in outages.items():
        yield _told(what, "outage", outage)
    interval, _ = interval_of(checkpoints, settings)
    durations = checkpoints["duration_s"].dropna().to_numpy(float)
    if interval is None or not len(durations):
        return
    took, age = np.quantile(durations, even(_DRAWS)), even(_DRAWS, 5**0.5 / 2)
    for factor in FACTORS:
        every = factor * interval
        waits = again + age * np.maximum(every, took) + took
        at = f"checkpoints every {every:g} s"
        yield _told(at, "backlog", waits, "s of input")
        for load in LOADS:
            yield _told(f"{at}, load {100 * load:g} %", "catch_up", waits * load / (1 - load))


def _spare(failures: Sequence[Failure], drawn: Mapping[str, Floats]) -> Floats:
    """Until there are slots, if some are free elsewhere: restarts in vain are made all the same."""
    tries = max(1, round(float(np.median(parts([f for f in failures if f.kind == "kill"]).restarts))))
    return drawn["detected"] + tries * drawn["delay"]


def _told(what: str, measure: str, values: Floats, unit: str = "s") -> Prediction:
    low, middle, high = np.quantile(values, (ENDS[0], 0.5, ENDS[1])).tolist()
    return Prediction(what, measure, unit, middle, low, high)

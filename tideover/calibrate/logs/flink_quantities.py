"""What a Flink job's failures and checkpoints identify, what not, what they predict of other failures, and
as a profile for the scenario ``flink-recovery``.

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
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate.episodes import Floats
from tideover.calibrate.logs import durations
from tideover.calibrate.logs.durations import ENDS, LOADS, next_one, observed, spread
from tideover.calibrate.logs.findings import Failure, Prediction, Quantity, Setting, unknown
from tideover.calibrate.profile import six_digits
from tideover.calibrate.recoveries.profile import LOADING, OUTAGE, RESTART, UPLOAD

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)", re.IGNORECASE)
_UNITS = {
    "|ms|milli(second)?s?": 1e-3,
    "s|sec(ond)?s?": 1.0,
    "m|min(ute)?s?": 60.0,
    "h|hours?": 3600.0,
    "d|days?": 86400.0,
}
_DRAWS = 1024
FACTORS = (0.5, 1.0, 5.0, 30.0)
"""Checkpoint intervals for which something is predicted, as parts of the one that was measured."""
_PARTS = (
    ("detected", "kill", "from the first sign of a lost process until a task counts as failed"),
    ("restart_delay", "", "from a failure until the restart after it"),
    ("restarts", "", "restarts of one recovery, the ones in vain too"),
    ("replacement", "kill", "from the first sign of a lost process until there are slots again"),
    ("slots", "task", "from a restart until there are slots, where no process was lost"),
    ("deployment", "", "from slots until the last task has started"),
    ("state_load", "", "from then until the last task has its state, and runs"),
    ("outage", "", "from the first sign until all tasks run"),
    ("first_checkpoint", "", "from then until the first checkpoint is complete"),
)
"""What a recovery is made of: its name, of which kind of failures it is told (empty: of all), its meaning."""


def parts(failures: Sequence[Failure], kind: str = "") -> Mapping[str, list[float]]:
    """Durations (s) of the parts of recoveries, of a kind or all; a part that a log does not show lacks."""
    found: dict[str, list[float]] = defaultdict(list)
    for failure in failures:
        if kind and kind != failure.kind:
            continue
        found["detected"].append(failure.after("detected") or 0.0)
        since = failure.at("detected")
        for stage in failure.stages:
            if stage.name == "restart_failed":
                since = stage.at
            elif stage.name == "restart_tried" and since is not None:
                found["restart_delay"].append(stage.at - since)
                since = None
        names = ("restart_tried", "slots", "deployed", "running", "snapshot")
        tried, slots, deployed, running, snapshot = map(failure.at, names)
        if running is None or tried is None:
            continue
        found["restarts"].append(failure.attempts)
        found["outage"].append(running - failure.began)
        if slots is not None:
            found["slots"].append(slots - tried)
            found["replacement"].append(slots - failure.began)
            found["deployment"].append((deployed or running) - slots)
        found["state_load"].append(running - (deployed or running))
        if snapshot is not None:
            found["first_checkpoint"].append(snapshot - running)
    return found


def seconds(text: str) -> float | None:
    """A duration as Flink's configuration has it (``TimeUtils``): without a unit, in milliseconds.

    >>> seconds("2000"), seconds("1 min"), seconds("1.5s"), seconds("soon")
    (2.0, 60.0, 1.5, None)
    """
    if (found := _DURATION.fullmatch(text.strip())) is None:
        return None
    known = (size for unit, size in _UNITS.items() if re.fullmatch(unit, found[2], re.IGNORECASE))
    return next((float(found[1]) * size for size in known), None)


def heartbeats(settings: Mapping[str, Setting]) -> tuple[float, float]:
    """Interval and timeout, s; Flink's defaults (``HeartbeatManagerOptions``) where nothing is set."""

    def given(key: str, default: float) -> float:
        found = seconds(settings[key].value) if key in settings else None
        return default if found is None else found

    return given("heartbeat.interval", 10.0), given("heartbeat.timeout", 50.0)


def interval_of(checkpoints: pd.DataFrame, settings: Mapping[str, Setting]) -> tuple[float | None, str]:
    """The checkpoint interval, s, and where it is from: the configuration, or the checkpoints themselves."""
    key = "execution.checkpointing.interval"
    if key in settings and (given := seconds(settings[key].value)):
        return given, f"set at {settings[key].mark}"
    seen = checkpoints.dropna(subset=["triggered_at_s"]).sort_values("checkpoint")
    apart = seen["triggered_at_s"].diff()[seen["checkpoint"].diff() == 1]
    return (float(apart.median()), "as checkpoints were triggered") if len(apart) >= 2 else (None, "")


def quantities(
    failures: Sequence[Failure], checkpoints: pd.DataFrame, settings: Mapping[str, Setting]
) -> Iterator[Quantity]:
    """Values with their intervals, and last what the logs do not tell."""
    if not failures:
        yield unknown("outage", "s", "no failure is in the logs; one whose log is given too tells its parts")
    for name, kind, meaning in _PARTS if failures else ():
        seen = parts(failures, kind)[name]
        if name == "restarts":
            yield spread(name, "1", seen, meaning)
        elif seen or name != "slots":
            yield observed(name, seen, meaning)
    every, told = interval_of(checkpoints, settings)
    name, meaning = "checkpoint_interval", "time between two checkpoints"
    if every is None:
        yield unknown(name, "s", f"{meaning}: neither set nor seen; REST's checkpoints would tell")
    else:
        yield Quantity(name, "s", every, every, every, len(checkpoints), True, f"{meaning}, {told}")
    done = checkpoints.dropna(subset=["duration_s"])
    meaning = "from a checkpoint's trigger until it is complete"
    yield spread("checkpoint_duration", "s", done["duration_s"].tolist(), meaning)
    yield spread("checkpoint_size", "bytes", done["size_bytes"].tolist(), "bytes that a checkpoint wrote")
    for untold in _UNTOLD if failures else ():
        yield unknown(*untold)


_SERIES = "a series of the source's lag or rate from a minute before a failure until it is caught up tells it"
_UNTOLD = (
    (
        "unseen",
        "s",
        "from the loss of a process until its first sign: not in a JobManager's log, so the times above are "
        "too short by it; what killed the process (the kernel, Kubernetes, a supervisor) tells when",
    ),
    ("rate", "tuples/s", f"input rate: no log of Flink has it; {_SERIES}"),
    ("capacity", "tuples/s", f"most that the job can do after an outage: {_SERIES}"),
    ("catch_up", "s", f"from all tasks running until nothing waits: {_SERIES}"),
)
MOST_HELP = (
    "a series of the source's lag (records_lag_max, pendingRecords) or of its rate, every few seconds, from "
    "a minute before a failure until what waited is worked off: it tells the rate, the capacity after an "
    "outage and the catch-up at once"
)
A_FAILURE = "one failure: kill a TaskManager of a job under its usual load, and give the log of that hour"


def draws(failures: Sequence[Failure], settings: Mapping[str, Setting]) -> dict[str, Floats]:
    """Parts of the next recovery, drawn evenly from their distributions (a Halton sequence): s each."""
    from scipy.stats import qmc

    points = qmc.Halton(6, scramble=False).random(_DRAWS + 1)[1:].T
    beat, timeout = heartbeats(settings)
    found = {"heartbeats": timeout - beat * points[0]}
    killed = dict.fromkeys(("detected", "replacement"), "kill")
    names = ("detected", "restart_delay", "replacement", "deployment", "state_load")
    for name, quantiles in zip(names, points[1:], strict=True):
        if seen := parts(failures, killed.get(name, ""))[name]:
            found[name] = next_one(seen, quantiles)
    return found


def _scattered(n: int, step: float = 2**0.5) -> Floats:
    """Numbers that fill the unit interval evenly, in an order that has nothing to do with other draws."""
    return np.asarray((np.arange(n) + 0.5) * step % 1, float)


def predictions(
    failures: Sequence[Failure], checkpoints: pd.DataFrame, settings: Mapping[str, Setting]
) -> Iterator[Prediction]:
    """Outages of other failures and settings, and what waits then; nothing if no recovery was seen whole."""
    drawn = draws(failures, settings)
    if not {"deployment", "state_load", "restart_delay"} <= drawn.keys():
        return
    delay, start = drawn["restart_delay"], drawn["deployment"] + drawn["state_load"]
    again = delay + start
    outages = {"a task throws an exception": again}
    if "replacement" in drawn:
        replaced, detected, silent = (drawn[name] for name in ("replacement", "detected", "heartbeats"))
        again = np.maximum(replaced, detected + delay) + start
        # Where slots are free elsewhere, restarts in vain are made all the same.
        tries = max(1, round(float(np.median(parts(failures, "kill")["restarts"]))))
        outages |= {
            "a process is killed, and replaced as before": again,
            "a process is killed, with a spare slot": detected + tries * delay + start,
            "a machine is lost, and replaced as before": np.maximum(silent + delay, replaced) + start,
        }
    for what, outage in outages.items():
        yield _told(what, "outage", outage)
    interval, _ = interval_of(checkpoints, settings)
    lasted = checkpoints["duration_s"].dropna().to_numpy(float)
    if interval is None or not len(lasted):
        return
    took, age = np.quantile(lasted, _scattered(_DRAWS)), _scattered(_DRAWS, 5**0.5 / 2)
    for factor in FACTORS:
        every = factor * interval
        waits = again + age * np.maximum(every, took) + took
        at = f"checkpoints every {every:g} s"
        yield _told(at, "backlog", waits, "s of input")
        for load in LOADS:
            yield _told(f"{at}, load {100 * load:g} %", "catch_up", waits * load / (1 - load))


def _told(what: str, measure: str, values: Floats, unit: str = "s") -> Prediction:
    low, middle, high = np.quantile(values, (ENDS[0], 0.5, ENDS[1])).tolist()
    return Prediction(what, measure, unit, middle, low, high)


def as_profile(
    source: str, failures: Sequence[Failure], checkpoints: pd.DataFrame, settings: Mapping[str, Setting]
) -> dict[str, Any] | None:
    """A profile as plain data; None if no recovery from the loss of a process was seen whole.

    The rate and the capacity are not in it: no log tells them, so the scenario's own count.
    """
    drawn = draws(failures, settings)
    if len(drawn) < 6:
        return None
    slots = np.maximum(drawn["replacement"] - drawn["detected"], drawn["restart_delay"])
    values = {OUTAGE: drawn["detected"], RESTART: slots + drawn["deployment"], LOADING: drawn["state_load"]}
    lasted = checkpoints["duration_s"].dropna().to_numpy(float)
    if len(lasted):
        values[UPLOAD] = np.quantile(lasted, _scattered(_DRAWS))
    fixed, ranges = {"run.calm": "15 s"}, dict[str, Any]()
    if every := interval_of(checkpoints, settings)[0]:
        fixed["strategy.aligned_snapshots.checkpoint_interval"] = six_digits(every)
        ranges["interval"] = {"low": six_digits(every), "high": six_digits(every)}
    told = {
        "measurements": sum(failure.kind == "kill" for failure in failures),
        "method": "stages of recoveries in a JobManager's log; the next ones by Student's distribution",
        "not_identified": "input rate, capacity, and the time from a kill to its first sign",
    }
    middle = {key: float(np.median(those)) for key, those in values.items()}
    more = {"ranges": ranges, "scatter": {"outage_end_s": 0.0}}
    return durations.as_profile(source, middle, values, fixed, six_digits, told, **more)

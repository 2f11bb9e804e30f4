"""Measured kills, what is fitted to those that are not held out, and each kill's simulated counterpart.

`analysis` reads them from a campaign's tables. What happened is defined as for PySpark
(`tideover.calibrate.episodes`): the sink's longest silence, and when the backlog is normal again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pandas as pd

from tideover.calibrate import episodes
from tideover.calibrate.counterpart import created, exact
from tideover.calibrate.episodes import CALM, DISTURBED, NAN, PRE, SETTLE, BacklogCurve, Figures, Floats
from tideover.calibrate.fits import Law, fluid_law
from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.kernel import standing

SILENT_S = 0.5
"""The sink is never silent for so long while the job runs."""
IN_FLIGHT_S = 0.15
"""Longer than what is on its way between two tasks: Flink's buffers wait for 0.1 s at most."""
SETTLED_S = 2.0
"""A job that has more than the rows of so many seconds before it has not caught up."""
LEAST_S = 1e-3
"""A stage that is shorter takes no time, as the log has ms."""
REFUSED_S = 0.05
"""Of a restart on a lost TaskManager until it fails, where none was seen: the simulator's default."""
LAG_S = 1.0
"""By so much, at most, the sink's last note before a kill is older than the kill, while the job runs."""


@dataclass(frozen=True)
class Kill:
    """One kill of a TaskManager; times in s since the session's t0, stages as in `tables`.

    disturbed   by other programs, while others were not
    snapshot_s  how long checkpoints of the session took, in the median
    curve       of the whole session
    """

    session: str
    episode: int
    held_out: bool
    interval_s: float
    heartbeat_s: float
    timeout_s: float
    restart_delay_s: float
    rate_per_s: float
    begin_s: float
    end_s: float
    at_s: float
    triggered_s: float
    detected_s: float
    restarts: int
    refused_s: float
    given_up_s: float
    freed_s: float
    registered_s: float
    ordered_s: float
    slots_s: float
    running_s: float
    output_s: float
    few: int
    many: int
    others_cores: float
    snapshot_s: float
    curve: BacklogCurve
    disturbed: bool = False

    @property
    def fitted(self) -> bool:
        return not self.held_out and not self.disturbed

    @property
    def since_s(self) -> float:
        """From when on what is seen before the kill is normal."""
        return max(self.begin_s + SETTLE, self.at_s - max(PRE, self.interval_s + 1))

    @property
    def settled(self) -> bool:
        """Whether the job had caught up before the kill with what had been before that."""
        return episodes.normal(self.curve, self.since_s, self.at_s) <= SETTLED_S * self.rate_per_s

    @property
    def age_s(self) -> float:
        """From the begin of the checkpoint that the job goes back to until the kill."""
        return self.at_s - self.triggered_s

    @property
    def outage_s(self) -> float:
        """From the kill until rows are put out again, be it for the second time."""
        return self.output_s - self.at_s

    def figures(self) -> Figures:
        """What was measured; what was not over by the end of the episode is missing."""
        found = episodes.recovery(self.curve, self.since_s, self.at_s, self.end_s)
        if not found.get("output_gap_s", NAN) > self.outage_s - IN_FLIGHT_S - LAG_S:
            return {}  # the sink was still silent
        return found

    def work(self) -> tuple[float, float]:
        """Rows that the job has done, from the checkpoint on, until it has caught up, or the episode is over;
        and how long it took (s). NaN: it was silent to the end, or there was nothing to catch up with.
        """
        figures = self.figures()
        back = figures.get("catch_up_s", self.end_s - self.at_s)
        if not figures or back <= self.outage_s:
            return NAN, NAN
        first, last = np.interp([self.triggered_s, self.at_s + back], *self.curve.emitted)
        left = self.curve.backlog(np.array([self.at_s + back]))[0]
        return float(last - left - first), back - self.outage_s


_SETTINGS = ("interval_s", "heartbeat_s", "timeout_s", "restart_delay_s")


def kills(tables: Mapping[str, pd.DataFrame]) -> list[Kill]:
    """All kills of a campaign that struck a job which had ``settled``, and had a checkpoint to go back to, in
    sessions that did not fail; ``tables`` as the campaign returns them.
    """
    found = []
    for session in tables["sessions"].to_dict("records"):
        if session["error"]:
            continue
        mine = {name: table[table["session"] == session["session"]] for name, table in tables.items()}
        done = mine["checkpoints"]["status"] == "COMPLETED"
        shared = {
            **{name: float(session[name]) for name in _SETTINGS},
            "snapshot_s": float(mine["checkpoints"]["duration_s"][done].median()),
            "curve": _curve(mine["outputs"], str(session["pieces"]), float(session["end_s"])),
        }
        for row in mine["kills"].sort_values("episode").to_dict("records"):
            taken = {str(key): value for key, value in row.items() if key not in ("victim",)}
            found.append(Kill(**{**taken, **shared}))
    found = [kill for kill in found if np.isfinite(kill.age_s) and kill.settled]
    quiet = any(not k.held_out and not k.others_cores > DISTURBED for k in found)
    return [replace(k, disturbed=quiet and k.others_cores > DISTURBED) for k in found]


def _curve(outputs: pd.DataFrame, pieces: str, end: float) -> BacklogCurve:
    told = json.loads(pieces)
    least = IN_FLIGHT_S * max(rate for _, rate in told)
    moments, rows = episodes.new_outputs(*(outputs[name].to_numpy(float) for name in ("at_s", "rows")))
    return BacklogCurve(*without_trickle(moments, rows, least), episodes.emitted(told, end))


def without_trickle(moments: Floats, rows: Floats, least: float) -> tuple[Floats, Floats]:
    """Outputs (s, and rows done) without those that do not end a silence of ``SILENT_S``, as they bring less
    than ``least`` rows more.

    When a process dies its channels have got on differently far, by what waits in network buffers for
    ``execution.buffer-timeout``. The first task that is back may fill up what the others had, and be silent
    again until they are.
    """
    kept: list[int] = []
    for i in range(len(moments)):
        if kept and moments[i] - moments[kept[-1]] > SILENT_S and rows[i] - rows[kept[-1]] < least:
            continue
        kept.append(i)
    return moments[kept], rows[kept]


@dataclass(frozen=True)
class Costs:
    """What a kill costs, s, as fitted; ``capacity``: rows per second, all tasks together.

    connection    from the kill until the first task fails, as its connection is lost
    refused       from a restart on the lost TaskManager until it fails
    given_up      from the kill until the lost TaskManager is no longer reachable
    replacement   from the kill until another TaskManager has registered
    prepare       from then, from when the last restart was ordered, or from when whoever gives out slots has
                  given up the lost TaskManager, whichever is last, until the first row is put out
    snapshot      from the begin of a checkpoint until it is complete
    outage        from the kill until the first row is put out, whatever it was made of
    """

    connection: float
    refused: float
    given_up: float
    replacement: float
    prepare: float
    snapshot: float
    capacity: float
    outage: float


def fit(found: Sequence[Kill], weights: Floats | None = None) -> Costs:
    """Weighted geometric means over the kills of what the log says of each, as times on a busy machine differ
    by factors; the capacity is that of all their work together.
    """
    w = np.ones(len(found)) if weights is None else weights

    def total(values: Sequence[float]) -> float:
        return float(np.nansum(w * np.array(values, float)))

    def mean(values: Sequence[float]) -> float:
        known = np.isfinite(values) & (w > 0)
        logs = np.log(np.maximum(np.array(values, float)[known], LEAST_S))
        return float(np.exp(np.average(logs, weights=w[known]))) if known.any() else NAN

    rows, lasted = (total(column) for column in zip(*(kill.work() for kill in found), strict=True))
    return Costs(
        connection=mean([k.detected_s - k.at_s for k in found]),
        refused=float(np.nan_to_num(mean([k.refused_s for k in found]), nan=REFUSED_S)),
        given_up=mean([k.given_up_s - k.at_s for k in found]),
        replacement=mean([k.registered_s - k.at_s for k in found]),
        prepare=mean([k.output_s - np.fmax.reduce((k.registered_s, k.ordered_s, k.freed_s)) for k in found]),
        snapshot=mean([k.snapshot_s for k in found]),
        capacity=rows / lasted,
        outage=mean([k.outage_s for k in found]),
    )


def fluid(found: Sequence[Kill]) -> Law:
    """The fluid law of kills; what is gone back to is a checkpoint."""
    seen = [(kill.rate_per_s, kill.age_s, kill.figures()) for kill in found]
    return fluid_law([one for one in seen if one[2]])


# The simulated counterpart of a kill.

LONGEST_S = 120.0
"""A recovery is looked at for so long, though the real episode may have been over sooner."""
RPC_FAILURES = 2
"""Flink's default of ``heartbeat.rpc-failure-threshold``."""
_ROOTS_PER_S = 200
"""Of a simulation: one is done every 5 ms, and the sink's own notes are 20 ms apart."""


@dataclass(frozen=True)
class Simulated:
    """A simulated kill, in s since its own zero; rows, as the ledger says; restarts that were tried."""

    kill: Kill
    curve: BacklogCurve
    failed_s: float
    lost: int
    duplicated: int
    restarts: int

    def figures(self) -> Figures:
        """Defined as those of the kill; what is not over ``LONGEST_S`` after it is missing."""
        until = self.failed_s + LONGEST_S
        return episodes.recovery(self.curve, self.failed_s - PRE, self.failed_s, until)


def scenario(kill: Kill, costs: Costs, seed: int = 1) -> tuple[Scenario, float]:
    """The job as it was measured, struck as long after the begin of the checkpoint that it goes back to; and
    when that is, s.

    How the loss is noticed, and what restarts come of it, is the detector's; ``seed``: of its heartbeats.
    """
    last = ceil(PRE / kill.interval_s + 1) * kill.interval_s
    # If the next one was under way, it is lost; here the kill comes as that begins.
    inside = min(max(kill.age_s / kill.interval_s, 1e-6), 1.0)
    failed = last + inside * kill.interval_s
    job: dict[str, Any] = {"bolt": "windowed_count", "from": {"log": "shuffle"}, "window": "60 s"}
    detector: dict[str, Any] = {
        "kind": "heartbeats",
        "interval": exact(kill.heartbeat_s),
        "timeout": exact(kill.timeout_s),
        "connection": exact(costs.connection),
        "rpc_failure_threshold": RPC_FAILURES,
        "failed_deployment": exact(costs.refused),
        "replacement": exact(costs.replacement),
        "prepare": exact(costs.prepare),
        "restarts": {"kind": "fixed_delay", "delay": exact(kill.restart_delay_s)},
    }
    crash = {"kind": "crash_task", "component": "job", "at": exact(last), "in_interval": round(inside, 9)}
    asked = {
        "name": "a killed TaskManager",
        "topology": {
            "log": {"spout": "keys", "keys": 1, "offset": "0 s", "rate": f"{kill.rate_per_s:.9g}/s"},
            "job": job | {"service": exact(1 / costs.capacity)},
        },
        "strategy": {
            "kind": "aligned_snapshots",
            "checkpoint_interval": exact(kill.interval_s),
            "upload_time": exact(costs.snapshot),
        },
        "detector": detector,
        "failures": [crash],
        "run": {
            "duration": exact(failed + LONGEST_S + 2 * CALM),
            "seed": seed,
            "lump_rate": f"{_ROOTS_PER_S}/s",
        },
    }
    return load(asked), failed


@standing()  # the worlds go when it ends
def simulated(kill: Kill, costs: Costs, seed: int = 1) -> Simulated:
    """Simulate the counterpart of a kill."""
    asked, failed = scenario(kill, costs, seed)
    world = World(coarsened(asked), judge_windows=False)
    world.run()
    lump = coarseness(asked)
    moments, rows = created(world, asked)
    inside, _ = world.recorder.backlog(asked.run.duration)
    done = np.maximum.accumulate(rows - inside * lump)
    new = np.concatenate(([done[0] > 0], np.diff(done) > 0))
    curve = BacklogCurve(moments[new], done[new], (moments, rows))
    outage, *_ = world.outages
    lost, twice = world.balance()["lost"] * lump, world.ledger.duplicated * lump
    return Simulated(kill, curve, failed, lost, twice, outage.failed_restarts + 1)

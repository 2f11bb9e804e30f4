"""The simulated counterpart of a measured kill; `analysis` asks for its figures."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from tideover.calibrate.episodes import CALM, PRE, BacklogCurve, Figures, catch_up, output_gap
from tideover.calibrate.flink.kills import Costs, Kill
from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario
from tideover.models.job.components import SpoutConfig
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.kernel import standing
from tideover.sim.recorder import SLOT
from tideover.sim.units import S

LONGEST_S = 120.0
"""A recovery is looked at for so long, though the real episode may have been over sooner."""
RPC_FAILURES = 2
"""Flink's default of ``heartbeat.rpc-failure-threshold``."""
_ROOTS_PER_S = 200
"""Of a simulation: one is done every 5 ms, and the sink's own notes are 20 ms apart."""


@dataclass(frozen=True)
class Simulated:
    """A simulated kill, in s since its own zero; ``lost`` and ``duplicated``: rows, as the ledger says;
    ``restarts``: that were tried, the last of which went well.
    """

    kill: Kill
    curve: BacklogCurve
    failed_s: float
    lost: int
    duplicated: int
    restarts: int

    def figures(self) -> Figures:
        """Defined as those of the kill; what is not over ``LONGEST_S`` after it is missing."""
        until = self.failed_s + LONGEST_S
        gap = output_gap(self.curve, self.failed_s, until)
        back = catch_up(self.curve, self.failed_s - PRE, self.failed_s, until)
        both = {"output_gap_s": gap, "catch_up_s": back}
        return {measure: value for measure, value in both.items() if value is not None}


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
        "interval": _time(kill.heartbeat_s),
        "timeout": _time(kill.timeout_s),
        "connection": _time(costs.connection),
        "rpc_failure_threshold": RPC_FAILURES,
        "failed_deployment": _time(costs.refused),
        "replacement": _time(costs.replacement),
        "prepare": _time(costs.prepare),
        "restarts": {"kind": "fixed_delay", "delay": _time(kill.restart_delay_s)},
    }
    asked = {
        "name": "a killed TaskManager",
        "topology": {
            "log": {"spout": "keys", "keys": 1, "offset": "0 s", "rate": f"{kill.rate_per_s:.9g}/s"},
            "job": job | {"service": _time(1 / costs.capacity)},
        },
        "strategy": {
            "kind": "aligned_snapshots",
            "checkpoint_interval": _time(kill.interval_s),
            "upload_time": _time(costs.snapshot),
        },
        "detector": detector,
        "failures": [
            {"kind": "crash_task", "component": "job", "at": _time(last), "in_interval": round(inside, 9)}
        ],
        "run": {
            "duration": _time(failed + LONGEST_S + 2 * CALM),
            "seed": seed,
            "lump_rate": f"{_ROOTS_PER_S}/s",
        },
    }
    return load(asked), failed


def _time(seconds: float) -> str:
    return f"{max(0, round(seconds * 1e9))} ns"


@standing()  # the worlds go when it ends
def simulated(kill: Kill, costs: Costs, seed: int = 1) -> Simulated:
    """Simulate the counterpart of a kill."""
    asked, failed = scenario(kill, costs, seed)
    world = World(coarsened(asked), judge_windows=False)
    world.run()
    lump = coarseness(asked)
    spout = world.job.topology.spouts[0].config
    assert isinstance(spout, SpoutConfig)
    # Rows created up to each slot boundary. Those that entered the system are more: a row that is read again
    # enters again.
    slots = np.arange(asked.run.duration // SLOT + 1)
    created = (slots * SLOT // round(spout.arrivals.mean_gap_ns) + 1).astype(np.float64) * lump
    inside, _ = world.recorder.backlog(asked.run.duration)
    done = np.maximum.accumulate(created - inside * lump)
    new = np.concatenate(([done[0] > 0], np.diff(done) > 0))
    moments = slots.astype(np.float64) * (SLOT / S)
    curve = BacklogCurve(moments[new], done[new], (moments, created))
    outage, *_ = world.outages
    lost, twice = world.balance()["lost"] * lump, world.ledger.duplicated * lump
    return Simulated(kill, curve, failed, lost, twice, outage.failed_restarts + 1)

"""The simulated counterpart of a measured kill; `analysis` asks for its figures."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from tideover.calibrate.counterpart import created, exact
from tideover.calibrate.episodes import CALM, PRE, BacklogCurve, Figures, recovery
from tideover.calibrate.flink.kills import Costs, Kill
from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.kernel import standing

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
        return recovery(self.curve, self.failed_s - PRE, self.failed_s, until)


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
        "failures": [
            {"kind": "crash_task", "component": "job", "at": exact(last), "in_interval": round(inside, 9)}
        ],
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

"""The simulated counterpart of a measured episode.

`fits` and `comparison` ask for its figures. What is fitted through it is a value of `profile`, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from tideover.calibrate import episodes
from tideover.models.coarsening import coarsened, coarseness
from tideover.models.config import Scenario
from tideover.models.job.components import SpoutConfig
from tideover.models.mechanisms import batches
from tideover.models.world import World
from tideover.scenarios.loader import load
from tideover.sim.kernel import standing
from tideover.sim.recorder import SLOT
from tideover.sim.units import S

ROOTS_PER_S = 40.0
"""Of a simulation: a batch sees only how many rows it has."""
KEYS = 100
WHOLE_S = 10_000.0
"""A window that does not end: a running count."""
BEFORE_S = 16.0
"""Simulated time (s) between the loss of an executor and that of the one that took its place."""
WARM = 3
"""Batches at the start that are not looked at."""
NOISY_RUNS = 40
"""How often the noise of an episode's batches is drawn anew."""
SETTLED = 12
"""Batches that a steady episode is simulated for; the first few see the empty start."""


@dataclass(frozen=True)
class Costs:
    """What a batch costs (s): of one strategy, pipeline and master.

    row_s        of a row, in the task that reads it
    state_row_s  of a row of state, in the task that keeps it; state_s: of a stateful task, on top
    noise        standard deviation of the log of the duration of batches that are alike
    """

    plan_s: float
    task_s: float
    row_s: float
    state_s: float
    state_row_s: float
    output_s: float
    commit_s: float
    noise: float = 0.0


@dataclass(frozen=True)
class Faults:
    """What a fault costs: of one strategy and kind of fault. Times in s.

    detection_s       from the fault until it is noticed
    restart_s         from then until the executor, or the driver's query, is there again
    recovery_s        from detection until a query that keeps no state starts anew on the executors left
    stop_s            by how much that is later if a batch has to be stopped first
    executor_cold_s   of the first task of an executor that has started
    state_cold_s      of the first stateful task there
    worker_cold_s     the part of executor_cold_s that is the worker which reads; NaN: not known
    cold_s            of the first batch of a query that has started
    slowdown          how many times as long the other query's batches last until what was hit has restarted:
                      a restart needs processors, too
    noise             of those batches (see ``Costs``)
    """

    detection_s: float = 0.0
    restart_s: float = 0.0
    recovery_s: float = 0.0
    stop_s: float = 0.0
    executor_cold_s: float = 0.0
    state_cold_s: float = 0.0
    worker_cold_s: float = episodes.NAN
    cold_s: float = 0.0
    slowdown: float = 1.0
    noise: float = 0.0


@dataclass(frozen=True)
class Simulated:
    """A simulated episode, in s since its own zero: batches of the query that the fault hits, and of the
    other one, if there are two; ``emitted``: rows created over time, as in ``BacklogCurve``; ``lost`` and
    ``duplicated``: what the ledger says of rows.
    """

    episode: episodes.Episode
    costs: Costs
    faults: Faults
    batches: episodes.Batches
    other_batches: episodes.Batches | None
    emitted: tuple[episodes.Floats, episodes.Floats]
    failed_s: float
    lost: int
    duplicated: int

    def curve(self, rng: np.random.Generator | None = None) -> episodes.BacklogCurve:
        """The backlog as the sink sees it: of two queries that do not know of each other it keeps what comes
        first. Every batch takes its mean time; with ``rng``, each has noise of its own.
        """
        setup, batches = self.episode.setup, self.batches
        made = [(batches, np.zeros(len(batches.done), np.bool_))]
        if self.other_batches is not None:  # those that the fault slows down
            restarted = self.failed_s + self.faults.detection_s + self.faults.restart_s
            began = self.other_batches.triggered
            made.append((self.other_batches, (began > self.failed_s) & (began <= restarted)))
        outputs = []
        for batches, slowed in made:
            slowdown = np.where(slowed, self.faults.slowdown, 1.0)
            sigma = np.where(slowed, self.faults.noise, self.costs.noise)
            z = np.zeros(len(slowed)) if rng is None else rng.standard_normal(len(slowed))
            extra = batches.extra_s(slowdown, sigma, z)
            outputs.append(batches.delayed(extra, setup.trigger_s, self.episode.rate_per_s))
        moments, rows = (np.concatenate(of_all) for of_all in zip(*outputs, strict=True))
        return episodes.BacklogCurve(*episodes.new_outputs(moments, rows), self.emitted)

    def figures(self, rng: np.random.Generator | None = None) -> episodes.Figures:
        """Those of its fault, from ``curve(rng)``; NaN: there is no such moment before its end."""
        until = self.failed_s + self.episode.end_s - self.episode.fault.at_s
        curve = self.curve(rng)
        none = dict.fromkeys(("output_gap_s", "catch_up_s"), episodes.NAN)
        since = self.failed_s - episodes.PRE
        return none | episodes.recovery(curve, since, self.failed_s, until, episodes.CALM)


def scenario(episode: episodes.Episode, costs: Costs, faults: Faults) -> Scenario:
    """The scenario of an episode: the same rate, the fault at the same moment between two triggers.

    Its time zero is a whole number of triggers before the fault, and the state has the measured size from the
    start (as a cost per batch).
    """
    failed, duration = _span(episode)
    setup = episode.setup
    rows = setup.keys if setup.pipeline == "running_count" else 0
    state = costs.state_s + costs.state_row_s * rows / setup.partitions
    strategy = {
        "kind": "micro_batch",
        "cores": max(1, setup.cores // max(setup.executors, 1)),
        "trigger_interval": exact(setup.trigger_s),
        "plan_time": exact(costs.plan_s),
        "task_time": exact(costs.task_s),
        "output_time": exact(costs.output_s),
        "commit_time": exact(costs.commit_s),
        "state_time": exact(state),
        "executor_cold": exact(faults.executor_cold_s),
        "state_cold": exact(faults.state_cold_s),
        "locality_wait": exact(setup.locality_wait_s),
        "cold_time": exact(faults.cold_s),
        "output_mode": "update",
    }
    if np.isfinite(faults.worker_cold_s):
        strategy["worker_cold"] = exact(faults.worker_cold_s)
    if setup.strategy == "source_replay":
        stop = 0.0 if np.isnan(episode.fault.in_batch_s) else faults.stop_s
        strategy |= {"recovery": "replay", "recovery_time": exact(faults.recovery_s + stop)}
    executors = max(setup.executors, 1)
    tasks = {"parallelism": setup.partitions, "hosts": [i % executors for i in range(setup.partitions)]}
    length = setup.window_s if setup.pipeline == "word_count" else WHOLE_S
    # Rows are read in one stage and counted in the next; which words they hold makes no batch longer.
    topology: dict[str, Any] = {
        "rows": {
            "spout": "keys",
            "keys": KEYS,
            "order": "in_turn",
            "rate": f"{episode.rate_per_s}/s",
            "offset": "0 s",
            "hosts": [executors],  # the log is on none of the hosts that die
        },
        "read": {"bolt": "forward", "from": {"rows": "direct"}, "service": exact(costs.row_s), **tasks},
        "count": {
            "bolt": "windowed_count",
            "from": {"read": {"fields": ["key"]}},
            "service": "0 s",
            "window": {"length": exact(length), "trigger": "marker"},
            **tasks,
        },
    }
    rows_per_root = max(1, ceil(episode.rate_per_s / ROOTS_PER_S))
    return load(
        {
            "name": f"{setup.pipeline} under {setup.strategy}",
            "topology": topology,
            "strategy": strategy,
            "failures": _failures(episode, faults, failed),
            "hosts": executors + 1,
            "run": {"duration": exact(duration), "seed": 1, "lump": rows_per_root},
        }
    )


def _span(episode: episodes.Episode) -> tuple[float, float]:
    """When the fault strikes, and the duration, in the episode's simulated time."""
    interval, fault = episode.setup.trigger_s, episode.fault
    if fault.kind == "none":
        return 0.0, SETTLED * interval
    phase = (episode.setup.t0.timestamp() + fault.at_s) % interval
    before = episodes.PRE + 2 * interval + (BEFORE_S if fault.second_kill else 0.0)
    failed = ceil(before / interval) * interval + phase
    return failed, failed + episode.end_s - fault.at_s + 2 * episodes.CALM


def _failures(episode: episodes.Episode, faults: Faults, failed: float) -> list[dict[str, Any]]:
    at, fault = {"at": exact(failed)}, episode.fault
    times = {**at, "detection": exact(faults.detection_s), "restart": exact(faults.restart_s)}
    match fault.kind:
        case "kill_executor" if fault.second_kill:
            first = {"kind": "crash_host", "host": 0, **times, "at": exact(2 * episode.setup.trigger_s)}
            return [first, {"kind": "crash_host", "host": 1, **times}]
        case "kill_executor":
            return [{"kind": "crash_host", "host": 0, **times}]
        case "kill_driver":
            return [{"kind": "crash_task", "component": "driver", **times}]
        case "stop_executor":
            return [{"kind": "pause", "component": "count", **at, "duration": exact(fault.stop_s)}]
    return []


def exact(seconds: float) -> str:
    """A duration as scenarios take it, in whole nanoseconds."""
    return f"{max(0, round(seconds * 1e9))} ns"


@standing()  # the worlds go when it ends
def simulated(episode: episodes.Episode, costs: Costs, faults: Faults | None = None) -> Simulated:
    """Simulate the counterpart of an episode; without ``faults`` its fault does not happen.

    Active replication is two queries that do not know of each other, of which the fault hits one.
    """
    failed, _ = _span(episode)
    asked = scenario(episode, costs, faults or Faults())
    quiet = asked.model_copy(update={"failures": ()})
    world = _run(quiet if faults is None else asked)
    twice = faults is not None and episode.setup.strategy == "active_replication"
    rows_per_root = coarseness(asked)
    emitted = created(world, asked)
    rows = emitted[1]
    return Simulated(
        episode=episode,
        costs=costs,
        faults=faults or Faults(),
        batches=_batches(world, rows),
        other_batches=_batches(_run(quiet), rows) if twice else None,
        emitted=emitted,
        failed_s=failed,
        lost=world.balance()["lost"] * rows_per_root,
        duplicated=world.ledger.duplicated * rows_per_root,
    )


def created(world: World, asked: Scenario) -> tuple[episodes.Floats, episodes.Floats]:
    """Slot boundaries (s), and the rows created up to each. Those that entered the system are more: a row
    that is read again enters again.
    """
    spout = world.job.topology.spouts[0].config
    assert isinstance(spout, SpoutConfig)
    slots = np.arange(asked.run.duration // SLOT + 1)
    calls = slots * SLOT // round(spout.arrivals.mean_gap_ns) + 1
    return slots.astype(np.float64) * (SLOT / S), calls.astype(np.float64) * coarseness(asked)


def _run(asked: Scenario) -> World:
    world = World(coarsened(asked), judge_windows=False)
    world.run()
    return world


def _batches(world: World, rows: episodes.Floats) -> episodes.Batches:
    """The committed batches of a run; ``rows``: created up to each slot boundary."""
    query = world.job.context.runner
    assert isinstance(query, batches.Batches)
    inside, _ = world.recorder.backlog(world.scenario.run.duration)
    done = rows - inside * coarseness(world.scenario)
    times = np.array([(b.triggered, b.visible, b.committed) for b in query.history], np.int64).reshape(-1, 3)
    slots = np.minimum(-(-times[:, 1] // SLOT), len(done) - 1)
    triggered, visible, committed = times.T / S
    return episodes.Batches(triggered, visible, committed, done[slots])


def predicted(episode: episodes.Episode, costs: Costs, faults: Faults | None) -> episodes.Figures:
    """The figures of an episode as the simulation has them, under the same definitions as the measured ones;
    every batch takes its mean time.
    """
    run = simulated(episode, costs, faults)
    if faults is not None:
        return run.figures()
    trigger_s = episode.setup.trigger_s
    latency = run.curve().latencies(WARM * trigger_s, SETTLED * trigger_s)
    p50, p95 = np.quantile(latency, (0.5, 0.95)).tolist()
    lasted = (run.batches.committed - run.batches.triggered)[WARM:]
    mean = float(lasted.mean()) if len(lasted) else episodes.NAN
    return {"batch_duration_s": mean, "latency_p50_s": p50, "latency_p95_s": p95}


def noisy(
    episode: episodes.Episode, costs: Costs, faults: Faults, rng: np.random.Generator
) -> list[episodes.Figures]:
    """The figures of a fault in ``NOISY_RUNS`` runs, equally likely, that differ by the noise of batches."""
    run = simulated(episode, costs, faults)
    return [run.figures(rng) for _ in range(NOISY_RUNS)]

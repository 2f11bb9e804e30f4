"""How much there is to do, against what is then done."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tideover.models.effort import COSTS, Effort, effort
from tideover.models.job.arrivals import Arrivals, Burst, Periodic, Poisson, Ramp, TraceOfRates
from tideover.models.simulation import simulate
from tideover.scenarios import library
from tideover.scenarios.loader import load, load_text
from tideover.sim.draws import Draws
from tideover.sim.units import S

DURATION = 200 * S


def arrivals(tmp_path: Path) -> list[Arrivals]:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s,rate_per_s\n0,10\n50,400\n60,0\n90,20\n")
    return [
        Periodic(rate=30),
        Burst(rate=10, peak=100, length=5 * S, every=30 * S),
        Ramp(start=10, end=90, begin=20 * S, over=60 * S),
        TraceOfRates(file=str(trace)),
        TraceOfRates(file=str(trace), repeat=95),
    ]


def test_calls_are_as_many_as_expected(tmp_path: Path) -> None:
    """Schedules keep to their cumulative rate within the one call that the phase decides."""
    for one in arrivals(tmp_path):
        calls = one.next_calls("a", Draws(1), 0, 0, 20_000)
        assert np.count_nonzero(calls < DURATION) == pytest.approx(one.expected(DURATION), abs=1.001), one
    calls = Poisson(rate=100).next_calls("a", Draws(1), 0, 0, 40_000)
    drawn = np.count_nonzero(calls < DURATION)
    assert drawn == pytest.approx(Poisson(rate=100).expected(DURATION), abs=4 * np.sqrt(20_000))


WORLD = """\
topology:
  log: {spout: keys, keys: 10, rate: 50/s, parallelism: 2}
  job: {bolt: forward, from: {log: shuffle}, service: 1 ms, parallelism: 3}
  end: {bolt: windowed_count, from: {job: shuffle}, service: 1 ms, window: 10 s}
strategy: {kind: aligned_snapshots, checkpoint_interval: 4 s}
run: {duration: 200 s}
"""


def test_tuples_and_actions_are_counted_task_by_task() -> None:
    """2 x 50/s for 200 s are 20,000 tuples at each of three components. There are ten moments in every run,
    50 triggers of snapshots, each of which six tasks take, and 20 windows of one task: each is a moment, and
    an end. A failure makes ten actions, and another run without it.
    """
    found = effort(load_text(WORLD))
    assert (found.moved, found.actions) == (60_000, 10 + 50 * (1 + 6) + 20 * (1 + 1))
    assert simulate(load_text(WORLD), 0).ledger["emitted"] == pytest.approx(20_000, abs=2)
    lumps = effort(load_text(WORLD, settings=["run.lump=10"]))
    assert (lumps.moved, lumps.actions) == (6_000, found.actions)
    failing = effort(load_text(WORLD, settings=["failures=[{kind: lose_state, component: end, every: 2 s}]"]))
    assert failing.actions == 2 * found.actions + 10 * 100
    assert failing.moved == 2 * found.moved
    assert found.seconds < effort(load_text(WORLD, settings=["strategy.checkpoint_interval=1 ms"])).seconds


def test_flows_and_what_strategies_do_are_told_apart() -> None:
    """20,000 tuples at each of three components, task after task; or in one order, where tasks share cores.
    A window ends in the one task every 10 s: each is a moment, and an end; there are ten moments more. Six
    tasks save their state 50 times. Six tasks and nine channels are built, and what every run has.
    """
    replicated = effort(load_text(WORLD, settings=["strategy={kind: active_replication, k: 1}"]))
    assert (replicated.flows, replicated.actions) == (20_000 * (1 + 2 + 2), 10 + 20 + 2 * 20)
    saving = effort(load_text(WORLD, settings=["strategy={kind: rsm, checkpoint_interval: 4 s}"]))
    assert (saving.flows, saving.actions) == (60_000, 10 + 20 + 20 + 50 + 50 * 6)
    found = effort(load_text(WORLD, settings=["strategy=none"]))
    assert (found.flows, found.events, found.actions) == (60_000, 0, 10 + 20 + 20)
    parts = found.parts
    assert parts.pop("built") == pytest.approx((80 + 6 + 9) * COSTS["built"])
    assert sum(parts.values()) == pytest.approx(60_000 * COSTS["flows"] + 50 * COSTS["actions"])
    assert (effort(load_text(SHARED)).flows, effort(load_text(SHARED)).events) == (0, 60_000)


@pytest.mark.parametrize("more", [[], ["queues=10"], ["hosts.machines.m.cores=3"]])
def test_the_estimate_is_linear_in_duration_and_load(more: list[str]) -> None:
    """What is done once is the same for any duration: equal steps add as much. Twice the load is twice the
    tuples, and nothing else in a run whose moments do not depend on it.
    """
    times = [effort(load_text(SHARED, settings=[*more, f"run.duration={n} s"])) for n in (100, 200, 300)]
    first, second = times[1].seconds - times[0].seconds, times[2].seconds - times[1].seconds
    assert first == pytest.approx(second, rel=1e-6)
    assert first > 0
    once, twice = times[1], effort(load_text(SHARED, settings=[*more, "topology.log.rate=100/s"]))
    assert (twice.flows, twice.events) == (2 * once.flows, 2 * once.events)
    assert (twice.actions, twice.built) == (once.actions, once.built)


def test_an_estimate_is_what_its_parts_cost_and_every_builtin_has_one() -> None:
    """A cost for each count; seconds are their sum. Nothing that can be run is free, nor without end."""
    assert set(COSTS) == {field.name for field in dataclasses.fields(Effort)}
    one = Effort(*(1.0 for _ in COSTS))
    assert one.seconds == pytest.approx(sum(COSTS.values()))
    assert (one * 3 + one).seconds == pytest.approx(4 * one.seconds)
    found = [effort(load(name)).seconds for name in library.names()]
    assert all(0.001 < seconds < 60 for seconds in found)


def test_a_stream_that_ends_is_no_longer_than_it_is() -> None:
    text = WORLD.replace("spout: keys, keys: 10", "spout: values, values: [1, 2, 3]")
    assert effort(load_text(text)).moved == 2 * 3 + 2 * 20_000
    assert effort(load("wordcount")).seconds < 1


SHARED = """\
topology:
  log: {spout: keys, keys: 10, rate: 50/s, parallelism: 2}
  job: {bolt: forward, from: {log: shuffle}, service: 1 ms, parallelism: 3, hosts: [0, 0, 1]}
  end: {bolt: windowed_count, from: {job: shuffle}, service: 1 ms, window: 10 s, hosts: [0]}
hosts: {machines: {m: {count: 2, cores: 2}}}
strategy: none
run: {duration: 200 s}
"""


@pytest.mark.parametrize(
    ("more", "alone"),
    [
        (["hosts.machines.m.cores=3"], True),
        ([], False),
        (["hosts.machines.m.cores=3", "queues=10"], False),
        (["hosts.machines.m.cores=3", "queues={length: 10, when_full: drop}"], True),
        (["hosts.machines.m.cores=3", "hosts.machines.m.nic=1 Gbit/s"], False),
        (["hosts.machines.m.cores=3", "strategy={kind: source_replay, max_spout_pending: 10}"], False),
    ],
)
def test_tuples_of_tasks_that_feel_one_another_are_told_apart(more: list[str], alone: bool) -> None:
    """Host 0 has three tasks. They go in one order of events where they share two cores, or a card, where
    full queues hold senders back, or spouts wait for acks. Not where each has a core; nor where queues drop.
    """
    found = effort(load_text(SHARED, settings=more))
    assert (found.flows, found.events) == ((60_000, 0) if alone else (0, 60_000))

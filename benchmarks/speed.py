"""The timed programs: tandem, word count, small scenario."""

from __future__ import annotations

import statistics

import numpy as np

from benchmarks.reference_tandem import Tandem
from benchmarks.reference_word_count import WordCount
from benchmarks.table import Row, side_by_side
from benchmarks.worlds import COUNTERS, SPLITTERS, heaviest_share, hops, small, tandem, word_count
from tideover.models.config import Scenario
from tideover.models.evaluation import undisturbed
from tideover.models.simulation import evaluate, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.sim.fault_kinds import LoseState
from tideover.sim.units import S

ENGINE_RATE, REFERENCE_RATE = 100_000, 2_000
"""Roots per second. The load is the same, so each tuple meets as many others in its queue."""
LOAD = 0.7
SMALL_TARGETS = {"micro_batch": 2}
"""How many times as fast as the reference; of all others ten. There are 240 batches."""
RUN_TARGETS = {
    "source_replay": 6,
    "rsm": 6,
    "active_replication": 6,
    "aligned_snapshots": 3,
    "micro_batch": 1,
}
"""The same of a whole ``run``."""


def tandem_row(quick: bool) -> Row:
    """(a) three queues, draws and recording included."""
    seconds = 5 if quick else 20
    tuples = 5_000 if quick else 40_000
    world = World(tandem(ENGINE_RATE, LOAD, seconds))
    means: list[float] = []

    def engine() -> int:
        nonlocal world
        world = World(tandem(ENGINE_RATE, LOAD, seconds))
        world.run()
        return hops(world)

    def reference() -> int:
        means.append(Tandem(ENGINE_RATE, LOAD, tuples, seed=len(means)).run())
        return 3 * tuples

    ours, theirs = side_by_side(engine, reference, 1 if quick else 5)
    mean = world.recorder.latency.by_second(np.array([1]))[0][0]
    return Row(
        "tandem of three",
        f"{ours / 1e6:.1f} M hops/s",
        ours / theirs,
        400,
        True,
        f"SimPy {theirs / 1e6:.3f} M hops/s",
        f"mean sojourn {(mean or 0) / 1e3:.1f} us; reference {statistics.mean(means) * 1e6:.1f} us",
    )


def word_count_rows(quick: bool) -> list[Row]:
    """(b) acker, rotation, replays, three counts that lose their state: the world, and all that ``run`` does
    with it.
    """
    seconds = 5 if quick else 20
    rate = REFERENCE_RATE / 4 if quick else REFERENCE_RATE
    large = word_count(ENGINE_RATE, LOAD, seconds)
    worlds: list[World] = []
    references: list[WordCount] = []

    def engine() -> int:
        undisturbed.forget()
        world = World(large)
        world.run()
        worlds[:] = [world]
        return hops(world)

    def whole() -> int:
        _run(large)
        return hops(worlds[0])

    def reference() -> int:
        losses = [
            (fault.at / S, fault.task)
            for fault in word_count(rate, LOAD, seconds).failures
            if isinstance(fault, LoseState) and fault.at is not None
        ]
        split, count = LOAD * SPLITTERS / rate, LOAD / rate / heaviest_share()
        program = WordCount(rate, split, count, seconds, losses, SPLITTERS, COUNTERS, seed=len(references))
        program.run()
        references[:] = [program]
        return program.hops

    rows = []
    for what, program, target in (("World", engine, 75), ("run", whole, 35)):
        ours, theirs = side_by_side(program, reference, 1 if quick else 3)
        again, made = len(worlds[0].losses.replayed), worlds[0].job.spouts[0].next_root
        share = references[0].failed / references[0].emitted
        shares = f"{again / (made + again):.1%} are replays; reference {share:.1%}"
        figures = (
            f"{ours / 1e6:.1f} M hops/s",
            ours / theirs,
            target,
            True,
            f"SimPy {theirs / 1e6:.3f} M hops/s",
        )
        rows.append(Row(f"word count, source replay, {what}", *figures, shares))
    return rows


def kernel_rows(quick: bool) -> list[Row]:
    """The data plane by itself: no failures, no strategy."""
    return [kernel_row(quick), small_row("none", "World without failures", 25, 3 if quick else 9)]


def kernel_row(quick: bool) -> Row:
    """The same without failures and acks: the compiled data plane and all accounts. The reference
    acks, as it does for all rows.
    """
    seconds = 5 if quick else 20
    rate = REFERENCE_RATE / 4 if quick else REFERENCE_RATE
    scenario = word_count(ENGINE_RATE, LOAD, seconds).with_strategy(STRATEGIES["none"]())
    scenario = scenario.model_copy(update={"failures": ()})

    def engine() -> int:
        world = World(scenario)
        world.run()
        return hops(world)

    def reference(acking: bool = True) -> int:
        split, count = LOAD * SPLITTERS / rate, LOAD / rate / heaviest_share()
        program = WordCount(rate, split, count, seconds, [], SPLITTERS, COUNTERS, seed=1, acking=acking)
        program.run()
        return program.hops

    ours, theirs = side_by_side(engine, reference, 1 if quick else 3)
    _, plain = side_by_side(engine, lambda: reference(acking=False), 1)
    return Row(
        "word count, none, World",
        f"{ours / 1e6:.1f} M hops/s",
        ours / theirs,
        100,
        True,
        f"SimPy {theirs / 1e6:.3f} M hops/s",
        f"{ours / plain:.0f} times SimPy without acks",
    )


def small_rows(quick: bool) -> list[Row]:
    """(c) 10 sentences/s for 240 s: what sweeps and plans consist of; the reference is source replay's."""
    rounds = 3 if quick else 9
    rows = [small_row(name, "World", SMALL_TARGETS.get(name, 10), rounds) for name in STRATEGIES]
    for name, target in RUN_TARGETS.items():
        rows += [small_row(name, "run", target, rounds), evaluation_row(name, rounds)]
    return rows


def small_row(name: str, what: str, target: float, rounds: int) -> Row:
    """One strategy: the world and its balance, or all that ``run`` does, with its failure or without."""
    scenario = small(name)
    if what.endswith("without failures"):
        scenario = scenario.model_copy(update={"failures": ()})

    def world() -> int:
        undisturbed.forget()
        world = World(scenario)
        world.run()
        world.balance()
        return 1

    def whole() -> int:
        _run(scenario)
        return 1

    def reference() -> int:
        WordCount(10, 2e-4, 1e-4, 240, [(75, 0)], splitters=1, counters=1, window=30, timeout=30).run()
        return 1

    ours, theirs = side_by_side(whole if what == "run" else world, reference, rounds)
    figures = f"{1e3 / ours:.1f} ms", ours / theirs, target, True, f"SimPy {1e3 / theirs:.0f} ms"
    return Row(f"small scenario, {name}, {what}", *figures)


def evaluation_row(name: str, rounds: int) -> Row:
    """What part of a small ``run`` goes from accounts to figures, once both runs are done."""
    scenario = small(name)
    world = World(scenario)
    world.run()

    def figures() -> int:
        evaluate(world, 0)
        return 1

    def whole() -> int:
        _run(scenario)
        evaluate(world, 0)  # so that what it needs is kept again; taken off below
        return 1

    share, both = side_by_side(figures, whole, rounds)
    part = both / (share - both)
    return Row(
        f"small scenario, {name}, evaluation",
        f"{1e3 / share:.1f} ms",
        part,
        0.25,
        False,
        f"run {1e3 / both - 1e3 / share:.1f} ms",
    )


def _run(scenario: Scenario) -> None:
    """A replication, as the first one in a process."""
    undisturbed.forget()
    simulate(scenario)

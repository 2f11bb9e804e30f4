"""The timed programs: tandem, word count, small scenario."""

from __future__ import annotations

import statistics

import numpy as np

from benchmarks.reference_tandem import Tandem
from benchmarks.reference_word_count import WordCount
from benchmarks.table import Row, side_by_side
from benchmarks.worlds import COUNTERS, SPLITTERS, heaviest_share, hops, small, tandem, word_count
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.sim.faults.lose_state import LoseState
from tideover.sim.units import S

ENGINE_RATE, REFERENCE_RATE = 100_000, 2_000
"""Roots per second. The load is the same, so each tuple meets as many others in its queue."""
LOAD = 0.7
SMALL_TARGETS = {"micro_batch": 2}
"""How many times as fast as the reference; of all others ten. There are 240 batches."""


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


def word_count_row(quick: bool) -> Row:
    """(b) acker, rotation, replays, three counts that lose their state."""
    seconds = 5 if quick else 20
    rate = REFERENCE_RATE / 4 if quick else REFERENCE_RATE
    worlds: list[World] = []
    references: list[WordCount] = []

    def engine() -> int:
        world = World(word_count(ENGINE_RATE, LOAD, seconds))
        world.run()
        worlds[:] = [world]
        return hops(world)

    def reference() -> int:
        scenario = word_count(rate, LOAD, seconds)
        losses = [
            (fault.at / S, fault.task)
            for fault in scenario.failures
            if isinstance(fault, LoseState) and fault.at is not None
        ]
        split, count = LOAD * SPLITTERS / rate, LOAD / rate / heaviest_share()
        program = WordCount(rate, split, count, seconds, losses, SPLITTERS, COUNTERS, seed=len(references))
        program.run()
        references[:] = [program]
        return program.hops

    ours, theirs = side_by_side(engine, reference, 1 if quick else 3)
    again, made = worlds[0].ledger.replayed, worlds[0].job.spouts[0].next_root
    share = references[0].failed / references[0].emitted
    return Row(
        "word count, source replay",
        f"{ours / 1e6:.1f} M hops/s",
        ours / theirs,
        75,
        True,
        f"SimPy {theirs / 1e6:.3f} M hops/s",
        f"{again / (made + again):.1%} are replays; reference {share:.1%}; "
        "the engine also counts each window a second time without failures, to compare",
    )


def small_rows(quick: bool) -> list[Row]:
    """(c) 10 sentences/s for 240 s: what sweeps and plans consist of; the reference is source replay's."""
    return [small_row(name, quick) for name in STRATEGIES]


def small_row(name: str, quick: bool) -> Row:
    """One strategy; results included, as a sweep reads them."""

    def engine() -> int:
        world = World(small(name))
        world.run()
        world.balance()
        return 1

    def reference() -> int:
        WordCount(10, 2e-4, 1e-4, 240, [(75, 0)], splitters=1, counters=1, window=30, timeout=30).run()
        return 1

    ours, theirs = side_by_side(engine, reference, 3 if quick else 9)
    return Row(
        f"small scenario, {name}",
        f"{1e3 / ours:.1f} ms",
        ours / theirs,
        SMALL_TARGETS.get(name, 10),
        True,
        f"SimPy {1e3 / theirs:.0f} ms",
    )

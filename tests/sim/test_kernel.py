"""The contract of control and data plane: data first, then control actions by rank."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.sim.kernel import BEHIND, Kernel, Process, Rank
from tideover.sim.link import Channel
from tideover.sim.node import Node


class Clock(Node):
    """Notes up to where it was moved."""

    def __init__(self, kernel: Kernel, name: str, log: list[tuple[str, int]]) -> None:
        super().__init__(kernel, name, 0)
        self.log = log
        self.inputs: list[Channel] = []

    def flow(self, now: int) -> None:
        self.log.append((self.name, now))


class Stepper:
    """A source that wants the data plane to stop at given instants on the way."""

    def __init__(self, stops: list[int]) -> None:
        self.stops = sorted(stops)

    def horizon(self, now: int) -> int:
        while self.stops and self.stops[0] <= now:
            return self.stops.pop(0)
        return now


@given(st.permutations([(rank, i) for rank in Rank for i in range(2)]))
def test_one_instant_goes_by_rank_then_by_creation(actions: list[tuple[Rank, int]]) -> None:
    """Law: FAULT < READY < WINDOW < RESTORE < CHECKPOINT < TRIM < REQUEST < MARKER < ROTATION; equal ranks
    in turn.
    """
    kernel = Kernel()
    acted: list[tuple[Rank, int]] = []
    for rank, i in actions:
        kernel.at(5, rank, lambda rank=rank, i=i: acted.append((rank, i)))
    kernel.run(10)
    assert acted == sorted(actions, key=lambda action: (list(Rank).index(action[0]), actions.index(action)))


def test_ranks_are_in_the_order_of_the_contract() -> None:
    names = "FAULT READY WINDOW RESTORE CHECKPOINT TRIM REQUEST MARKER ROTATION BATCH SAMPLE"
    assert [rank.name for rank in sorted(Rank)] == names.split()


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(Rank)), max_size=12))
def test_data_are_moved_before_every_action(plan: list[tuple[int, Rank]]) -> None:
    """Law: when an action runs, every node has been moved to now, in topological order, since the last
    action.
    """
    kernel = Kernel()
    log: list[tuple[str, int]] = []
    for name in ("up", "down"):
        Clock(kernel, name, log)
    for when, rank in plan:
        kernel.at(when, rank, lambda rank=rank: log.append((rank.name, kernel.now)))
    kernel.run(10)
    acted = sorted(plan, key=lambda action: action)
    expected = [line for when, rank in acted for line in (("up", when), ("down", when), (rank.name, when))]
    assert log == [*expected, ("up", 10), ("down", 10)]


def chain(kernel: Kernel, log: list[tuple[str, int]]) -> dict[str, Clock]:
    """a -> c, b -> c, c -> d, a -> e."""
    nodes = {name: Clock(kernel, name, log) for name in "abcde"}
    for up, down in ("ac", "bc", "cd", "ae"):
        nodes[down].inputs.append(Channel(nodes[up], nodes[down], 0, 1, remote=False))
    return nodes


@pytest.mark.parametrize(
    ("reads", "moved"),
    [("", ""), ("a", "a"), ("c", "abc"), ("d", "abcd"), ("e", "ae"), ("ea", "ae"), ("be", "abe")],
)
def test_an_action_that_says_what_it_reads_moves_that_and_what_is_upstream(reads: str, moved: str) -> None:
    kernel = Kernel()
    log: list[tuple[str, int]] = []
    heard: list[int] = []
    nodes = chain(kernel, log)
    kernel.listeners.append(heard.append)
    kernel.at(
        3, Rank.WINDOW, lambda: log.append(("acts", kernel.now)), reads=tuple(nodes[name] for name in reads)
    )
    kernel.every(
        5, 20, Rank.WINDOW, lambda i: log.append(("ticks", i)), reads=tuple(nodes[name] for name in reads)
    )
    kernel.run(6)
    some = list(moved)
    expected = [*((name, 3) for name in some), ("acts", 3), *((name, 5) for name in some), ("ticks", 0)]
    assert log == [*expected, *((name, 6) for name in "abcde")]
    assert heard == [6]


def test_an_action_may_move_more_when_it_turns_out_that_it_reads_more() -> None:
    kernel = Kernel()
    log: list[tuple[str, int]] = []
    nodes = chain(kernel, log)

    def act() -> None:
        log.append(("acts", kernel.now))
        kernel.move((nodes["e"],))

    kernel.at(3, Rank.WINDOW, act, reads=())
    kernel.env.run(4)
    assert log == [("acts", 3), ("a", 3), ("e", 3)]


def test_a_marker_that_waits_moves_at_its_turn_what_it_reads() -> None:
    """c is busy from 2 to 7."""
    kernel = Kernel()
    log: list[tuple[str, int]] = []
    nodes = chain(kernel, log)
    nodes["c"].busy.free_at = 7

    def wait() -> None:
        nodes["c"].enqueue(Rank.TRIM, lambda: log.append(("acts", kernel.now)), (nodes["c"],))

    kernel.at(2, Rank.CHECKPOINT, wait, reads=(nodes["c"],))
    kernel.env.run(8)
    assert log == [*((name, 2) for name in "abc"), *((name, 7) for name in "abc"), ("acts", 7)]


@pytest.mark.parametrize("why", ["feedback", "made"])
def test_all_is_moved_where_news_may_come_from_anywhere_or_much_is_behind(why: str) -> None:
    kernel = Kernel()
    log: list[tuple[str, int]] = []
    nodes = chain(kernel, log)
    kernel.feedback = why == "feedback"
    kernel.made = BEHIND + 1 if why == "made" else 0
    for moment in (3, 4):
        kernel.at(moment, Rank.WINDOW, lambda: None, reads=(nodes["a"],))
    kernel.run(4)
    second = "abcde" if why == "feedback" else "a"
    assert log == [*((name, 3) for name in "abcde"), *((name, 4) for name in second + "abcde")]


def test_what_is_read_is_moved_in_the_steps_of_its_own_sources() -> None:
    """What else makes tuples is asked when it is moved."""
    kernel = Kernel()
    log: list[tuple[str, int]] = []

    class Source(Clock):
        def horizon(self, now: int) -> int:
            return min(now, 10 if self.name == "near" else 0)

    near, far = Source(kernel, "near", log), Source(kernel, "far", log)
    kernel.sources += [near, far]
    kernel.at(5, Rank.WINDOW, lambda: None, reads=(near,))
    kernel.env.run(6)
    assert log == [("near", 5)]


def test_a_process_that_yields_finds_the_data_moved() -> None:
    kernel = Kernel()
    log: list[tuple[str, int]] = []
    Clock(kernel, "node", log)

    def process() -> Process:
        yield kernel.until(3, Rank.CHECKPOINT)
        log.append(("process", kernel.now))
        yield kernel.until(3, Rank.FAULT)
        log.append(("again", kernel.now))

    kernel.process(process())
    kernel.run(4)
    assert log == [("node", 3), ("process", 3), ("node", 3), ("again", 3), ("node", 4)]


def test_an_action_may_cause_another_at_the_same_instant() -> None:
    """Law: it runs after the data, in its rank's turn among those that are still to come."""
    kernel = Kernel()
    acted: list[str] = []

    def fault() -> None:
        acted.append("fault")
        kernel.at(5, Rank.READY, lambda: acted.append("ready"))

    kernel.at(5, Rank.ROTATION, lambda: acted.append("rotation"))
    kernel.at(5, Rank.FAULT, fault)
    kernel.run(5)
    assert acted == ["fault", "ready", "rotation"]


def test_every_is_first_plus_whole_intervals() -> None:
    kernel = Kernel()
    ticks: list[tuple[int, int]] = []
    kernel.every(3, 4, Rank.WINDOW, lambda i: ticks.append((i, kernel.now)))
    kernel.run(15)
    assert ticks == [(0, 3), (1, 7), (2, 11), (3, 15)]


def test_the_end_comes_after_every_action_of_its_instant() -> None:
    kernel = Kernel()
    acted: list[int] = []
    for rank in reversed(Rank):
        kernel.at(8, rank, lambda rank=rank: acted.append(rank))
    kernel.run(8)
    assert acted == sorted(Rank)
    assert kernel.now == 8


@given(st.lists(st.integers(0, 20), unique=True, max_size=5))
def test_sources_cut_a_long_move_into_steps(stops: list[int]) -> None:
    """Law: the data plane moves through each instant that a source asks for, and listeners hear of each
    step.
    """
    kernel = Kernel()
    log: list[tuple[str, int]] = []
    heard: list[int] = []
    Clock(kernel, "node", log)
    kernel.sources.append(Stepper(stops))
    kernel.listeners.append(heard.append)
    kernel.run(20)
    steps = [stop for stop in sorted(stops) if stop < 20]
    assert heard == [*steps, 20]
    assert log == [("node", step) for step in heard]


def test_runs_go_on_where_they_stopped() -> None:
    acted = []
    for stops in ([20], [4, 5, 20]):
        kernel = Kernel()
        ticks: list[int] = []
        kernel.every(0, 5, Rank.WINDOW, lambda i, kernel=kernel, ticks=ticks: ticks.append(kernel.now))
        for stop in stops:
            kernel.run(stop)
        acted.append(ticks)
    assert acted[0] == acted[1] == list(itertools.takewhile(lambda t: t <= 20, itertools.count(0, 5)))

"""The contract of control and data plane: data first, then control actions by rank."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.no_data import Log, kernel_without_data
from tideover.sim.kernel import Process, Rank
from tideover.sim.train import Train, merge


@given(st.permutations([(rank, i) for rank in Rank for i in range(2)]))
def test_one_instant_goes_by_rank_then_by_creation(actions: list[tuple[Rank, int]]) -> None:
    """Law: FAULT < READY < WINDOW < RESTORE < CHECKPOINT < TRIM < REQUEST < MARKER < ROTATION; equal ranks
    in turn.
    """
    kernel = kernel_without_data()
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
    """Law: when an action runs, all data has been moved to now since the last action, and listeners know."""
    log: Log = []
    kernel = kernel_without_data(log)
    kernel.listeners.append(lambda now: log.append(("moved", now)))
    for when, rank in plan:
        kernel.at(when, rank, lambda rank=rank: log.append((rank.name, kernel.now)))
    kernel.run(10)
    acted = [(when, rank.name) for when, rank in sorted(plan)]
    expected = [line for when, name in acted for line in (("data", when), ("moved", when), (name, when))]
    assert log == [*expected, ("data", 10), ("moved", 10)]


def test_data_stay_where_they_are_for_an_action_at_rest() -> None:
    """At 3 one that rests acts without them, unless a control marker may have its turn before it."""
    for waiting, moved in ((0, []), (1, [("data", 3)])):
        log: Log = []
        kernel = kernel_without_data(log)
        kernel.plane.p.waiting = waiting
        kernel.at_rest(3, Rank.WINDOW, lambda kernel=kernel, log=log: log.append(("acts", kernel.now)), 0)  # type: ignore[misc]
        kernel.run(5)
        assert log == [*moved, ("acts", 3), ("data", 5)]


def test_what_data_come_back_for_is_seen_to_at_its_moment() -> None:
    """The data come back at 2 and 4, on their way to the action of 6: the handler finds that moment as the
    present, and the number of the task.
    """
    log: Log = []
    kernel = kernel_without_data(log, asks=(4, 2))
    asked: list[tuple[int, int, int]] = []
    kernel.handlers[1] = lambda who, when: asked.append((who, when, kernel.now))
    kernel.at(6, Rank.WINDOW, lambda: log.append(("acts", kernel.now)))
    kernel.run(8)
    assert asked == [(7, 2, 2), (7, 4, 4)]
    assert log == [("data", 6), ("acts", 6), ("data", 8)]


def test_a_process_that_yields_finds_the_data_moved() -> None:
    log: Log = []
    kernel = kernel_without_data(log)

    def process() -> Process:
        yield kernel.until(3, Rank.CHECKPOINT)
        log.append(("process", kernel.now))
        yield kernel.until(3, Rank.FAULT)
        log.append(("again", kernel.now))

    kernel.process(process())
    kernel.run(4)
    begins, *acts, ends, last = log  # to begin and to end is an event, too
    assert acts == [("data", 3), ("process", 3), ("data", 3), ("again", 3)]
    assert (begins, ends, last) == (("data", 0), ("data", 3), ("data", 4))


def test_an_action_may_cause_another_at_the_same_instant() -> None:
    """Law: it runs after the data, in its rank's turn among those that are still to come."""
    kernel = kernel_without_data()
    acted: list[str] = []

    def fault() -> None:
        acted.append("fault")
        kernel.at(5, Rank.READY, lambda: acted.append("ready"))

    kernel.at(5, Rank.ROTATION, lambda: acted.append("rotation"))
    kernel.at(5, Rank.FAULT, fault)
    kernel.run(5)
    assert acted == ["fault", "ready", "rotation"]


def test_every_is_first_plus_whole_intervals() -> None:
    kernel = kernel_without_data()
    ticks: list[tuple[int, int]] = []
    kernel.every(3, 4, Rank.WINDOW, lambda i: ticks.append((i, kernel.now)))
    kernel.run(15)
    assert ticks == [(0, 3), (1, 7), (2, 11), (3, 15)]


def test_the_end_comes_after_every_action_of_its_instant() -> None:
    kernel = kernel_without_data()
    acted: list[int] = []
    for rank in reversed(Rank):
        kernel.at(8, rank, lambda rank=rank: acted.append(rank))
    kernel.run(8)
    assert acted == sorted(Rank)
    assert kernel.now == 8


@given(st.lists(st.integers(0, 20), unique=True, max_size=5))
def test_a_long_move_is_cut_into_steps(stops: list[int]) -> None:
    """Law: data move through each instant that is asked for on the way, and listeners hear of the last."""
    log: Log = []
    kernel = kernel_without_data(log)
    heard: list[int] = []
    steps = sorted(stop for stop in stops if stop < 20)
    left = list(steps)
    kernel.reach = lambda until: left.pop(0) if left else until
    kernel.listeners.append(heard.append)
    kernel.run(20)
    assert log == [("data", stop) for stop in (*steps, 20)]
    assert heard == [20]


def test_runs_go_on_where_they_stopped() -> None:
    acted = []
    for stops in ([20], [4, 5, 20]):
        kernel = kernel_without_data()
        ticks: list[int] = []
        kernel.every(0, 5, Rank.WINDOW, lambda i, kernel=kernel, ticks=ticks: ticks.append(kernel.now))
        for stop in stops:
            kernel.run(stop)
        acted.append(ticks)
    assert acted[0] == acted[1] == list(itertools.takewhile(lambda t: t <= 20, itertools.count(0, 5)))


def test_of_many_trains_a_tie_goes_to_the_earlier_one() -> None:
    """100 trains of 10 tuples each at 1, 2, …, 10 s: first all that come at 1 s, in the trains' order, and so
    on.
    """
    time = np.arange(1, 11, dtype=np.int64) * 10**9
    trains = [Train(time, np.full(10, number), time, time) for number in range(100)]
    merged = merge(trains)
    assert merged.time.tolist() == np.repeat(time, 100).tolist()
    assert merged.uid.tolist() == list(range(100)) * 10

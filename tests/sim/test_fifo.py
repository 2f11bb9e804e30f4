"""The FIFO: recursion, cuts, both code paths; and small worlds of servers, followed tuple by tuple."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tideover.sim import fifo
from tideover.sim.kernel import Kernel, Rank
from tideover.sim.link import Channel
from tideover.sim.node import Node
from tideover.sim.server import Server
from tideover.sim.train import Ints, Train, merge, single

Pairs = list[tuple[int, int]]
jobs = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 60)), max_size=200)
"""(gap before the arrival, service): ties and idle times both occur."""


def columns(pairs: Pairs) -> tuple[Ints, Ints]:
    """Arrivals and services."""
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return np.cumsum(table[:, 0]), table[:, 1].copy()


def recursion(arrival: Ints, service: Ints, free_at: int) -> list[int]:
    """Lindley's recursion, one tuple at a time.

    D. V. Lindley, *The theory of queues with a single server*, Proc. Cambridge Phil. Soc. 48, 1952.
    """
    done = []
    for a, s in zip(arrival.tolist(), service.tolist(), strict=True):
        free_at = max(a, free_at) + s
        done.append(free_at)
    return done


@pytest.fixture(params=["loop", "arrays", "as shipped"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each code path in turn, for trains of any length."""
    small = {"loop": 10**9, "arrays": 0}.get(request.param, fifo.SMALL)
    monkeypatch.setattr(fifo, "SMALL", small)


def serve(arrival: Ints, service: Ints, free_at: int) -> list[int]:
    if not len(arrival):
        return []
    return fifo.departures(arrival, service.copy(), free_at).tolist()


@pytest.mark.usefixtures("path")
class TestDepartures:
    """Laws of ``departures``, by each code path."""

    def test_by_hand(self) -> None:
        arrival = np.array([0, 1, 2, 20, 20], np.int64)
        service = np.array([5, 5, 5, 1, 0], np.int64)
        assert serve(arrival, service, 3) == [8, 13, 18, 21, 21]

    @pytest.mark.parametrize("free_at", range(6))
    def test_the_first_waits_until_the_server_is_free(self, free_at: int) -> None:
        arrival, service = np.array([3, 4], np.int64), np.array([2, 2], np.int64)
        assert serve(arrival, service, free_at) == recursion(arrival, service, free_at)

    @given(jobs, st.integers(0, 2000))
    def test_equal_the_recursion(self, pairs: Pairs, free_at: int) -> None:
        arrival, service = columns(pairs)
        assert serve(arrival, service, free_at) == recursion(arrival, service, free_at)

    @given(jobs, st.integers(0, 2000), st.lists(st.integers(0, 200), max_size=4))
    def test_do_not_depend_on_where_the_train_is_cut(
        self, pairs: Pairs, free_at: int, cuts: list[int]
    ) -> None:
        arrival, service = columns(pairs)
        whole = serve(arrival, service, free_at)
        parts: list[int] = []
        for a, s in zip(np.split(arrival, sorted(cuts)), np.split(service, sorted(cuts)), strict=True):
            parts += serve(a, s, parts[-1] if parts else free_at)
        assert parts == whole

    @given(jobs.filter(len), st.integers(0, 2000))
    def test_conserve_work(self, pairs: Pairs, free_at: int) -> None:
        """First in, first out; nobody leaves before arrival and service; the server idles only when empty."""
        arrival, service = columns(pairs)
        done = np.array(serve(arrival, service, free_at))
        start = done - service
        assert (start >= arrival).all()
        assert (start >= np.concatenate([[free_at], done[:-1]])).all()
        assert ((start == arrival) | (start == np.concatenate([[free_at], done[:-1]]))).all()

    def test_do_not_overflow_at_the_end_of_a_long_run(self) -> None:
        late = 9 * 10**18
        arrival, service = np.full(100, late, np.int64), np.full(100, 10**15, np.int64)
        assert serve(arrival, service, 0) == recursion(arrival, service, 0)


@given(jobs, st.integers(0, 2000))
def test_both_code_paths_agree(pairs: Pairs, free_at: int) -> None:
    arrival, service = columns(pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fifo, "SMALL", 10**9)
        loop = serve(arrival, service, free_at)
        patch.setattr(fifo, "SMALL", 0)
        assert serve(arrival, service, free_at) == loop


class Queue(Server):
    """A server whose service is a constant, and that notes who left and when."""

    def __init__(self, kernel: Kernel, name: str, duration: int) -> None:
        super().__init__(kernel, name, 0)
        self.duration = duration
        self.left: list[tuple[int, int]] = []
        self.arrived: list[tuple[int, int]] = []
        self.dropped: list[tuple[int, int]] = []
        self.triggers: dict[int, int] = {}
        """Of tuples after which the server stays busy: for how long."""
        self.out: Channel | None = None
        self._last = -1

    def _demand(self, train: Train) -> Ints:
        return np.full(train.n, self.duration, np.int64)

    def _process(self, train: Train, arrival: Ints) -> None:
        self.left += zip(train.uid.tolist(), train.time.tolist(), strict=True)
        self.arrived += zip(train.uid.tolist(), arrival.tolist(), strict=True)
        self._last = int(train.uid[-1])
        if self.out is not None:
            self.out.send(train)

    def _drop(self, train: Train) -> None:
        self.dropped += zip(train.uid.tolist(), train.time.tolist(), strict=True)

    def _find_trigger(self, train: Train) -> int | None:
        rows = [row for row, uid in enumerate(train.uid.tolist()) if uid in self.triggers]
        return rows[0] if rows else None

    def _fire(self, now: int) -> int:
        return self.triggers[self._last]


class Source(Node):
    """Sends what it is given, at once, on its channels."""

    def flow(self, now: int) -> None:
        self.outbox.let_out(now)


def train(*tuples: tuple[int, int]) -> Train:
    """Tuples as (uid, time)."""
    uid, time = (np.array(c, np.int64) for c in zip(*tuples, strict=True))
    return Train(time, uid, time, np.zeros(len(uid), np.int64))


def world(duration: int, sources: int = 1, latency: int = 0) -> tuple[Kernel, Queue, list[Channel]]:
    """Sources, each with a channel to one server."""
    kernel = Kernel()
    ups = [Source(kernel, f"source.{i}", 0) for i in range(sources)]
    queue = Queue(kernel, "queue", duration)
    channels = [Channel(up, queue, latency, 100, True) for up in ups]
    for channel in channels:
        queue.connect(channel)
    return kernel, queue, channels


def test_merge_is_by_time_then_sender_then_sequence() -> None:
    kernel, queue, (first, second) = world(0, sources=2)
    second.send(train((20, 5), (21, 5), (22, 7)))
    first.send(train((10, 5), (11, 6), (12, 7), (13, 7)))
    kernel.run(10)
    assert queue.left == [(10, 5), (20, 5), (21, 5), (11, 6), (12, 7), (13, 7), (22, 7)]


@given(st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=8), min_size=1, max_size=5))
def test_merge_is_a_stable_sort(times: list[list[int]]) -> None:
    """Law: sorting (time, sender, sequence)."""
    trains = [
        train(*((sender << 8 | i, t) for i, t in enumerate(sorted(ts)))) for sender, ts in enumerate(times)
    ]
    merged = merge(trains)
    expected = sorted((t, sender, i) for sender, ts in enumerate(times) for i, t in enumerate(sorted(ts)))
    rows = zip(merged.time.tolist(), merged.uid.tolist(), strict=True)
    assert [(t, uid >> 8, uid & 255) for t, uid in rows] == expected


def test_a_tandem_by_hand() -> None:
    """Two queues with a wire of 1 between them."""
    kernel, first, (wire,) = world(4)
    second = Queue(kernel, "second", 6)
    first.out = Channel(first, second, 1, 100, True)
    second.connect(first.out)
    wire.send(train((1, 0), (2, 1), (3, 20)))
    kernel.run(100)
    assert first.left == [(1, 4), (2, 8), (3, 24)]
    assert second.arrived == [(1, 5), (2, 9), (3, 25)]
    assert second.left == [(1, 11), (2, 17), (3, 31)]
    assert wire.bytes == 300


@given(jobs.filter(len), st.integers(0, 30), st.lists(st.integers(0, 12_000), max_size=6))
def test_control_events_do_not_change_what_flows(pairs: Pairs, duration: int, moments: list[int]) -> None:
    """Law: moving the data plane at any moments in between leaves every departure as it is."""
    sent = train(*((i, t) for i, t in enumerate(columns(pairs)[0].tolist())))
    results = []
    for stops in ([], sorted(moments)):
        kernel, queue, (wire,) = world(duration, latency=3)
        wire.send(sent)
        for stop in stops:
            kernel.at(stop, Rank.FAULT, lambda: None)
        kernel.run(30_000)
        results.append(queue.left)
    assert results[0] == results[1]
    assert [done for _, done in results[0]] == recursion(sent.time + 3, np.full(sent.n, duration), 0)


def test_a_crash_destroys_what_is_queued_or_in_service_and_nothing_else() -> None:
    kernel, queue, (wire,) = world(4)
    wire.send(train((1, 0), (2, 1), (3, 2), (4, 9), (5, 15)))
    lost: list[int] = []
    kernel.at(8, Rank.FAULT, lambda: lost.extend(uid for t in queue.crash() for uid in t.uid.tolist()))
    kernel.at(12, Rank.READY, queue.revive)
    kernel.run(100)
    assert queue.left == [(1, 4), (2, 8), (5, 19)]  # the departure at 8 is before the fault at 8
    assert lost == [3]
    assert queue.dropped == [(4, 9)]


def test_held_arrivals_come_in_at_the_moment_of_readiness() -> None:
    kernel, queue, (wire,) = world(4)
    queue.gate.hold = True
    wire.send(train((1, 2), (2, 3), (3, 9), (4, 10)))
    kernel.at(1, Rank.FAULT, lambda: queue.crash())

    def ready() -> None:
        queue.revive()
        queue.gate.open()

    kernel.at(9, Rank.READY, ready)
    kernel.run(100)
    assert queue.arrived == [(1, 9), (2, 9), (3, 9), (4, 10)]
    assert queue.left == [(1, 13), (2, 17), (3, 21), (4, 25)]


def test_a_pause_keeps_the_queue_and_serves_it_anew() -> None:
    kernel, queue, (wire,) = world(4)
    wire.send(train((1, 0), (2, 1), (3, 2)))
    kernel.at(6, Rank.FAULT, lambda: queue.crash(keep_queue=True))

    def ready() -> None:
        queue.revive()
        queue.gate.open()

    kernel.at(10, Rank.READY, ready)
    kernel.run(100)
    assert queue.left == [(1, 4), (2, 14), (3, 18)]


def test_a_marker_waits_for_what_came_before_it_and_holds_back_what_comes_after() -> None:
    kernel, queue, (wire,) = world(4)
    acted: list[int] = []
    wire.send(train((1, 0), (2, 1), (3, 3), (4, 5)))

    def action() -> None:
        acted.append(kernel.now)
        queue.occupy(10)

    kernel.at(3, Rank.WINDOW, lambda: queue.enqueue(Rank.WINDOW, action))
    kernel.run(100)
    assert acted == [12]  # after 1, 2 and 3, which came at 3 with it
    assert queue.left == [(1, 4), (2, 8), (3, 12), (4, 26)]


def test_markers_act_in_turn_and_a_crash_cancels_them() -> None:
    kernel, queue, (wire,) = world(4)
    acted: list[tuple[str, int]] = []

    def mark(name: str, busy: int) -> None:
        def action() -> None:
            acted.append((name, kernel.now))
            queue.occupy(busy)

        queue.enqueue(Rank.TRIM, action)

    wire.send(train((1, 0), (2, 30)))
    kernel.at(1, Rank.TRIM, lambda: mark("a", 5))
    kernel.at(1, Rank.TRIM, lambda: mark("b", 2))
    kernel.at(31, Rank.TRIM, lambda: mark("c", 2))
    kernel.at(32, Rank.FAULT, lambda: queue.crash())
    kernel.run(100)
    assert acted == [("a", 4), ("b", 9)]
    assert queue.left == [(1, 4)]


def test_a_trigger_keeps_the_server_before_the_next_tuple() -> None:
    kernel, queue, (wire,) = world(4)
    queue.triggers = {2: 7}
    wire.send(train((1, 0), (2, 1), (3, 2), (4, 50)))
    kernel.run(100)
    assert queue.left == [(1, 4), (2, 8), (3, 19), (4, 54)]
    assert queue.busy.total == 4 * 4 + 7


def test_what_is_posted_leaves_at_its_time_or_is_lost_in_a_crash() -> None:
    kernel, queue, _ = world(4)
    out: list[int] = []
    lost: list[int] = []
    queue.outbox.post(
        train((1, 3), (2, 5), (3, 8)),
        lambda t: out.extend(t.uid.tolist()),
        lambda t: lost.extend(t.uid.tolist()),
    )
    kernel.at(5, Rank.FAULT, lambda: queue.crash())
    kernel.run(100)
    assert (out, lost) == ([1, 2], [3])


def test_one_tuple_at_a_time_is_like_all_at_once() -> None:
    left = []
    for together in (True, False):
        kernel, queue, (wire,) = world(3)
        if together:
            wire.send(train((1, 1), (2, 1), (3, 2)))
        else:
            for uid, time in ((1, 1), (2, 1), (3, 2)):
                wire.send(single(time, uid))
        kernel.run(20)
        left.append(queue.left)
    assert left[0] == left[1] == [(1, 4), (2, 7), (3, 10)]

"""Windows that slide, those of which only ids are saved, and joins: what is in them, and when it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.topology import Topology, TopologyError
from tideover.models.operators.window import STREAM, Window, WindowIds
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES
from tideover.sim.train import Ints, Train

S = 1000 * MS


def counted(window: dict[str, Any], strategy: str = "none", until: float = 6000, **more: Any) -> Scenario:
    """numbers (each its own bit, one every 400 ms from 400 ms on) -> count."""
    failures = more.pop("failures", ())
    topology = {
        "numbers": spout("values", 400, values=tuple(1 << i for i in range(40))),
        "count": bolt("windowed_count", {"numbers": "fields"}, window=Window(**window)),
    }
    return world(topology, strategy, failures, until, **more)


def contents(run: Replication) -> dict[int, list[int]]:
    """{number of the window: which of the numbers, from 1, are in it; once more if twice}."""
    found = {}
    for *_, number, _, sums in sorted(run.trace.windows, key=lambda row: row[3]):
        found[number] = [i + 1 for i in range(40) if sum(sums.values()) >> i & 1]
    return found


def test_a_tuple_is_in_all_windows_that_overlap_it() -> None:
    """Tuple i comes at 400 ms * i. Windows of 2 s end each 1 s: that of 3 s has what came in (1 s, 3 s]:
    tuples 3 (1.2 s) to 7 (2.8 s), and so has that of 2 s all from 1 to 5 (2 s, before the tick).
    """
    run = simulate(counted({"length": 2 * S, "slide": S}, until=4000), trace=True)
    assert contents(run) == {1: [1, 2], 2: [1, 2, 3, 4, 5], 3: [3, 4, 5, 6, 7], 4: [6, 7, 8, 9, 10]}
    assert run.ledger["duplicated"] == 0
    assert run.ledger["completed"] == 10


def test_length_need_not_be_a_multiple_of_slide() -> None:
    """Windows of 2.5 s end each 1 s: panes of 0.5 s. That of 3 s has (0.5 s, 3 s]: tuples 2 to 7; that of
    4 s has (1.5 s, 4 s]: 4 (1.6 s) to 10.
    """
    run = simulate(counted({"length": 2500 * MS, "slide": S}, until=4000), trace=True)
    assert contents(run) == {
        1: [1, 2],
        2: [1, 2, 3, 4, 5],
        3: [2, 3, 4, 5, 6, 7],
        4: [4, 5, 6, 7, 8, 9, 10],
    }


def test_windows_of_tuples_slide() -> None:
    """Each third tuple ends a window of the last 4: panes of one tuple."""
    run = simulate(counted({"tuples": 4, "slide_tuples": 3}, until=4000), trace=True)
    assert contents(run) == {1: [1, 2, 3], 2: [3, 4, 5, 6], 3: [6, 7, 8, 9]}


def test_a_tuple_is_acked_with_the_first_window_without_it() -> None:
    """Windows of 2 s end each 1 s. Tuples 1 and 2 (0.4 s, 0.8 s) are in those of 1 s and 2 s, and leave
    with that of 3 s; 3 to 5 (1.2 s to 2 s) with that of 4 s, and so on: up to length + slide after they
    came. Without slide a window of 2 s acks at its end.
    """
    acked = simulate(counted({"length": 2 * S, "slide": S}, "source_replay", 4500, ack_cost=0), trace=True)
    assert acked.trace.completed == [(0, 0, 3 * S), (1, 0, 3 * S), *((i, 0, 4 * S) for i in (2, 3, 4))]
    tumbling = simulate(counted({"length": 2 * S}, "source_replay", 2500, ack_cost=0), trace=True)
    assert tumbling.trace.completed == [(i, 0, 2 * S) for i in range(5)]


@pytest.mark.parametrize(("timeout", "replayed"), [(1500, True), (3000, False)])
def test_a_timeout_shorter_than_length_and_slide_replays(timeout: int, replayed: bool) -> None:
    """Tuple 3 (1.2 s) leaves with the window of 4 s, 2.8 s later; length and slide are 3 s. A timeout of T
    fails a tuple between T and 2 T after its emission: one of 3 s none, one of 1.5 s some, at 3 s and 4.5
    s, which are counted twice though nothing failed.
    """
    times = {"message_timeout": timeout * MS, "timeout_phase": 0, "ack_cost": 0}
    run = simulate(counted({"length": 2 * S, "slide": S}, "source_replay", 9000, **times))
    assert (run.ledger["false_timeouts"] > 0) == replayed
    assert (run.ledger["duplicated"] > 0) == replayed
    assert (run.windows["wrong"] > 0) == replayed


def test_a_state_takes_what_has_not_left_with_it() -> None:
    """The state is lost at 2.1 s: tuples 1 to 5 were in the windows of 1 s or 2 s, and have not left: their
    effects are gone, for those of 3 s and 4 s lack them. Then all goes on.
    """
    lost = fault("lose_state", 2100, component="count")
    run = simulate(counted({"length": 2 * S, "slide": S}, until=6000, failures=(lost,)), trace=True)
    found = contents(run)
    assert found[2] == [1, 2, 3, 4, 5]
    assert (found[3], found[4], found[5]) == ([6, 7], [6, 7, 8, 9, 10], [8, 9, 10, 11, 12])
    assert run.ledger["lost"] == 5
    assert run.windows == {"emitted": 6, "correct": 5, "wrong": 1, "missing": 0}


def test_a_replay_after_some_windows_is_in_too_many() -> None:
    """As above under source replay: tuples 1 to 5 time out, and come again; those that were in windows
    before are in later ones too. For the ledger each takes effect once; the windows tell.
    """
    lost = fault("lose_state", 2100, component="count")
    times = {"message_timeout": 4 * S, "timeout_phase": 0, "ack_cost": 0, "failures": (lost,)}
    run = simulate(counted({"length": 2 * S, "slide": S}, "source_replay", 16000, **times), trace=True)
    found = contents(run)
    assert {root for root, _, _ in run.trace.failed} == {0, 1, 2, 3, 4}
    assert sum(1 in window for window in found.values()) == 4
    assert run.ledger["lost"] == run.ledger["duplicated"] == 0
    assert run.windows["wrong"] > 1


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ({"length": 2 * S, "slide": 3 * S}, "at most length: else tuples are in no window"),
        ({"tuples": 2, "slide_tuples": 3}, "at most tuples: else tuples are in no window"),
        ({"tuples": 2, "slide": S}, "slide is of a window of time"),
        ({"length": S, "slide_tuples": 3}, "slide_tuples is of a window of tuples"),
        ({"length": S, "slide": MS // 2}, "slide must be at least 1 ms"),
        ({"length": S, "lag": S}, "lag is of windows by event: add by: event"),
        ({"tuples": 2, "by": "event"}, "windows of tuples go by arrival"),
        ({"length": S, "by": "event", "trigger": "marker"}, "what ends windows by event is their watermark"),
    ],
)
def test_what_makes_no_sense_is_refused(window: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Window(**window)


def train(*tuples: tuple[int, int]) -> Train:
    """(upstream task, id) each."""
    streams, ids = (np.array(column, np.int64) for column in zip(*tuples, strict=True))
    return Train(ids, ids, ids, ids).adding(**{STREAM: streams})


def ids(*numbers: int) -> Ints:
    return np.array(numbers, np.int64)


def test_ids_drop_feed_or_end_the_comparison() -> None:
    """Of sender 0, 3 has left and 5 was put out; of sender 1, 12 was put out. What comes: 0 has 2 and 3
    dropped, 4 taken in, 7 ends its comparison and waits, and so does 8 behind it. 1 has 11 taken in; 13
    ends its comparison, and with it all: 7, 8 and 13 go into the window in order, and what comes behind
    them too.
    """
    before = WindowIds()
    before.note(ids(3, 5, 12), ids(0, 0, 1))
    before.put_out(ids(3, 5, 12), left=ids(3))
    after = before.saved()
    assert after.comparing
    assert after.entries == 2
    into, known = after.compare(train((0, 2), (0, 3), (0, 4), (0, 7), (1, 11), (0, 8)))
    assert [part.uid.tolist() for part in into] == [[4], [11]]
    assert known == [0, 1]
    assert after.comparing
    into, known = after.compare(train((1, 13), (1, 14), (0, 9)))
    assert [part.uid.tolist() for part in into] == [[7], [8], [13], [14, 9]]
    assert known == []
    assert not after.comparing


@pytest.mark.parametrize(("saved", "windows_of_6"), [("contents", 2), ("ids", 4)])
def test_ids_do_not_help_if_new_tuples_come_before_the_replay(saved: str, windows_of_6: int) -> None:
    """Windows of 2 s end each 1 s; a transaction each 1 s, at once, after the window's end. At 4 s tuples 1
    to 5 have left, 6 to 10 were put out. The state is lost at 4.5 s. With contents, 6 to 10 are in the
    transaction and acked, so tuple 6 is in the windows of 3 s and 4 s only. With ids they are not; the
    first that comes is 12, which is new and ends the comparison, and when 6 to 10 have timed out at 8 s,
    they are taken for new ones: tuple 6 is in two more windows. (Storm needs a source that goes back.)
    """
    lost = fault("lose_state", 4500, component="count")
    times = {"message_timeout": 4 * S, "timeout_phase": 0, "ack_cost": 0, "checkpoint_interval": S}
    window = {"length": 2 * S, "slide": S, "saved": saved}
    run = simulate(
        counted(window, "storm_checkpoint", 20000, failures=(lost,), **times),
        trace=True,
    )
    assert run.ledger["lost"] == 0
    assert sum(6 in window for window in contents(run).values()) == windows_of_6


def test_only_what_has_left_is_acked() -> None:
    """As above, without a failure: tuples 1 and 2 leave with the window of 3 s, and are acked by the commit
    of that moment; with contents those of the first second are acked by the commit of 1 s.
    """
    times = {"message_timeout": 10 * S, "timeout_phase": 0, "ack_cost": 0, "checkpoint_interval": S}
    acked = {}
    for saved in ("ids", "contents"):
        window = {"length": 2 * S, "slide": S, "saved": saved}
        run = simulate(counted(window, "storm_checkpoint", 3500, **times), trace=True)
        acked[saved] = [(root, round(time / S, 6)) for root, _, time in run.trace.completed]
    assert acked["ids"] == [(0, 3), (1, 3)]
    assert acked["contents"][:2] == [(0, 1), (1, 1)]


def joined(window: dict[str, Any], strategy: str = "none", until: float = 4500, **more: Any) -> Scenario:
    """left (1, 2, 3, … every 400 ms) and right (10 every 600 ms) -> join; all of one key."""
    failures = more.pop("failures", ())
    topology = {
        "left": spout("values", 400, values=tuple(range(1, 40))),
        "right": spout("values", 600, values=(10,), repeat=True),
        "join": bolt("windowed_join", {"left": "fields", "right": "fields"}, window=Window(**window)),
    }
    return world(topology, strategy, failures, until, **more)


def sums(scenario: Scenario) -> dict[int, int]:
    found = simulate(scenario, trace=True)
    return {number: sum(pairs.values()) for *_, number, _, pairs in found.trace.windows}


def test_a_window_has_all_pairs_of_the_two_sides() -> None:
    """In (0, 2 s]: 1 to 5 at 0.4 s to 2 s, and 10 at 0.6 s, 1.2 s and 1.8 s: (1 + … + 5) * 30 = 450. In (2
    s, 4 s]: 6 to 10, and 10 at 2.4 s, 3 s and 3.6 s: 40 * 30 = 1,200. Sliding each second: (1 s, 3 s] has 3
    to 7 and three times, too, 10: at 1.2 s, 1.8 s, 2.4 s and 3 s: 25 * 40 = 1,000.
    """
    assert sums(joined({"length": 2 * S})) == {1: 450, 2: 1200}
    assert sums(joined({"length": 2 * S, "slide": S})) == {1: 3 * 10, 2: 450, 3: 1000, 4: 1200}


def test_a_key_of_one_side_makes_no_pair() -> None:
    """right has nothing before 0.6 s: a window of 0.5 s has one side only, and puts out nothing."""
    assert sums(joined({"length": 500 * MS}, until=1100)) == {1: 0, 2: 2 * 10}


def test_a_lost_side_is_replayed_late() -> None:
    """The state is lost at 1 s. Source replay brings 1, 2 and 10 back, into a later window: that of 2 s
    lacks them, and the one in which they come has them besides. The ledger has all, the windows are wrong.
    """
    lost = fault("lose_state", 1000, component="join")
    times = {"message_timeout": 2 * S, "timeout_phase": 0, "ack_cost": 0, "failures": (lost,)}
    scenario = joined({"length": 2 * S}, "source_replay", 9000, **times)
    found = simulate(scenario, trace=True)
    assert found.ledger["lost"] == found.ledger["duplicated"] == 0
    assert found.windows["wrong"] == 2
    assert sums(scenario)[1] == (3 + 4 + 5) * (10 + 10)


def test_a_join_reads_two_streams() -> None:
    topology = joined({"length": S}).topology
    join = topology["join"]
    three = topology | {
        "more": topology["left"],
        "join": join.model_copy(update={"from_": {"left": join.from_["left"]}}),
    }
    with pytest.raises(TopologyError, match="tells 2 streams apart; from must name 2, not 1"):
        Topology(three)


# -- after a failure: those of a run in which nothing fails --------------------------------------------------

DISORDER = (0, 300, -200, 600, 0, -400, 100)
"""Events (ms) before or after their place in the order of arrival; no more than the lag apart."""

EVENT = {"by": "event", "length": S, "lag": 1200 * MS, "watermark_interval": 250 * MS}
ENDED_ALIKE = {
    "event": EVENT,
    "sliding by event": EVENT | {"length": 2 * S, "slide": S},
    "session": EVENT | {"length": None, "gap": 150 * MS},
    "sliding by marker": {"length": 2 * S, "slide": S, "trigger": "marker"},
}
EXACTLY_ONCE: list[tuple[str, dict[str, Any]]] = [
    ("passive_standby", {"checkpoint_interval": 700 * MS}),
    ("active_standby", {}),
    ("upstream_backup", {"ack_interval": 700 * MS}),
    ("micro_batch", {"trigger_interval": 700 * MS}),
    ("micro_batch", {"trigger_interval": 700 * MS, "recovery": "lineage"}),
    ("micro_batch", {"trigger_interval": 700 * MS, "recovery": "replay"}),
    ("batch_rerun", {"trigger_interval": 700 * MS}),
    ("trident", {"spout": "opaque", "state": "opaque", "batch_interval": 700 * MS, "message_timeout": S}),
    ("trident", {"spout": "transactional", "state": "transactional", "message_timeout": S}),
    ("changelog", {"guarantee": "exactly_once", "commit_interval": 700 * MS, "transaction_timeout": 0}),
]


def disordered(window: dict[str, Any], strategy: str, *failures: Any, **keys: Any) -> Scenario:
    """numbers (each its own bit, one every 100 ms from 100 ms on) -> pass on (1 ms) -> count (1 ms)."""
    stamps = tuple(max(0, 100 * (i + 1) + DISORDER[i % len(DISORDER)]) * MS for i in range(60))
    topology = {
        "numbers": spout("values", 100, values=tuple(1 << i for i in range(60)), stamps=stamps),
        "pass": bolt("forward", {"numbers": "fields"}, ms(1)),
        "count": bolt("windowed_count", {"pass": "fields"}, ms(1), window=Window(**window)),
    }
    return world(topology, strategy, failures, 9000, **keys)


def seen_first(run: Replication) -> dict[int, dict[int, int]]:
    """{number of the window: the sums that its readers see first}."""
    found: dict[int, dict[int, int]] = {}
    for *_, number, _, sums in sorted(run.trace.windows, key=lambda row: row[4]):
        found.setdefault(number, sums)
    return found


@pytest.mark.parametrize(("at", "who"), [(2031, "pass"), (3777, "count")])
@pytest.mark.parametrize(
    ("strategy", "keys", "window"),
    [
        (strategy, keys, window)
        for strategy, keys in EXACTLY_ONCE
        for window in ENDED_ALIKE
        if set(window.split()) & {"event", "session", "sliding"} <= STRATEGIES[strategy].windows
    ],
)
def test_they_are_those_of_a_run_without_failures(
    strategy: str, keys: dict[str, Any], window: str, at: int, who: str
) -> None:
    """What puts a tuple into a window is what it carries (its event, or the number of the marker before it),
    and not when it comes. So if no event is late, what is worked on again falls where it fell before, a
    window that is put out again is as it was, and each tuple is in as many windows as it would have been.
    Spouts that replay call later: a root may be behind another marker then, in the run's reference too.
    """
    crash = fault("crash_task", at, component=who, detection=150, restart=400, while_down="hold")
    found = simulate(disordered(ENDED_ALIKE[window], strategy, crash, **keys), trace=True)
    quiet = simulate(disordered(ENDED_ALIKE[window], strategy, **keys), trace=True)
    assert len(seen_first(quiet)) > 3
    assert found.windows == quiet.windows
    assert (found.windows["wrong"], found.windows["missing"]) == (0, 0)
    if "event" in ENDED_ALIKE[window].values():
        assert seen_first(found) == seen_first(quiet)
    assert (found.ledger["lost"], found.ledger["duplicated"], found.ledger["late"]) == (0, 0, 0)

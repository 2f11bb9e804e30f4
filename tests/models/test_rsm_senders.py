"""R+SM when more than a count fails: what senders owe, what is kept meanwhile, what the ledger makes of it.

The small world of most tests is   s ──▶ p (1) ──▶ count (1)   with a root every 10 from 10 on; checkpoints
are due every 20. Engine and reference are both held to the times that are written here (milliseconds).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.chain import EVERY_10, ONES, chain, counted, crashed, lost, windows
from tests.models.test_exactness import differences
from tests.oracle.worlds import MS, bolt, fault, ms, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import Links
from tideover.models.simulation import Replication, simulate


def played(scenario: Scenario) -> Replication:
    """Run it, in the engine and in the reference."""
    assert not differences(scenario)
    return simulate(scenario, trace=True)


def counts(failures: tuple[Any, ...], until: float, at_p: float = 1, **more: Any) -> Scenario:
    """s ──▶ p ──▶ count, where p has state, too: windows of one tuple, so that it hands on each root."""
    scenario = chain(failures, until, **more)
    p = bolt("windowed_count", {"s": "shuffle"}, at_p, window={"tuples": 1})
    return scenario.model_copy(update={"topology": scenario.topology | {"p": p}})


def handed_on(run: Replication) -> list[tuple[int, float]]:
    """In the world ``counts``: (root, when) of what the count has processed."""
    return [(uid // 2 - 1, when) for uid, when in counted(run)]  # uid: window's number, and a bit for the key


# -- a sender that is not ready ------------------------------------------------------------------------------


def test_a_sender_that_is_not_restored_is_asked_when_it_is() -> None:
    """count is lost at 45 and restored at 50, p is lost at 47 and restored at 52. Root 4, which came to p at
    50, is served first, until 53; then p replays 3 (of 41) and 4 (discarded when it came directly).
    """
    run = played(counts((lost(45), lost(47, of="p")), 65, restore_time=5))
    assert handed_on(run) == [*EVERY_10[:4], (3, 54), (4, 55), (5, 62)]


def test_a_request_that_waits_when_its_sender_loses_its_state_is_made_again() -> None:
    """p takes 8. count is restored at 53; its request waits for root 4 (50 to 58). At 55 p loses its state:
    it is restored at 57, serves root 4 anew, until 65, and then the request, for 3 and 4.
    """
    run = played(counts((lost(51), lost(55, of="p")), 85, at_p=8, restore_time=2))
    assert handed_on(run) == [(0, 19), (1, 29), (2, 39), (3, 49), (3, 66), (4, 67), (5, 74), (6, 82)]


def test_a_sender_without_state_has_nothing_to_lose() -> None:
    """p takes 8, and the request waits for root 4 (50 to 58) when p "loses its state": it is served all the
    same, and once. Roots 3 and 4 leave at 60 and 62; p is busy until then.
    """
    run = played(chain((lost(51), lost(53, of="p")), 80, at_p=8, replay_cost=2))
    assert counted(run) == [(0, 19), (1, 29), (2, 39), (3, 49), (3, 61), (4, 63), (5, 71), (6, 79)]


def test_a_sender_that_goes_down_with_its_buffer_replays_from_the_beginning() -> None:
    """p replays 3 and 4 from 51 on, in steps of 3: root 3 leaves at 54. p is down from 55 to 59, but keeps
    its queue and its buffer: asked again, it sends 3 at 62, which count has, and 4 at 65. Root 5 waits.
    """
    run = played(chain((crashed(45, 5), lost(55, of="p", restart=4)), 75, replay_cost=3))
    assert counted(run) == [*EVERY_10[:4], (3, 55), (4, 66), (5, 67), (6, 72)]
    assert (run.ledger["lost"], run.ledger["duplicated"]) == (0, 0)


def test_what_a_sender_could_not_be_told_to_trim_is_not_replayed() -> None:
    """p is down from 24 to 26, so it is not told that the checkpoint of 25 holds roots 0 and 1: it keeps
    both. Asked at 28 it has nothing to replay, which would take 3, and serves root 2 at once.
    """
    faults = (lost(24, of="p", restart=2), lost(28))
    run = played(chain(faults, 45, replay_cost=3, checkpoint_interval=25 * MS))
    assert counted(run) == EVERY_10[:4]
    assert [row["replayed"] for row in run.recoveries] == [0, 0]


def test_a_replay_that_comes_twice_is_dropped_though_it_is_not_yet_counted() -> None:
    """count takes 6, and is lost at 58. Root 3 comes from p at 61, in service until 67. p is down from 62 to
    62.5; it serves root 5 (60) until 63.5, then 3, 4 and 5, at 66.5, 69.5 and 72.5.
    """
    run = played(chain((lost(58), lost(62, of="p", restart=0.5)), 94, at_count=6, replay_cost=3))
    first, again = [(0, 17), (1, 27), (2, 37), (3, 47), (4, 57)], [(3, 67), (4, 75.5), (5, 81.5), (6, 87.5)]
    assert counted(run) == [*first, *again, (7, 93.5)]
    assert run.ledger["duplicated"] == 0


def test_both_copies_of_a_replay_can_be_on_the_wire() -> None:
    """The same with 20 on the wire from p to count, which has 0 … 4 at 37, …, 77, of which the checkpoint of
    60 holds 0, 1, 2, and is lost at 78. Root 3 leaves p at 81, and again at 86.5, for p is down from 82 to
    82.5, and serves root 7 (80) before it begins anew; 4 follows at 89.5.
    """
    links = Links(latency=ms(0), local=ms(0), pairs={"1-2": ms(20)})
    faults = (lost(78), lost(82, of="p", restart=0.5))
    run = played(chain(faults, 118, at_count=6, replay_cost=3, links=links))
    assert counted(run) == [*((n, 10 * n + 37) for n in range(5)), (3, 107), (4, 115.5)]


# -- what a fault ends, and what it does not -----------------------------------------------------------------


def test_a_fault_ends_the_writing_of_a_checkpoint() -> None:
    """Serialising takes 4. The checkpoint of 20 holds root 0; that of 40 is void, as the state is lost at 42,
    and does not keep the task any longer: 1, 2 and 3 come at once.
    """
    run = played(chain((lost(42),), 55, serialise_time=4))
    assert counted(run) == [(0, 12), (1, 25), (2, 32), (1, 43), (2, 44), (3, 45), (4, 52)]


def held(*failures: Any) -> Replication:
    """s ──▶ count (1), without a buffer. A restore takes 10, and root 4 comes at 50."""
    topology = {
        "s": spout(**ONES),
        "count": bolt("windowed_count", {"s": "shuffle"}, 1, window={"length": 1000 * MS}),
    }
    more = {"checkpoint_interval": 20 * MS, "restore_time": 10 * MS, "entry_size": 0}
    return played(world(topology, "rsm", (lost(45), *failures), 75, **more))


def test_what_is_held_for_a_restore_survives_another_loss_of_state() -> None:
    """Lost at 45 and at 52: root 4 (50) is kept all the time, and served at 62 with root 5."""
    run = held(lost(52))
    assert counted(run) == [(0, 11), (1, 21), (2, 31), (3, 41), (4, 63), (5, 64), (6, 71)]
    assert run.ledger["lost"] == 0


@pytest.mark.parametrize("down", ["drop", "hold"])
def test_what_is_held_for_a_restore_goes_with_the_process(down: str) -> None:
    """Lost at 45 and at 52, when it goes down with root 4 kept; a crash, at 54, takes that. Ready at 56, the
    count serves root 5 (60) at 66.
    """
    run = held(lost(52, restart=5), crashed(54, 2, while_down=down))
    assert counted(run) == [(0, 11), (1, 21), (2, 31), (3, 41), (5, 67), (6, 71)]
    assert [row[3:] for row in run.trace.destroyed] == [(4, 54 * MS)]
    assert run.ledger["lost"] == 1


def test_a_replay_that_finds_nobody_is_destroyed() -> None:
    """Links take 5: root n is counted at 22 + 10n. Lost at 45, the count is to get 2 and 3 at 51, beside 3 as
    it was first sent; but it is down from 48 to 58. All three are destroyed; 2, 3 and 4 come at 63.
    """
    links = Links(latency=ms(5), local=ms(5))
    run = played(chain((lost(45), crashed(48, 10)), 75, links=links))
    assert counted(run) == [(0, 22), (1, 32), (2, 42), (2, 64), (3, 65), (4, 66), (5, 72)]
    assert sorted(row[3:] for row in run.trace.destroyed) == [(2, 51 * MS), (3, 51 * MS), (3, 51 * MS)]


def test_what_senders_hold_comes_when_the_task_is_ready() -> None:
    """5 on the wire from p to count, which is down from 45 to 59 and restored at 64. p's crash, at 43, has
    taken its buffer, with root 3 on the wire: it comes at 46, is held, and thrown away at 59, for a replay
    which will not have it. Root 4 (56) is in p's new buffer; 0, 1, 2 are in the checkpoint of 40.
    """
    links = Links(latency=ms(0), local=ms(0), pairs={"1-2": ms(5)})
    faults = (crashed(43, 1, "p"), crashed(45, 14, while_down="hold"))
    found = []
    for until in (58, 59.5, 75):
        run = played(chain(faults, until, restore_time=5, links=links))
        found.append(tuple(run.ledger[name] for name in ("completed", "in_flight", "lost")))
    assert counted(run) == [(0, 17), (1, 27), (2, 37), (4, 70), (5, 71)]
    assert found == [(0, 5, 0), (0, 4, 1), (5, 1, 1)]


# -- what is lost, and what is in flight ---------------------------------------------------------------------


def test_a_root_is_not_lost_while_a_checkpoint_holds_it() -> None:
    """s ──▶ count, windows of 5 tuples, checkpoints every 32, no buffer.

    The checkpoint of 32 holds 0, 1, 2. Window 1 ends at 50 with 0 … 4; lost at 55, the count has 0, 1, 2
    again, and 5 at 60, which the checkpoint of 64 holds. With 6, at 70, window 1 is full once more, and void.
    So 6 is lost at once, and 5 when the checkpoint of 96 has taken the place of the other.
    """
    topology = {
        "s": spout(**ONES),
        "count": bolt("windowed_count", {"s": "shuffle"}, window={"tuples": 5}),
    }
    found = []
    for until in (68, 75, 97):
        run = played(world(topology, "rsm", (lost(55),), until, checkpoint_interval=32 * MS))
        found.append(tuple(run.ledger[name] for name in ("completed", "in_flight", "lost", "duplicated")))
    assert windows(run) == [(1, 50, 5), (1, 70, 5)]
    assert found == [(6, 0, 0, 3), (5, 1, 1, 0), (7, 0, 2, 0)]


# -- whatever fails while something else recovers ------------------------------------------------------------


@st.composite
def strikes(draw: st.DrawFn) -> tuple[Any, ...]:
    """Two to four faults of p and count within 12."""
    some = []
    for _ in range(draw(st.integers(2, 4))):
        kind = draw(st.sampled_from(("lose_state", "lose_state", "crash_task")))
        times = {"at": 45 + draw(st.integers(0, 24)) / 2, "restart": draw(st.sampled_from((0, 0, 1, 4, 8)))}
        down = draw(st.sampled_from(("drop", "hold")))
        some.append(fault(kind, component=draw(st.sampled_from(("p", "count"))), while_down=down, **times))
    return tuple(some)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    failures=strikes(),
    until=st.integers(50, 95),
    stateful=st.booleans(),
    at_p=st.sampled_from((1, 8)),
    replay_cost=st.sampled_from((0, 1, 3)),
    restore_time=st.sampled_from((0, 2, 5)),
    wire=st.sampled_from((0, 5, 20)),
)
def test_faults_within_recoveries_come_out_as_the_reference_has_them(
    failures: tuple[Any, ...], until: int, stateful: bool, wire: int, **more: Any
) -> None:
    """Whatever p owes to count, and has to do itself, when one of them fails into a recovery."""
    links = Links(latency=ms(0), local=ms(0), pairs={"1-2": ms(wire)})
    scenario = counts if stateful else chain
    assert not differences(scenario(failures, until, links=links, **more))

"""Active standby: a secondary does everything, too, and what it has not sent it has in its queue.

    s ──▶ p x 2 (1) ──▶ count x 2 (1)   with a root every 10 ms from 10 on: root n is with both p until
10n + 11, and is counted by both at 10n + 12. What p has sent is acked every 20 ms.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.chain import EVERY_10, ONES, chain, counted
from tests.models.test_exactness import check
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.simulation import Replication, simulate
from tideover.models.strategies.base import STRATEGIES

OF_100 = {"length": 100 * MS, "trigger": "marker"}


def crash(at: float, component: str, replica: int = 0, detection: float = 15, restart: float = 100) -> Any:
    more = {"detection": detection, "restart": restart}
    return fault("crash_task", at, component=component, replica=replica, **more)


def standing_by(scenario: Scenario, **keys: Any) -> Replication:
    """The same world, with acks every 20 ms; sending from a queue takes 1 ms a tuple."""
    keys = {"ack_interval": 20 * MS, "replay_cost": MS} | keys
    return simulate(scenario.with_strategy(STRATEGIES["active_standby"].model_validate(keys)), trace=True)


def test_the_secondary_sends_what_is_in_its_queue() -> None:
    """The primary of p crashes at 45, which is noticed at 60. The secondary has kept what was not acked at
    40: roots 3 (it came to the counts at 41) and 4. At 60 root 5 comes, the secondary is to speak, and the
    counts say that they have had 3. At 61 it is done with 5, and sends its queues: 4 and 5 to the first count
    at 62 and 63, to the second at 64 and 65. Root 6 is as ever.
    """
    done = standing_by(chain((crash(45, "p"),), until=85))
    assert counted(done, 0) == [*EVERY_10[:4], (4, 63), (5, 64), *EVERY_10[6:8]]
    assert counted(done, 1) == [*EVERY_10[:4], (4, 65), (5, 66), *EVERY_10[6:8]]
    assert [(outage.masked, outage.ready_at) for outage in done.world.outages] == [(False, 60 * MS)]
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)


def test_an_ack_takes_nothing_that_was_not_had() -> None:
    """The primary of p pauses from 25 to 46, so what the counts have had at 40 is roots 0 and 1. The second p
    has done 2, and keeps it: when the primary has crashed at 45 it sends 2 to 5, as above.
    """
    pause = fault("pause", 25, component="p", duration=21 * MS)
    done = standing_by(chain((pause, crash(45, "p")), until=85))
    assert counted(done, 0) == [*EVERY_10[:2], (2, 63), (3, 64), (4, 65), (5, 66), *EVERY_10[6:8]]
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)


def test_a_secondary_is_not_missed() -> None:
    """It crashes: what is counted, and when, is what it was, and the failure is masked."""
    done = standing_by(chain((crash(45, "p", replica=1),), until=85))
    assert counted(done, 0) == EVERY_10[:8]
    assert done.world.outages[0].masked


def test_a_new_secondary_has_the_state_and_the_queue() -> None:
    """The primary of the count crashes at 45, which is noticed at 60: another is made, out of the secondary,
    which has roots 0 to 4 and speaks from then on. At 75 that one crashes, and the window of 100 (ten roots)
    comes from the new one.
    """
    faults = (crash(45, "count"), crash(75, "count", replica=1))
    done = standing_by(chain(faults, 115, OF_100))
    assert [(*row[2:4], row[5]) for row in done.trace.windows] == [(0, 1, {0: 10})]
    assert done.windows == {"emitted": 1, "correct": 1, "wrong": 0, "missing": 0}
    assert (done.ledger["lost"], done.ledger["duplicated"]) == (0, 0)


@pytest.mark.parametrize("detection", [5, 15])
def test_a_window_that_ends_before_the_failure_is_noticed_waits_for_that(detection: float) -> None:
    """The primary of the count crashes at 95; the marker of 100, behind root 9, ends the window at the
    secondary at 102, but it puts out nothing before 95 + ``detection``.
    """
    done = standing_by(chain((crash(95, "count", detection=detection),), 125, OF_100))
    ((*_, replica, number, at, sums),) = done.trace.windows
    assert (replica, number, at / MS, sums) == (1, 1, max(102, 95 + detection), {0: 10})


def test_a_window_that_was_put_out_is_not_put_out_again() -> None:
    """Both end the window of 100 at 102, and the primary puts it out. It crashes at 105, which is noticed at
    110, before the acks of 120 make the secondary forget the window.
    """
    done = standing_by(chain((crash(105, "count", detection=5),), 145, OF_100))
    assert [(row[2], row[3], row[4] / MS) for row in done.trace.windows] == [(0, 1, 102)]


def test_sums_are_sent_by_who_takes_over() -> None:
    """s ──▶ split ──▶ count ──▶ total. The primary of the count crashes just before the window of 100 ends,
    and the total's count of sums is right all the same.
    """
    topology = {
        "s": spout("sentences", 5),
        "split": bolt("split_words", {"s": "shuffle"}),
        "count": bolt("windowed_count", {"split": "shuffle"}, window=OF_100),
        "total": bolt("windowed_count", {"count": "shuffle"}, window=OF_100),
    }
    scenario = world(topology, "active_standby", (crash(99, "count"),), 531, ack_interval=20 * MS)
    done = simulate(scenario)
    assert (done.windows["wrong"], done.windows["missing"], done.ledger["lost"]) == (0, 0, 0)


def test_queues_are_trimmed() -> None:
    """For 9 s: what is kept does not grow with the length of the run."""
    short, long = (standing_by(chain(until=until)).cost["peak_buffered_tuples"] for until in (300, 9000))
    assert short == long


def test_a_window_by_event_that_is_put_out_in_silence_is_not_missing() -> None:
    """A tuple each 10, which takes count 30: the look of 50 has its turn behind five, at 160. The primary
    crashes at 100; behind ten the other is to speak, at 310: until then it puts out its windows in silence.
    """
    window = {"by": "event", "length": 20 * MS, "watermark_interval": 50 * MS}
    stamps = tuple(10 * MS * n for n in range(1, 13))
    topology = {
        "s": spout("values", 10, values=(1,) * 12, stamps=stamps),
        "count": bolt("windowed_count", {"s": "shuffle"}, 30, window=window),
    }
    hit = fault("crash_task", 100, component="count", restart=500)
    for until, spoken in ((250, 0), (350, 5)):
        scenario = world(topology, "active_standby", (hit,), until, ack_interval=1000 * MS)
        check(scenario)
        windows = simulate(scenario).windows
        assert (windows["emitted"], windows["missing"]) == (spoken, 0)


def test_a_sliding_window_that_is_put_out_in_silence_is_not_missing() -> None:
    """A tuple each 10; windows of 30 end every 20. The primary crashes at 95, which is noticed at 145: until
    then the secondary keeps those of 100, 120 and 140.
    """
    sliding = {"length": 30 * MS, "slide": 20 * MS, "trigger": "tick"}
    for until, spoken in ((144, 4), (150, 7)):
        topology = {
            "s": spout(**ONES),
            "count": bolt("windowed_count", {"s": "shuffle"}, 1, window=sliding),
        }
        hit = crash(95, "count", detection=50)
        scenario = world(topology, "active_standby", (hit,), until, ack_interval=1000 * MS)
        check(scenario)
        windows = simulate(scenario).windows
        assert (windows["emitted"], windows["missing"]) == (spoken, 0)

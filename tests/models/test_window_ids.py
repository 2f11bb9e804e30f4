"""Stateful windows of which only ids are saved: last left, last put out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.test_sliding_windows import S, contents, counted
from tests.oracle.worlds import fault
from tideover.models.operators.window import STREAM, WindowIds
from tideover.models.simulation import simulate
from tideover.sim.train import Ints, Train


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
        assert run.trace is not None
        acked[saved] = [(root, round(time / S, 6)) for root, _, time in run.trace.completed]
    assert acked["ids"] == [(0, 3), (1, 3)]
    assert acked["contents"][:2] == [(0, 1), (1, 1)]

"""Joins of two streams over windows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.config import Scenario
from tideover.models.job.topology import Topology, TopologyError
from tideover.models.operators.window import Window
from tideover.models.simulation import simulate

S = 1000 * MS


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
    assert found.trace is not None
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

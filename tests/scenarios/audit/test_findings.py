"""What audits find: the guarantees that the literature knows, and where its own authors saw them break.

words x 2 ──shuffle──▶ split x 2 ──fields──▶ count x 2     windows of 10 s ended by markers
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tideover.scenarios.audit.asked import asked, target
from tideover.scenarios.audit.audit import Audit, audit
from tideover.scenarios.spark.place import Place
from tideover.scenarios.sweeps.several import kept


def audited(
    name: str, *settings: str, kinds: str = "crash_task", begin: str = "20 s", end: str = "30 s", **more: bool
) -> Audit:
    """An audit in this process, of one moment a step and one task a component."""
    scenario, command = target(name, ["run.duration=60s", *settings])
    tried = asked(
        scenario, kinds=kinds.split(","), begin=begin, end=end, each=1, second=more.pop("second", False)
    )
    with kept(None, Place(None), lambda what: None) as doer:
        return audit(scenario, command, replace(tried, tasks=1), doer)


@pytest.mark.parametrize(
    ("strategy", "claimed"),
    [("none", "at most once"), ("source_replay", "at least once"), ("aligned_snapshots", "exactly once")],
)
def test_what_a_strategy_claims_is_observed(strategy: str, claimed: str) -> None:
    """Not less (it holds), and not more: amnesia loses, replays count twice."""
    found = audited(strategy, begin="27 s", end="29 s")
    assert (found.claimed, found.observed, found.holds) == (claimed, claimed, True)
    assert not found.quiet.harm


@pytest.mark.parametrize(("trigger", "right"), [("tick", False), ("marker", True)])
def test_replicas_disagree_where_a_timer_ends_windows(trigger: str, right: bool) -> None:
    """Tanuwidjaja 2015: both replicas of split send the same words, which come at other moments. With a timer
    the replicas of the count put out other sums, and which is read is chance: wrong, though nothing fails.
    """
    world = (f"topology.count.window.trigger={trigger}", "links.latency.mean=100 ms")
    found = audited("active_replication", *world, begin="20 s", end="20.2 s")
    assert (found.quiet.wrong == 0, found.holds) == (right, right)


def test_a_window_longer_than_the_timeout_counts_twice() -> None:
    """Source replay: tuples are acked at the end of their window of 10 s, and given up after 4 to 8 s."""
    found = audited("source_replay", "strategy.message_timeout=4 s", begin="20 s", end="20.5 s")
    assert found.quiet.duplicated
    assert found.observed == "at least once"


def test_buffers_are_lost_with_the_upstream_task() -> None:
    """R+SM keeps its word after each single fault of the count. If the split whose buffer it asks for dies
    meanwhile, what is in it is gone.
    """
    found = audited("rsm", begin="24 s", end="26 s", second=True)
    assert found.holds
    assert found.observed == "exactly once"
    lost = {tuple(victim.place for victim in case.victims) for case, verdict in found.doubles if verdict.lost}
    assert ("count", "split") in lost
    assert ("count", "count") not in lost

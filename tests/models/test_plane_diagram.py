"""What becomes of each tuple, and what is seen of a part of a run: laws in worlds at random."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.test_diagram import (
    ALL,
    hold_against_the_reference,
    hold_its_own,
    noted,
    physical,
    watched,
    whole,
)
from tests.models.test_plane_laws import FEW_OR_MANY
from tests.oracle.program import play, run
from tests.oracle.random_changes import logs, networks, queues, together
from tests.oracle.random_worlds import overlapping
from tests.oracle.worlds import MS, bolt, fault, spout, world
from tideover.models.accounts import trace
from tideover.models.accounts.trace import Stretch
from tideover.models.config import Scenario
from tideover.models.evaluation.diagram import Arrow, Diagram
from tideover.models.simulation import watch
from tideover.models.world import World
from tideover.sim.kernel import standing

MARKED = ("none", "source_replay", "active_replication", "aligned_snapshots", "storm_checkpoint")
"""No buffer sends the markers of these again: such a marker is shown when it was sent first."""
MIXED = ("none", "source_replay", "rsm", "active_replication")
WORLDS = st.one_of(*map(overlapping, ((strategy,) for strategy in ALL)))
OTHERS = st.one_of(logs(overlap=True), networks(overlap=True))


# -- histories --------------------------------------------------------------------------------------------


def hold_fates(scenario: Scenario) -> None:
    """Every event that the reference has, too, is there, and no other: emissions, timeouts, what was
    destroyed, and what was processed but those that came too late for their window.
    """
    expected, world = run(scenario, 0), World(scenario, trace=True)
    world.run()
    anchored = {c.name for c in world.job.topology.components if c.anchored}
    found: dict[str, Counter[Any]] = {}
    roots = {root for _, _, root, _, _ in expected.emitted}
    for event in (event for root in roots for event in world.trace.of(root)):
        rows = found.setdefault(event.what, Counter())
        rows[event.component, event.replica, event.uid, event.number, event.at] += 1
    nothing: Counter[Any] = Counter()
    emitted = Counter((spout, 0, root, attempt, at) for spout, _, root, attempt, at in expected.emitted)
    assert found.get(trace.EMITTED, nothing) == emitted
    timed_out = Counter(row[2:] for row in found.get(trace.TIMED_OUT, nothing).elements())
    assert timed_out == Counter(expected.failed)
    destroyed = Counter((*row[:3], row[4]) for row in found.get(trace.DESTROYED, nothing).elements())
    gone = (*expected.destroyed, *expected.overflowed)
    assert destroyed == Counter((c, r, uid, at) for c, _, r, uid, at in gone if c in anchored)
    processed = found.get(trace.PROCESSED, nothing)
    done = ((c, r, uid, attempt, at) for c, _, r, uid, attempt, _, at in expected.processed)
    late = Counter(row for row in done if row[0] in anchored) - processed
    assert processed.total() + late.total() == sum(row[0] in anchored for row in expected.processed)
    assert all(world.job.topology.by_name[row[0]].window for row in late)
    for root, attempt, at in expected.completed:  # with the last ack of its tree; the first that a tuple has
        acked: dict[Any, int] = {}
        for event in world.trace.of(root):
            if event.what == trace.ACKED and event.number == attempt:
                acked.setdefault((event.component, event.replica, event.uid), event.at)
        assert max(acked.values(), default=at) == at


@FEW_OR_MANY
def test_fates_are_those_of_the_reference(how: settings) -> None:
    """What is said to become of tuples is what the per-tuple reference finds."""

    @how
    @given(st.one_of(WORLDS, OTHERS, queues(overlap=True), together(MIXED)))
    def check(scenario: Scenario) -> None:
        with standing():
            hold_fates(scenario)

    check()


# -- diagrams ----------------------------------------------------------------------------------------------


@FEW_OR_MANY
def test_messages_are_those_of_the_reference_in_other_worlds(
    how: settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sent what to whom is what the reference finds where other generators draw worlds, too."""

    @how
    @given(OTHERS)
    def check(scenario: Scenario) -> None:
        with standing():
            hold_against_the_reference(scenario, monkeypatch)
            hold_its_own(scenario)

    check()


@FEW_OR_MANY
def test_control_messages_are_those_of_the_reference(how: settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers and barriers are shown between the tasks, and of the moments, between and at which the
    reference sends them: all that came, and no other.
    """

    @how
    @given(st.one_of(*(overlapping((strategy,)) for strategy in MARKED)))
    def check(scenario: Scenario) -> None:
        with standing():
            with noted(monkeypatch) as (made, came):
                play(scenario, 0)
            sent = {
                message: (message.channel.up.physical, message.channel.down.physical, moment)
                for message, moment in made.items()
                if message.datum is None
            }
            world = watched(scenario)
            control = world.space_time.control
            found = {(physical(world, c.sender), physical(world, c.receiver), c.sent) for c in control}
            assert {sent[message] for message in sent if message in came} <= found <= {*sent.values()}

    check()


def inside(found: Diagram, stretch: Stretch) -> Counter[Any]:
    """What of a diagram begins and ends in a stretch."""

    def lies_in_it(arrow: Arrow) -> bool:
        moments = (arrow.sent, arrow.came, arrow.over if arrow.kind == "tuple" else arrow.came)
        return all(moment is not None and stretch.has(moment) for moment in moments)

    return Counter(
        [*filter(lies_in_it, found.arrows), *(each for each in found.events if stretch.has(each.at))]
    )


@FEW_OR_MANY
def test_a_part_is_of_the_whole(how: settings) -> None:
    """A look at a part of a run sees what a look at all of it sees there."""

    @how
    @given(st.one_of(WORLDS, OTHERS), st.sampled_from([(0, 3), (4, 7), (8, 9)]))
    def check(scenario: Scenario, tenths: tuple[int, int]) -> None:
        begin, end = (scenario.run.duration * tenth // 10 for tenth in tenths)
        stretch = Stretch(begin, end)
        part, all_of_it = watch(scenario, 0, stretch), watch(scenario, 0, whole(scenario))
        assert inside(part, stretch) == inside(all_of_it, stretch)

    check()


def batches_struck(component: str) -> Scenario:
    """s (each 10) ──▶ p, in batches: that of roots 3 to 5 puts out at 76 and is committed at 91, and that of
    roots 6 to 8 is logged at 92. One dies at 85 or 95, and is back 2000 later.
    """
    topology = {"s": spout("keys", keys=1), "p": bolt("forward", {"s": "shuffle"}, 0)}
    dies = fault("crash_task", 95 if component == "p" else 85, component=component, restart=2000)
    times = {"poll_interval": 10, "plan_time": 1, "task_time": 10, "output_time": 1, "commit_time": 15}
    nothing = {"trigger_interval": 0, "state_time": 0, "reload_time": 0}
    return world(
        topology, "micro_batch", (dies,), 2200, **nothing, **{name: time * MS for name, time in times.items()}
    )


@pytest.mark.parametrize(("component", "again"), [("p", []), ("driver", [40, 50, 60])])
def test_a_batch_that_is_run_again_need_not_have_been_read_before(component: str, again: list[int]) -> None:
    """If p dies, it has read nothing of its batch: what it reads at last comes to it for the first time, also
    where nobody has noted when that left. If the driver does, p has read the batch that is not committed, and
    reads it again: the roots that left at 40, 50, and 60.
    """
    scenario = batches_struck(component)
    stretch = Stretch(2000 * MS, 2200 * MS)
    part, all_of_it = watch(scenario, 0, stretch), watch(scenario, 0, whole(scenario))
    assert inside(part, stretch) == inside(all_of_it, stretch)
    for found in (part, all_of_it):
        twice = [arrow.whole for arrow in found.arrows if arrow.again]
        assert twice == [("", at // 10 - 1) for at in again]

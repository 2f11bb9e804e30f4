"""Laws of the compiled data plane in worlds at random, besides that it equals the reference: recoveries see
all replays, each message is free or in one place, and Python makes of tuples for it what it makes itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import FEW, LONG, QUICK, TRIED, compared
from tests.oracle import judge
from tests.oracle.program import run
from tests.oracle.random_changes import logs, together
from tests.oracle.random_worlds import overlapping, worlds
from tests.oracle.worlds import bolt, spout, world
from tideover.models.accounts.recoveries import Recovery
from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig
from tideover.models.job.groupings import GROUPINGS
from tideover.models.operators.base import BOLTS, Bolt, Children
from tideover.models.runtime.hooks import CopyHolder, Mask
from tideover.models.runtime.views import BoltView
from tideover.models.simulation import simulate
from tideover.models.world import World
from tideover.sim.draws import Draws
from tideover.sim.plane.plane import Plane
from tideover.sim.registry import kind_of
from tideover.sim.train import Ints, Train

ANYTHING = st.one_of(worlds(("none",)), overlapping(("none",)), logs(("none",)))


class Claims(CopyHolder):
    """Says of some tuples that they were sent again because of an outage."""

    def replayed(self, task: BoltView, train: Train, outage: int) -> Mask | None:
        return None if task.index == 1 else train.uid % 3 == outage % 3


def newest(scenario: Scenario) -> Recovery | None:
    """What is known at the end of the newest recovery, which may see tuples up to there."""
    world = World(scenario)
    world.job.context.holders.append(Claims())
    world.run()
    return world.recoveries.all[-1] if world.recoveries.all else None


def hold_against_the_reference(scenario: Scenario) -> None:
    """All such tuples count that the reference sees done after the fault, at tasks that it has hit and that
    anchor their tuples; and of its very instant some.
    """
    found = newest(scenario)
    if found is None:
        return
    outage, since = found.outage, found.outage.failed_at
    tasks = [task for task in outage.tasks if task.component.anchored]
    hit = {(task.component.name, task.index, getattr(task, "replica", 0)) for task in tasks}
    claimed = [
        (came, left)
        for component, task, replica, uid, _, came, left in run(scenario, 0).processed
        if (component, task, replica) in hit and task != 1 and uid % 3 == outage.number % 3 and left >= since
    ]
    later = [came for came, left in claimed if left > since]
    assert len(later) <= found.replayed <= len(claimed)
    if later:
        assert found.last_replay == max(later)


FEW_OR_MANY = pytest.mark.parametrize(
    "how", [QUICK, pytest.param(LONG, marks=pytest.mark.long)], ids=["few", "many"]
)


@FEW_OR_MANY
def test_recoveries_see_replays(how: settings) -> None:
    """Law: recoveries count and date all tuples that somebody calls replays."""
    how(given(ANYTHING)(hold_against_the_reference))()


# -- messages and chunks -------------------------------------------------------------------------------------


def lists_of(p: Any) -> Iterator[Any]:
    """All lists of messages in a data plane."""
    for task in (p.tasks[number] for number in range(p.n_tasks)):
        yield from (task.queue, task.held, task.aside, task.line.messages)
    for channel in (p.channels[number] for number in range(p.n_channels)):
        yield from (channel.wire, channel.returning)
        yield from (way for w in [channel.passage] if w for way in (w.leaving, w.flying))
        yield from (of.withheld for of in [channel.transactions] if of)


def stores_of(p: Any) -> Iterator[Any]:
    """All rows that are kept in a data plane."""
    for task in (p.tasks[number] for number in range(p.n_tasks)):
        yield from (task.read, task.replay.rows)
    for channel in (p.channels[number] for number in range(p.n_channels)):
        yield from (buffer.kept for buffer in [channel.buffer] if buffer)


def chunks(plane: Plane, first: Any, most: int) -> list[int]:
    """Addresses of the chunks from this one on, no more than ``most``: each begins with that of the next."""
    found: list[int] = []
    while first != plane.ffi.NULL and len(found) < most:
        found.append(int(plane.ffi.cast("intptr_t", first)))
        first = plane.ffi.cast("chunk **", first)[0]
    return found


def chain(p: Any, first: int, most: int) -> list[int]:
    """Messages from this one on, as far as there are some, and no more than ``most``."""
    found: list[int] = []
    while first >= 0 and len(found) < most:
        found.append(first)
        first = p.messages[first].next
    return found


def settled(scenario: Scenario) -> None:
    """Each message that was ever used is free, or in one place; so is each chunk."""
    world = World(scenario)
    world.run()
    plane, p = world.job.plane, world.job.plane.p
    free = chain(p, p.freed, p.used + 1)
    placed = [m for each in lists_of(p) for m in chain(p, each.head, each.n)]
    placed += [p.tasks[number].serving for number in range(p.n_tasks) if p.tasks[number].serving >= 0]
    assert sorted([*free, *placed]) == list(range(p.used))
    assert p.in_use == len(placed)
    used = sum(map(len, plane._chunks)) - p.n_fresh
    firsts = [p.spare, *(each.first for each in stores_of(p))]
    assert len({each for first in firsts for each in chunks(plane, first, used + 1)}) == used
    assert sum(len(chunks(plane, first, used + 1)) for first in firsts) == used
    assert p.n_spare == p.n_fresh + len(chunks(plane, p.spare, used + 1))
    assert all(bool(each.n) == (each.first != plane.ffi.NULL) for each in stores_of(p))


@pytest.mark.parametrize("strategy", TRIED)
def test_no_message_is_lost_or_in_two_places(strategy: str) -> None:
    FEW(given(overlapping((strategy,)))(settled))()


def test_no_message_is_lost_where_queues_are_full() -> None:
    QUICK(given(together(("none", "source_replay", "active_replication")))(settled))()


# -- parts from outside --------------------------------------------------------------------------------------

OWN_BOLTS = ("split_words", "filter", "generic", "forward", "windowed_count", "running_count", "distinct")
OWN_GROUPINGS = ("shuffle", "fields", "direct", "global", "all")


class Wrong(Bolt):
    """Makes three of each tuple, and says one."""

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        return Children(np.arange(train.n, dtype=np.int64).repeat(3))


class Astray(GROUPINGS["shuffle"]):
    """Sends to a task that there is not."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return np.full(train.n, tasks, np.int64)


@pytest.fixture
def own() -> Iterator[None]:
    """Each part once more, as if it came from outside: the data plane does not know it."""
    for registry, kinds in ((BOLTS, OWN_BOLTS), (GROUPINGS, OWN_GROUPINGS)):
        for kind in kinds:
            registry.register(f"own_{kind}")(type("Own", (registry[kind],), {"__doc__": "The same."}))
    BOLTS.register("wrong")(Wrong)
    GROUPINGS.register("astray")(Astray)
    yield
    for registry, kinds in ((BOLTS, OWN_BOLTS), (GROUPINGS, OWN_GROUPINGS)):
        for kind in kinds:
            registry.discard(f"own_{kind}")
    BOLTS.discard("wrong")
    GROUPINGS.discard("astray")


def _own(part: Any, registry: Any, kinds: tuple[str, ...]) -> Any:
    return registry[f"own_{kind_of(part)}"](**dict(part)) if kind_of(part) in kinds else part


def from_outside(scenario: Scenario, bolts: bool, groupings: bool) -> Scenario:
    """The same, with parts from outside."""
    topology = dict(scenario.topology)
    for name, config in topology.items():
        if isinstance(config, BoltConfig):
            update: dict[str, Any] = {}
            if bolts:
                update["bolt"] = _own(config.bolt, BOLTS, OWN_BOLTS)
            if groupings:
                update["from_"] = {
                    up: _own(each, GROUPINGS, OWN_GROUPINGS) for up, each in config.from_.items()
                }
            topology[name] = config.model_copy(update=update)
    return scenario.model_copy(update={"topology": topology})


@FEW_OR_MANY
@pytest.mark.usefixtures("own")
def test_parts_from_outside_do_what_the_planes_own_do(how: settings) -> None:
    """The engine with parts from outside equals the reference with those that it knows."""
    ways = st.sampled_from([(True, False), (False, True), (True, True)])
    known: set[str] = set()

    @how
    @given(ANYTHING, ways)
    def tried(scenario: Scenario, way: tuple[bool, bool]) -> None:
        made = from_outside(scenario, *way)
        assume(repr(made) not in known)
        assert not compared(made, *judge(scenario))
        known.add(repr(made))

    tried()


@pytest.mark.parametrize(
    ("bolt_", "grouping", "says"),
    [
        ("forward", "astray", "q: would get tuples in no task"),
        ("wrong", "shuffle", "q: makes more of a tuple than its fan_out"),
    ],
)
@pytest.mark.usefixtures("own")
def test_what_a_part_from_outside_does_wrong_is_said(bolt_: str, grouping: str, says: str) -> None:
    made = bolt(bolt_, {"s": grouping}, 1, parallelism=2)
    with pytest.raises(ValueError, match=says):
        simulate(world({"s": spout(), "q": made, "r": bolt("forward", {"q": "shuffle"})}))

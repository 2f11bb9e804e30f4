"""Bolts and groupings from outside on the compiled data plane: Python makes of tuples what it makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import LONG, QUICK, compared
from tests.oracle import judge
from tests.oracle.random_logs import logs
from tests.oracle.random_worlds import overlapping, worlds
from tests.oracle.worlds import bolt, spout, world
from tideover.models.config import Scenario
from tideover.models.job.components import BoltConfig
from tideover.models.job.groupings import GROUPINGS
from tideover.models.operators.base import BOLTS, Bolt, Children
from tideover.models.simulation import simulate
from tideover.sim.draws import Draws
from tideover.sim.registry import kind_of
from tideover.sim.train import Ints, Train

OWN_BOLTS = ("split_words", "filter", "generic", "forward", "windowed_count", "running_count", "distinct")
OWN_GROUPINGS = ("shuffle", "fields", "direct", "global", "all")


class Wrong(Bolt):
    """Makes three of each tuple, and says one."""

    def children(self, component: str, draws: Draws, train: Train) -> Children:
        return Children(np.arange(train.n, dtype=np.int64).repeat(3))


class Astray(GROUPINGS["shuffle"]):  # type: ignore[misc]
    """Sends to a task that there is not."""

    def targets(self, edge: str, draws: Draws, train: Train, tasks: int) -> Ints:
        return np.full(train.n, tasks, np.int64)


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    """Each part once more, as if it came from outside: the data plane does not know it."""
    for registry, kinds in ((BOLTS, OWN_BOLTS), (GROUPINGS, OWN_GROUPINGS)):
        for kind in kinds:
            registry.register(f"own_{kind}")(type("Own", (registry[kind],), {"__doc__": "The same."}))  # type: ignore[attr-defined]
    BOLTS.register("wrong")(Wrong)
    GROUPINGS.register("astray")(Astray)
    yield
    for registry, kinds in ((BOLTS, (*OWN_BOLTS, "wrong")), (GROUPINGS, (*OWN_GROUPINGS, "astray"))):
        for kind in kinds:
            registry.discard(f"own_{kind}" if kind not in ("wrong", "astray") else kind)  # type: ignore[attr-defined]


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


def equal(how: settings) -> None:
    """The engine with parts from outside equals the reference with those that it knows."""
    none = ("none",)
    anything = st.one_of(worlds(none), overlapping(none), logs(none))
    ways = st.sampled_from([(True, False), (False, True), (True, True)])
    known: set[str] = set()

    @how
    @given(anything, ways)
    def tried(scenario: Scenario, way: tuple[bool, bool]) -> None:
        made = from_outside(scenario, *way)
        assume(repr(made) not in known)
        assert not compared(made, *judge(scenario))
        known.add(repr(made))

    tried()


def test_parts_from_outside_do_what_the_planes_own_do() -> None:
    equal(QUICK)


@pytest.mark.long
def test_parts_from_outside_do_what_the_planes_own_do_in_many_worlds() -> None:
    equal(LONG)


@pytest.mark.parametrize("case", ["targets", "children"])
def test_what_a_part_from_outside_does_wrong_is_said(case: str) -> None:
    made = (
        bolt("forward", {"s": "astray"}, 1, parallelism=2)
        if case == "targets"
        else bolt("wrong", {"s": "shuffle"}, 1)
    )
    says = (
        "q: would get tuples in no task" if case == "targets" else "q: makes more of a tuple than its fan_out"
    )
    with pytest.raises(ValueError, match=says):
        simulate(world({"s": spout(), "q": made, "r": bolt("forward", {"q": "shuffle"})}))

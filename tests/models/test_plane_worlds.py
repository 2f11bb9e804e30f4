"""Worlds at random in which one thing is in the foreground: the engine against the per-tuple reference.

Each strategy by itself is tried in ``test_exactness``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.models.test_exactness import FEW, LISTS, LONG, QUICK, SHARED, agree, check, differences
from tests.oracle.faults import hosts_of
from tests.oracle.random_changes import (
    READERS,
    crowded,
    crowded_and_failing,
    logs,
    networks,
    on_cards,
    on_cores,
    overtaken,
    planned,
    queues,
    saved,
    schedules,
    series,
    sharing,
    together,
    troubled,
)
from tests.oracle.random_clusters import moved, regrouped, reseated
from tests.oracle.random_worlds import (
    STRATEGY_NAMES,
    TICK,
    arrival_sessions,
    aside_windows,
    batch_event_windows,
    batch_sessions,
    event_windows,
    ids_windows,
    joined_windows,
    marked_windows,
    overlapping,
    session_windows,
    sliding_windows,
    worlds,
)
from tests.oracle.worlds import MS, fault, ms
from tideover.models.accounts import counted
from tideover.models.config import Scenario
from tideover.models.detectors.base import DETECTORS
from tideover.models.job.stores import STORES, StoreKind
from tideover.models.strategies.base import STRATEGIES
from tideover.models.world import World
from tideover.sim import recorder
from tideover.sim.kernel import ORDER, Rank, standing
from tideover.sim.registry import kind_of

Worlds = st.SearchStrategy[Scenario]
Law = Callable[[Scenario], None]

# -- what is the same ----------------------------------------------------------------------------------------

HAPPENED = {*LISTS, "final_state", "ledger"}
STAGES = ("detect_s", "delay_s", "launch_s", "prepare_s", "restart_s")
TIMES = ("failed_at_s", "detected_at_s", "ready_at_s", "failed_restarts", *STAGES)


def happened(scenario: Scenario, *told: str) -> None:
    """What happens, tuple for tuple, and figures whose names end like this."""
    found = differences(scenario)
    assert not {name: both for name, both in found.items() if name in HAPPENED or name.endswith(told)}


def happened_in_time(scenario: Scenario) -> None:
    happened(scenario, *TIMES)


def happened_where(scenario: Scenario) -> None:
    """What happens, and where: lists, times, how busy tasks were, and bytes between hosts (but for those of
    copies of states).
    """
    copies = kind_of(scenario.strategy) == "active_replication"
    happened(scenario, *TIMES, "cost hosts", " busy", " up", *[] if copies else ["network_bytes"])


def all_but_recoveries(scenario: Scenario) -> None:
    """What was processed, sent or lost, and bytes; figures of recoveries are compared elsewhere."""
    assert not {name: wrong for name, wrong in differences(scenario).items() if not name[0].isdigit()}


# -- worlds --------------------------------------------------------------------------------------------------


def going_on(found: Scenario, ticks: int, **update: Any) -> Scenario:
    """The same for so much longer."""
    longer = found.run.model_copy(update={"duration": found.run.duration + ticks * TICK})
    return found.model_copy(update={"run": longer, **update})


@st.composite
def links_fail(
    draw: st.DrawFn, kind: str, cards: bool = False, strategies: tuple[str, ...] = STRATEGY_NAMES
) -> Scenario:
    """A world in which one host is cut off, or its links are slow, once or twice, to all others or to one,
    besides its own faults.
    """
    base = networks(strategies) if cards else worlds(strategies)
    found = draw(base.filter(lambda one: len(hosts_of(one)) > 1))
    hosts, faults = hosts_of(found), []
    for _ in range(draw(st.integers(1, 2))):
        host = draw(st.sampled_from(hosts))
        others = draw(st.sampled_from([None, *((each,) for each in hosts if each != host)]))
        at, length = draw(st.integers(5, 60)), draw(st.integers(1, 30 if kind == "partition" else 60))
        if kind == "partition":
            may_lose = STRATEGIES[found.strategy.kind].loses_messages
            more = {"messages": draw(st.sampled_from(("hold", "lose"))) if may_lose else "hold"}
        else:
            more = {"latency_factor": draw(st.sampled_from((1.5, 3.0, 10.0)))}
            more |= {"transfer_factor": draw(st.sampled_from((1.0, 1.5, 4.0)))} if cards else {}
        faults.append(
            fault(kind, at * TICK / MS, hosts=(host,), others=others, duration=length * TICK, **more)
        )
    return going_on(found, 100 if kind == "partition" else 40, failures=(*found.failures[:1], *faults))


partitioned, slowed = partial(links_fail, "partition"), partial(links_fail, "slow_link")


def dies(scenario: Scenario) -> bool:
    """Something does, and no acker."""
    acker = getattr(scenario.strategy, "acker_host", None) is not None
    kinds = {kind_of(fault) for fault in scenario.failures}
    named = {getattr(fault, "component", "") for fault in scenario.failures}
    some = kinds & {"crash_task", "crash_host"}
    return bool(isinstance(scenario.hosts, int) and some and not acker and "acker" not in named)


@st.composite
def raced(draw: st.DrawFn) -> Scenario:
    """A world in which something dies, with timeouts of Nimbus and of supervisors that race."""
    found = draw(worlds(("none", "source_replay", "rsm", "active_replication")).filter(dies))
    some = {
        "supervisor_worker_timeout": (5, 10, 20),
        "nimbus_task_timeout": (5, 10, 20),
        "worker_heartbeat": (1, 2),
        "task_heartbeat": (1, 3),
        "supervisor_round": (1, 3),
        "nimbus_round": (4, 7),
        "worker_start_timeout": (10, 30),
        "task_launch": (0, 10, 30),
    }
    ticks = {name: draw(st.sampled_from(values)) * TICK for name, values in some.items()}
    launch, prepare = (ms(draw(st.sampled_from(some))) for some in ((0, 150, 700, 1500), (0, 130, 900)))
    failures = tuple(
        fault.model_copy(update={"detection": 0, "restart": 0})
        for fault in found.failures
        if kind_of(fault) != "pause"
    )
    detector = DETECTORS["storm"](launch=launch, prepare=prepare, **ticks)
    return going_on(found, 100, failures=failures, detector=detector)


def stores() -> st.SearchStrategy[StoreKind]:
    """So slow that checkpoints of a few entries wait for one another."""
    times = {"latency": st.sampled_from((0, TICK // 7, TICK)), "bandwidth": st.sampled_from((2**50, 500))}
    redis = st.builds(STORES["redis"], **times, operations=st.sampled_from((1e9, 3.0)))
    dfs = st.builds(STORES["dfs"], **times, replication=st.integers(1, 3))
    return st.one_of(redis, st.builds(STORES["disk"], **times), dfs)


@st.composite
def stored(draw: st.DrawFn, strategy: str) -> Scenario:
    """A world whose strategy saves state in a store of some kind, beside another one."""
    found = draw(worlds((strategy,)))
    chosen = found.strategy.model_copy(update={"store": "one"})
    return found.model_copy(
        update={"strategy": chosen, "stores": {"other": draw(stores()), "one": draw(stores())}}
    )


def beside(turn: float, side: str, names: list[str]) -> str:
    """A place beside that of a step."""
    rank, order = divmod(int(turn), ORDER)
    of = f" of {names[order]}" if order < len(names) else ""
    return f"{side} {Rank(rank).name.lower()}{of}"


@st.composite
def struck_at_steps(draw: st.DrawFn, strategy: str) -> Scenario:
    """A world whose failures strike just before or just after steps of its protocol: those that it takes
    while nothing fails, or, for a second failure, with the first.
    """
    scenario = draw(worlds((strategy,)))
    struck: tuple[Any, ...] = ()
    for failure in scenario.failures:
        world = World(scenario.model_copy(update={"failures": struck}), trace=True)
        names = [task.name for task in world.job.tasks]
        world.run()
        steps = [
            s for s in world.trace.steps if s.at < scenario.run.duration and s.turn // ORDER > Rank.FAULT
        ]
        if steps and failure.at is not None:
            step = steps[draw(st.integers(0, 1 << 12)) % len(steps)]
            turn = beside(step.turn, draw(st.sampled_from(("before", "after"))), names)
            moment = {"at": step.at, "turn": turn, "within": None, "in_interval": None}
            struck = (*struck, failure.model_copy(update=moment))
    return scenario.model_copy(update={"failures": struck})


# -- which worlds are tried, and how many of them ------------------------------------------------------------


class Tried(NamedTuple):
    """``few`` of these worlds always, ``many`` in long runs."""

    worlds: Worlds
    few: settings | None = FEW
    many: settings | None = SHARED
    law: Law = check


def only(count: int) -> settings:
    return settings(QUICK, max_examples=count)


NONE, BUFFERS, LOGS = ("none",), ("rsm",), ("changelog",)
REPLICAS, BATCHES = ("active_replication", "active_standby"), ("micro_batch", "batch_rerun")
STANDBYS = ("passive_standby", "upstream_backup")
KEEPING = (*STANDBYS, "hybrid", "rsm")
SNAPSHOTS = ("aligned_snapshots",)
FULL = ("block", "drop", "credits")
TWICE = (False, True)
OVERTAKING = st.one_of(overtaken(overlap, late) for overlap in TWICE for late in TWICE)

OVERLAPPING = {
    f"overlap: {' '.join(names)}": Tried(overlapping(names), QUICK, None)
    for names in (BATCHES, REPLICAS, BUFFERS, *((name,) for name in STANDBYS))
}
CORES_AND_CARDS = {
    "batches: cards": Tried(networks(BATCHES)),
    "batches: cores": Tried(crowded(BATCHES)),
    "replicas: cards": Tried(networks(REPLICAS)),
    "replicas: cores": Tried(crowded(REPLICAS)),
    "rsm: cores": Tried(crowded_and_failing(BUFFERS)),
    "rsm: cards": Tried(networks(BUFFERS, overlap=True)),
    "rsm: all of it": Tried(together(BUFFERS)),
    "changelog: cores": Tried(crowded(LOGS)),
    "changelog: cores, overlap": Tried(crowded_and_failing(LOGS)),
    "changelog: cards": Tried(networks(LOGS)),
    "changelog: all of it": Tried(troubled(worlds(LOGS))),
    "changelog: all of it, overlap": Tried(troubled(overlapping(LOGS))),
    "none: cards": Tried(networks(NONE)),
    "none: cards, overlap": Tried(networks(NONE, overlap=True)),
    "none: cores": Tried(crowded(NONE), QUICK),
    "none: cores, overlap": Tried(crowded_and_failing(NONE), QUICK),
    "none: all of it": Tried(together(NONE), QUICK),
    "source_replay: all of it": Tried(together(("source_replay",)), QUICK),
}
for name in STANDBYS:
    CORES_AND_CARDS |= {
        f"{name}: cards": Tried(networks((name,))),
        f"{name}: cores": Tried(crowded((name,))),
        f"{name}: cores, overlap": Tried(crowded_and_failing((name,))),
        f"{name}: all of it": Tried(troubled(st.one_of(worlds((name,)), overlapping((name,))))),
    }
LINKS = {
    "rsm: partitions, cards": Tried(partitioned(True, BUFFERS)),
    "rsm: slow links, cards": Tried(slowed(True, BUFFERS)),
    "none: partitions": Tried(partitioned(strategies=NONE)),
    "none: partitions, cards": Tried(partitioned(True, NONE)),
    "none: slow links": Tried(slowed(False, NONE)),
    "none: slow links, cards": Tried(slowed(True, NONE)),
    "partitions": Tried(partitioned(), FEW, LONG, happened),
    "partitions, cards": Tried(partitioned(True), FEW, LONG, happened),
    "trident: partitions": Tried(partitioned(strategies=("trident",)), FEW, LONG, happened),
    "slow links": Tried(slowed(False), FEW, LONG),
    "slow links, cards": Tried(slowed(True), FEW, LONG),
}
"""With Trident what hands on waits until it is cut off no more."""
MOVES = {
    "none: moved": Tried(moved(NONE), law=happened_where),
    "none: reseated": Tried(reseated(NONE), law=happened_where),
    "none: regrouped": Tried(regrouped(NONE), law=happened_where),
    "none: moved, cores": Tried(sharing(moved(NONE)), law=happened_where),
    "none: reseated, cores": Tried(sharing(reseated(NONE)), law=happened_where),
    "none: regrouped, cores": Tried(sharing(regrouped(NONE)), law=happened_where),
    "rsm: moved": Tried(sharing(moved(BUFFERS)), law=happened_where),
    "replicas: moved": Tried(moved(("active_replication",)), law=happened_where),
    "moved": Tried(moved(), only(6), LONG, happened_where),
    "free slots": Tried(st.one_of(reseated(), regrouped()), only(6), LONG, happened_where),
    "moved, stopped": Tried(planned(moved()), only(4), LONG, happened_where),
    "free slots, stopped": Tried(planned(st.one_of(reseated(), regrouped())), only(4), LONG, happened_where),
    "race of supervisors with Nimbus": Tried(raced(), only(12), LONG, happened_in_time),
    "faults by schedule": Tried(schedules(), only(12), LONG, happened),
}
QUEUES = {
    **{f"none: queues {when}": Tried(queues(NONE, (when,)), QUICK) for when in FULL},
    "none: queues of all sorts": Tried(queues(NONE, FULL), QUICK),
    "none: queues, overlap": Tried(queues(NONE, overlap=True), QUICK, LONG),
    "none: queues of one sender": Tried(series(NONE), None),
    **{f"{name}: queues {w}": Tried(queues((name,), (w,)), FEW, None) for name in KEEPING for w in FULL},
    **{f"{name}: queues of all sorts": Tried(queues((name,), FULL), None) for name in KEEPING},
    "rsm: queues": Tried(queues(BUFFERS)),
    "rsm: queues, overlap": Tried(queues(BUFFERS, overlap=True)),
    "replicas: queues": Tried(queues(REPLICAS)),
    "replicas: queues, overlap": Tried(queues(REPLICAS, overlap=True)),
    "cards: queues block": Tried(
        on_cards(queues(("none", "source_replay", "rsm", "aligned_snapshots"), ("block",))), only(5), LONG
    ),
    "cards: queues credits": Tried(
        on_cards(queues(("none", "source_replay", "aligned_snapshots"), ("credits", "credits", "block"))),
        only(5),
        LONG,
    ),
    "cards: queues drop": Tried(on_cards(queues(("none", "source_replay"), ("drop",))), only(3), LONG),
    **{
        f"cards: queues, {name}": Tried(on_cards(queues((name,), ("block", "credits"))), None, LONG)
        for name in ("storm_checkpoint", "estorm")
    },
}
SAVED = {
    "snapshots: queues drop": Tried(
        st.one_of(queues(SNAPSHOTS, ("drop",)), queues(SNAPSHOTS, ("drop",), True)), QUICK
    ),
    "snapshots: all of it": Tried(together(SNAPSHOTS), None),
    "snapshots: overtaking, cards": Tried(on_cards(OVERTAKING), QUICK),
    "snapshots: overtaking, cores": Tried(on_cores(OVERTAKING), None),
    "snapshots: overtaking, states": Tried(saved(overtaken()), only(4), None),
    "snapshots: overtaking, states, overlap": Tried(
        saved(st.one_of(overtaken(), overtaken(overlap=True))), None, LONG
    ),
}
for name in ("rsm", "aligned_snapshots", "passive_standby", "changelog"):
    either = st.one_of(worlds((name,)), overlapping((name,)))
    SAVED |= {
        f"{name}: states, overlap": Tried(saved(overlapping((name,))), only(5), None),
        f"{name}: states": Tried(saved(either), None, LONG),
    }
for name in ("rsm", "aligned_snapshots"):
    SAVED[f"{name}: stores"] = Tried(stored(name), only(15), LONG, all_but_recoveries)
SOURCES = {}
for name in READERS:
    slow = name in ("source_replay", "storm_checkpoint")
    known = name in ("none", "source_replay")
    few = QUICK if known else only(4 if slow else 10)
    SOURCES |= {
        f"{name}: logs": Tried(logs((name,)), few),
        f"{name}: logs, overlap": Tried(logs((name,), True), QUICK if known else None),
    }
STEPS = {f"{name}: at steps": Tried(struck_at_steps(name), only(12)) for name in STRATEGY_NAMES}

ENDINGS = {
    "sliding": sliding_windows,
    "event": event_windows,
    "session": session_windows,
    "arrival session": arrival_sessions,
    "join": joined_windows,
    "aside": aside_windows,
    "ids": ids_windows,
}
IN_BATCHES = {"event": batch_event_windows, "session": batch_sessions, "join": batch_event_windows}
ENDINGS_OF = {
    "upstream_backup": {"sliding": marked_windows, "join": marked_windows},
    "micro_batch": IN_BATCHES,
    "batch_rerun": IN_BATCHES,
    "trident": {"join": sliding_windows},
}
"""Where not all windows of a sort go with a strategy."""
PAIRS = [(name, sort) for name in STRATEGIES for sort in ENDINGS if sort in STRATEGIES[name].windows]
"""Strategies, and windows that they go with."""


def windowed(strategy: str, sort: str) -> Tried:
    """Worlds with windows of a sort: as many with each strategy that each sort has the whole, and each
    strategy (these go with four sorts that most go with).
    """
    among = min(4, sum(one == sort for _, one in PAIRS))
    counts = (QUICK, 12), (LONG, LONG.max_examples)
    few, many = (settings(how, max_examples=-(-count // among)) for how, count in counts)
    endings = ENDINGS_OF.get(strategy, ENDINGS).get(sort, ENDINGS[sort])
    return Tried(worlds((strategy,), endings), few, many)


WINDOWS = {f"{name}: windows, {sort}": windowed(name, sort) for name, sort in PAIRS}
ALL = OVERLAPPING | CORES_AND_CARDS | LINKS | MOVES | QUEUES | SAVED | SOURCES | STEPS | WINDOWS


@standing()
def hold(law: Law, scenarios: Worlds, how: settings) -> None:
    """The law, in as many of these worlds as ``how`` says, no two of them alike."""
    known: set[str] = set()

    @how
    @given(scenarios)
    def tried(scenario: Scenario) -> None:
        text = repr(scenario)
        assume(text not in known)
        law(scenario)
        known.add(text)

    tried()


@pytest.mark.parametrize("what", [name for name, one in ALL.items() if one.few])
def test_the_engine_equals_the_reference(what: str) -> None:
    hold(ALL[what].law, ALL[what].worlds, ALL[what].few)


@pytest.mark.long
@pytest.mark.parametrize("what", [name for name, one in ALL.items() if one.many])
def test_the_engine_equals_the_reference_in_many_worlds(what: str) -> None:
    hold(ALL[what].law, ALL[what].worlds, ALL[what].many)


@pytest.mark.parametrize("how", [QUICK, pytest.param(SHARED, marks=pytest.mark.long)], ids=["few", "many"])
@pytest.mark.parametrize("slots", [4, 37, 1000])
def test_the_engine_equals_the_reference_in_long_runs(
    slots: int, how: settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every run is long, and has so many places for slots, in which the data plane counts."""
    monkeypatch.setattr(recorder, "LONG", 0)
    monkeypatch.setattr(counted, "WINDOW", slots)
    agree(st.one_of(worlds(NONE), overlapping(NONE), logs(NONE)), how)

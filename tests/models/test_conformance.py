"""Every registered strategy is held to its word; and the suite finds strategies that break theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tideover.models import conformance
from tideover.models.job.sinks import TransactionalSink
from tideover.models.operators.kinds import RunningCount
from tideover.models.strategies.base import STRATEGIES, Protocol, Strategy
from tideover.models.strategies.none import Amnesia
from tideover.parts.typed import typed
from tideover.sim.kernel import Rank
from tideover.sim.units import MS, S

PARAMETERS: dict[str, dict[str, Any]] = {
    "rsm": {"checkpoint_interval": S, "replay_cost": MS},
    "passive_standby": {"checkpoint_interval": S, "replay_cost": MS},
    "upstream_backup": {"replay_cost": MS},
    "aligned_snapshots": {"checkpoint_interval": 2 * S, "snapshot_time": 20 * MS, "upload_time": 300 * MS},
    "micro_batch": {"trigger_interval": S, "state_cost": MS, "reload_time": 100 * MS}
    | {"plan_time": 30 * MS, "task_time": 50 * MS, "commit_time": 30 * MS},
    "storm_checkpoint": {"checkpoint_interval": S, "message_timeout": 8 * S},
    "source_replay": {"message_timeout": 8 * S},
    "estorm": {"message_timeout": 8 * S},
    "batch_rerun": {"trigger_interval": 2 * S, "plan_time": 200 * MS, "task_time": 100 * MS}
    | {"output_time": 100 * MS, "recovery_time": 300 * MS},
    "trident": {"batch_interval": 2 * S, "max_spout_pending": 2, "message_timeout": 6 * S}
    | {"metadata_time": 20 * MS, "task_time": 50 * MS, "state_time": 30 * MS, "commit_time": 20 * MS},
    "changelog": {"commit_interval": 1500 * MS, "commit_time": 300 * MS},
}
"""What is given, in ns; who is not here is tried with what it says itself to be ``typical``."""
BUILT_IN = tuple(STRATEGIES)
"""All that are registered: a strategy that is added is held to its word without a change here."""


def of(kind: str) -> Strategy:
    if kind in PARAMETERS:
        return STRATEGIES[kind].model_validate(PARAMETERS[kind])
    strategy: Strategy = typed(STRATEGIES[kind])(**STRATEGIES[kind].typical)
    return strategy


def with_more(kind: str, **more: Any) -> Strategy:
    return STRATEGIES[kind].model_validate(PARAMETERS[kind] | more)


SELDOM = (conformance.conserves_roots,)
"""Asked of the same strategy with other parameters each time; here the reference settles roots."""
EXACT = (conformance.keeps_its_promise, *SELDOM)
"""Of what the reference has worlds for in any case."""
BATCHES = {"trigger_interval": S, "task_time": 50 * MS, "commit_time": 30 * MS}
REPLAY = STRATEGIES["micro_batch"].model_validate(BATCHES | {"recovery": "replay"})
LINEAGE = STRATEGIES["micro_batch"].model_validate(
    BATCHES
    | {"recovery": "lineage", "checkpoint_interval": 3 * S, "state_time": 100 * MS, "reload_time": 100 * MS}
)
ONCE = with_more("changelog", guarantee="exactly_once")
TASKS = with_more("batch_rerun", retry="task", plan_time=0, recovery_time=0)
COPIES = with_more(
    "aligned_snapshots",
    sink=TransactionalSink(commit_time=400_000_000),
    local_recovery="disk",
    unaligned=True,
)
"""Readers of a transactional sink, and tasks that read local copies, are promised the same."""


def asked(name: str, strategy: Strategy, checks: Any = conformance.CHECKS, seldom: Any = ()) -> list[Any]:
    """What is asked ``seldom`` takes long, as does what is thorough."""
    found = []
    for check in checks:
        long = check in seldom or check in conformance.THOROUGH
        called = getattr(check, "func", check).__name__
        marks = [pytest.mark.long] * long
        found.append(pytest.param(strategy, check, id=f"{name}-{called}" + "-thoroughly" * long, marks=marks))
    return found


@pytest.mark.parametrize(
    ("strategy", "check"),
    [
        *(row for kind in BUILT_IN for row in asked(kind, of(kind))),
        *(row for kind in BUILT_IN for row in asked(kind, of(kind), conformance.THOROUGH)),
        *asked("copies", COPIES, [check for check in conformance.CHECKS[2:] if check not in SELDOM]),
        *asked("copies", COPIES, conformance.THOROUGH),
        *asked("changelog once", ONCE, seldom=SELDOM),
        *asked("lineage", LINEAGE, seldom=EXACT),
        *asked("replay", REPLAY, seldom=EXACT),
        *asked("tasks alone", TASKS, EXACT[:1], seldom=EXACT),
    ],
)
def test_it_keeps_its_word(strategy: Strategy, check: Any) -> None:
    check(strategy)


@pytest.mark.parametrize(
    "check", [conformance.survives_without_failures, conformance.survives_during_its_steps]
)
def test_a_replay_keeps_its_promise_to_a_count_that_goes_on(check: Any) -> None:
    check(REPLAY, RunningCount)


def test_a_sink_that_loses_is_found() -> None:
    """A broker that waits for less time than commits take."""
    sink = TransactionalSink(transaction_timeout=S, commit_time=3 * S)
    with pytest.raises(AssertionError, match=r"losses|differ"):
        conformance.keeps_its_promise(with_more("aligned_snapshots", sink=sink))


@pytest.mark.parametrize("k", [0, pytest.param(2, marks=pytest.mark.long)])
def test_other_numbers_of_replicas(k: int) -> None:
    """k = 2 keeps every promise; k = 0 is amnesia by another name, and conserves roots all the same."""
    strategy = STRATEGIES["active_replication"].model_validate({"k": k})
    conformance.survives_without_failures(strategy)
    conformance.conserves_roots(strategy)
    if k:
        conformance.keeps_its_promise(strategy)


def test_the_exemption_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An excuse for what would hold is no excuse: by another name the baseline has no source either."""
    conformance.cites_its_source(of("none"))
    monkeypatch.setattr(STRATEGIES["none"], "kind", "nothing")
    with pytest.raises(AssertionError):
        conformance.cites_its_source(STRATEGIES["none"]())


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN if not STRATEGIES[kind].stateless_too])
def test_who_leaves_out_bolts_without_state_has_to(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy that says that it does not save what they have in memory does not."""
    monkeypatch.setattr(STRATEGIES[kind], "stateless_too", True)
    with pytest.raises(AssertionError, match="component='split'"):
        conformance.keeps_its_promise(of(kind))


# -- the suite itself ----------------------------------------------------------------------------------------


@pytest.fixture
def made() -> Iterator[Callable[..., Strategy]]:
    """A strategy like another one, registered until the test is over; ``says``: what it says of itself."""
    names: list[str] = []

    def make(
        protocol: type[Protocol] | None = None,
        base: type[Strategy] = Amnesia,
        doc: str | None = None,
        **says: Any,
    ) -> Strategy:
        if protocol is not None:
            says["protocol"] = lambda self, job: protocol(job)
        names.append(f"made_{len(names)}")
        strategy = type("Made", (base,), {"__module__": __name__, **says})
        strategy.__doc__ = doc
        found: Strategy = STRATEGIES.register(names[-1])(strategy)()
        return found

    yield make
    for name in names:
        STRATEGIES.discard(name)


class Hoarding(Protocol):
    """Keeps all that was ever emitted."""

    kept = 0

    def emitted(self, spout: Any, train: Any, sent: Any) -> None:
        self.kept += train.n
        self.do.keep(self.kept)


class Stepping(Protocol):
    """Makes a step of its own."""

    def start(self) -> None:
        step = partial(self.do.step, "somebody", "checkpoint saved")
        self.do.at(conformance.END + 4 * conformance.S, step, Rank.CHECKPOINT)


class WithoutMarker(Protocol):
    """The first marker of a spout does not come."""

    def __init__(self, job: Any) -> None:
        super().__init__(job)
        job.spouts[0].c.epoch = job.spouts[0]._epoch = 1


class WithoutTicks(Protocol):
    def __init__(self, job: Any) -> None:
        super().__init__(job)
        job.bolts["count", 0][0].windows.tick = lambda number: None


class Moody(Protocol):
    """Costs time by its own count of runs: the same seed does not give the same bytes."""

    runs = 0

    def __init__(self, job: Any) -> None:
        super().__init__(job)
        Moody.runs += 1
        self.do.charge("count", MS * Moody.runs)


class Delayed(Strategy):
    """Has a parameter without a description."""

    delay: int = 3


LOSES_NOTHING = {"promise": "at least once"}


@pytest.mark.parametrize(
    ("given", "check", "found"),
    [
        (LOSES_NOTHING, conformance.keeps_its_promise, "losses"),
        (
            {"doc": "Rides out what nobody knows.", "survives": {"flood"}},
            conformance.describes_itself,
            "flood",
        ),
        ({"recovers_within": lambda self, down, window: down}, conformance.recovers_in_time, "recovered at"),
        ({"protocol": Hoarding}, conformance.bounds_its_buffers, "kept tuples grow"),
        # loses what comes after a step of its own
        (LOSES_NOTHING | {"protocol": Stepping}, conformance.survives_during_its_steps, "losses"),
        # what a run without failures says of its windows is not believed
        ({"protocol": WithoutMarker}, conformance.survives_without_failures, "windows that differ"),
        ({"protocol": WithoutTicks}, conformance.survives_without_failures, "windows that differ"),
        ({"protocol": Moody}, conformance.draws_its_luck, "same seed"),
        ({"base": Strategy, "doc": ""}, conformance.describes_itself, "docstring"),
        ({"base": Delayed, "doc": "Does something."}, conformance.describes_itself, "delay"),
        ({"base": Delayed, "doc": "Does something."}, conformance.cites_its_source, "cites"),
    ],
)
def test_who_does_not_do_what_it_says_is_found(
    given: dict[str, Any], check: Any, found: str, made: Callable[..., Strategy]
) -> None:
    """Amnesia, mostly, with a protocol or a word that is not as it has to be."""
    with pytest.raises(AssertionError, match=found):
        check(made(**given))

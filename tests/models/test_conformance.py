"""Every registered strategy is held to its word; and the suite finds strategies that break theirs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import pytest

from tideover.models import conformance
from tideover.models.job.sinks import TransactionalSink
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy
from tideover.models.strategies.none import Amnesia
from tideover.parts.typed import typed
from tideover.sim.kernel import Rank

PARAMETERS: dict[str, dict[str, Any]] = {
    "rsm": {"checkpoint_interval": 1_000_000_000, "replay_cost": 1_000_000},
    "passive_standby": {"checkpoint_interval": 1_000_000_000, "replay_cost": 1_000_000},
    "upstream_backup": {"replay_cost": 1_000_000},
    "aligned_snapshots": {
        "checkpoint_interval": 2_000_000_000,
        "snapshot_time": 20_000_000,
        "upload_time": 300_000_000,
    },
    "micro_batch": {
        "trigger_interval": 1_000_000_000,
        "plan_time": 30_000_000,
        "task_time": 50_000_000,
        "state_cost": 1_000_000,
        "commit_time": 30_000_000,
        "reload_time": 100_000_000,
    },
    "storm_checkpoint": {"checkpoint_interval": 1_000_000_000, "message_timeout": 8_000_000_000},
    "source_replay": {"message_timeout": 8_000_000_000},
    "estorm": {"message_timeout": 8_000_000_000},
    "batch_rerun": {
        "trigger_interval": 2_000_000_000,
        "plan_time": 200_000_000,
        "task_time": 100_000_000,
        "output_time": 100_000_000,
        "recovery_time": 300_000_000,
    },
    "trident": {
        "batch_interval": 2_000_000_000,
        "max_spout_pending": 2,
        "message_timeout": 6_000_000_000,
        "metadata_time": 20_000_000,
        "task_time": 50_000_000,
        "state_time": 30_000_000,
        "commit_time": 20_000_000,
    },
    "changelog": {"commit_interval": 1_500_000_000, "commit_time": 300_000_000},
}
"""What is given, in ns; who is not here is tried with what it says itself to be ``usual``."""
BUILT_IN = tuple(STRATEGIES)
"""All that are registered: a strategy that is added is held to its word without a change here."""


def of(kind: str) -> Strategy:
    if kind in PARAMETERS:
        return STRATEGIES[kind].model_validate(PARAMETERS[kind])
    strategy: Strategy = typed(STRATEGIES[kind])(**STRATEGIES[kind].usual)
    return strategy


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", BUILT_IN)
def test_built_in(kind: str, check: Any) -> None:
    check(of(kind))


@pytest.mark.long
@pytest.mark.parametrize("check", conformance.THOROUGH, ids=lambda check: check.func.__name__)
@pytest.mark.parametrize("kind", BUILT_IN)
def test_built_in_thoroughly(kind: str, check: Any) -> None:
    check(of(kind))


SELDOM = (conformance.conserves_roots,)
QUICK = [check for check in conformance.CHECKS[2:] if check not in SELDOM]
"""Those are asked of snapshots without these; the long tests ask them here, too."""


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.__name__)
def test_snapshots_with_transactions_and_copies(check: Any) -> None:
    """Readers of a transactional sink, and tasks that read local copies, are promised the same."""
    check(_with_transactions_and_copies())


@pytest.mark.long
@pytest.mark.parametrize("check", conformance.THOROUGH, ids=lambda check: check.func.__name__)
def test_snapshots_with_transactions_and_copies_thoroughly(check: Any) -> None:
    check(_with_transactions_and_copies())


def _with_transactions_and_copies() -> Strategy:
    more = {"sink": TransactionalSink(commit_time=400_000_000), "local_recovery": "disk", "unaligned": True}
    return STRATEGIES["aligned_snapshots"].model_validate(PARAMETERS["aligned_snapshots"] | more)


def test_a_sink_that_loses_is_found() -> None:
    """A broker that waits for less time than commits take."""
    sink = TransactionalSink(transaction_timeout=1_000_000_000, commit_time=3_000_000_000)
    strategy = STRATEGIES["aligned_snapshots"].model_validate(
        PARAMETERS["aligned_snapshots"] | {"sink": sink}
    )
    with pytest.raises(AssertionError, match=r"losses|differ"):
        conformance.keeps_its_promise(strategy)


@pytest.mark.parametrize("k", [0, pytest.param(2, marks=pytest.mark.long)])
def test_other_numbers_of_replicas(k: int) -> None:
    """k = 2 keeps every promise; k = 0 is amnesia by another name, and conserves roots all the same."""
    strategy = STRATEGIES["active_replication"].model_validate({"k": k})
    conformance.survives_without_failures(strategy)
    conformance.conserves_roots(strategy)
    if k:
        conformance.keeps_its_promise(strategy)


def test_exemptions_are_needed() -> None:
    """An excuse for what would hold is no excuse: each is for a check that fails without it."""
    for exemption in conformance.EXEMPTIONS:
        check = {c.__name__: c for c in conformance.CHECKS}[exemption.check]
        kept = conformance.EXEMPTIONS
        try:
            conformance.EXEMPTIONS = tuple(e for e in kept if e != exemption)
            with pytest.raises(AssertionError):
                check(of(exemption.strategy))
        finally:
            conformance.EXEMPTIONS = kept


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN if not STRATEGIES[kind].stateless_too])
def test_who_leaves_out_bolts_without_state_has_to(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy that says that it does not save what they have in memory does not."""
    monkeypatch.setattr(STRATEGIES[kind], "stateless_too", True)
    with pytest.raises(AssertionError, match="component='split'"):
        conformance.keeps_its_promise(of(kind))


# -- the suite itself ----------------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[list[str]]:
    """Names that are taken out again."""
    names: list[str] = []
    yield names
    for name in names:
        STRATEGIES.discard(name)


def test_a_boast_is_found(registry: list[str]) -> None:
    """Amnesia that says it loses nothing, or that claims a failure kind nobody knows."""
    registry += ["boast", "vague"]

    @STRATEGIES.register("boast")
    class Boast(Amnesia):
        """Nothing is lost, it says."""

        promise: ClassVar[Promise] = "at least once"

    @STRATEGIES.register("vague")
    class Vague(Amnesia):
        """Rides out a flood, it says."""

        survives: ClassVar[frozenset[str]] = frozenset({"flood"})

    with pytest.raises(AssertionError, match="losses"):
        conformance.keeps_its_promise(Boast())
    with pytest.raises(AssertionError, match="flood"):
        conformance.describes_itself(Vague())


def test_who_is_late_or_keeps_all_or_fails_at_a_step_is_found(registry: list[str]) -> None:
    """Amnesia that says it is back at once; that keeps all it has ever emitted; that loses what comes after a
    step of its own, though it promises not to.
    """
    registry += ["hasty", "hoarder", "faltering"]

    @STRATEGIES.register("hasty")
    class Hasty(Amnesia):
        def recovers_within(self, down: int, window: int) -> int:
            return down

    class Hoarding(Protocol):
        kept = 0

        def emitted(self, spout: Any, train: Any, sent: Any) -> None:
            self.kept += train.n
            self.do.keep(self.kept)

    @STRATEGIES.register("hoarder")
    class Hoarder(Amnesia):
        def protocol(self, job: Any) -> Protocol:
            return Hoarding(job)

    class Stepping(Protocol):
        def start(self) -> None:
            step = partial(self.do.step, "somebody", "checkpoint saved")
            self.do.at(conformance.END + 4 * conformance.S, step, Rank.CHECKPOINT)

    @STRATEGIES.register("faltering")
    class Faltering(Amnesia):
        promise: ClassVar[Promise] = "at least once"

        def protocol(self, job: Any) -> Protocol:
            return Stepping(job)

    with pytest.raises(AssertionError, match="recovered at"):
        conformance.recovers_in_time(Hasty())
    with pytest.raises(AssertionError, match="kept tuples grow"):
        conformance.bounds_its_buffers(Hoarder())
    with pytest.raises(AssertionError, match="losses"):
        conformance.survives_during_its_steps(Faltering())


@pytest.mark.parametrize("trigger", ["marker", "tick"])
def test_a_window_that_is_wrong_without_a_failure_is_found(registry: list[str], trigger: str) -> None:
    """What a run without failures says of its windows is not believed: the first marker of a spout does not
    come; ticks do not either.
    """
    registry.append("late")

    class Lateness(Protocol):
        def __init__(self, job: Any) -> None:
            super().__init__(job)
            if trigger == "marker":
                job.spouts[0].c.epoch = job.spouts[0]._epoch = 1
            else:
                job.bolts["count", 0][0].windows.tick = lambda number: None

    @STRATEGIES.register("late")
    class Late(Amnesia):
        def protocol(self, job: Any) -> Protocol:
            return Lateness(job)

    with pytest.raises(AssertionError, match="windows that differ"):
        conformance.survives_without_failures(Late())


def test_silence_is_found(registry: list[str]) -> None:
    """No docstring of its own, a parameter without a description, no source."""
    registry += ["mute", "terse"]

    @STRATEGIES.register("mute")
    class Mute(Strategy):
        pass

    Mute.__doc__ = ""

    @STRATEGIES.register("terse")
    class Terse(Strategy):
        """Does something."""

        delay: int = 3

    with pytest.raises(AssertionError, match="docstring"):
        conformance.describes_itself(Mute())
    with pytest.raises(AssertionError, match="delay"):
        conformance.describes_itself(Terse())
    with pytest.raises(AssertionError, match="cites"):
        conformance.cites_its_source(Terse())


def test_a_private_generator_is_found(registry: list[str]) -> None:
    """A strategy that costs time by its own count of runs: the same seed does not give the same bytes."""
    registry.append("moody")
    runs: list[int] = []

    class Mood(Protocol):
        def __init__(self, job: Any) -> None:
            super().__init__(job)
            self.do.charge("count", 1_000_000 * len(runs))

    @STRATEGIES.register("moody")
    class Moody(Amnesia):
        def protocol(self, job: Any) -> Protocol:
            runs.append(1)
            return Mood(job)

    with pytest.raises(AssertionError, match="same seed"):
        conformance.draws_its_luck(Moody())

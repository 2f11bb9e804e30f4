"""Hybrid: a strategy for each component."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from pydantic import AfterValidator, Field

from tideover.models.job.components import BoltConfig
from tideover.models.job.topology import Component
from tideover.models.mechanisms.buffers.recovery import UpstreamBuffers
from tideover.models.mechanisms.duplicate_filter import CheckpointFilter
from tideover.models.mechanisms.shared import Shared
from tideover.models.mechanisms.state_transfer import StateTransfer
from tideover.models.mechanisms.task_checkpoints import TaskCheckpoints
from tideover.models.operators.state import Effects
from tideover.models.remarks.plan import Plan, Work
from tideover.models.runtime.hooks import Hooks, Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.strategies.base import STRATEGIES, KeyPath, Promise, Protocol, Strategy
from tideover.sim.registry import kind_of

T = TypeVar("T")


class OfMembers(Generic[T]):
    """What a hybrid says of itself: by its members; as a class, what it does with the ``usual`` ones."""

    def __init__(self, usual: T, of: Callable[[list[Strategy]], T]) -> None:
        self._usual, self._of = usual, of

    def __get__(self, strategy: Hybrid | None, cls: type[Hybrid]) -> T:
        return self._usual if strategy is None else self._of([*strategy.members.values()])


def _may_be_member(strategy: Strategy) -> Strategy:
    if strategy.alone is not None:
        able = ", ".join(sorted(kind for kind, cls in STRATEGIES.items() if cls.alone is None))
        raise ValueError(
            f"{kind_of(strategy)} cannot be the strategy of some bolts only: {strategy.alone}; "
            f"allowed are {able}"
        )
    if strategy.named_bolts():
        raise ValueError("names bolts itself; which are its own is said by bolts, stateless and rest")
    return strategy


Member = Annotated[Strategy, AfterValidator(_may_be_member)]

_KEPT = {"none": (False, False), "at most once": (True, False), "at least once": (False, True)}
"""Of a promise that is not exactly once: whether there are no duplicates, and whether nothing is lost."""
_PROMISES: dict[tuple[bool, bool], Promise] = {
    (False, False): "none",
    (True, False): "at most once",
    (False, True): "at least once",
    (True, True): "exactly once",
}


def _common(sets: list[frozenset[str]]) -> frozenset[str]:
    return frozenset.intersection(*sets)


@STRATEGIES.register("hybrid")
class Hybrid(Strategy):
    """As strong as the weakest of its members: some bolts are replicated, say, and the rest goes back to
    checkpoints, each at the price of its own strategy.

    P. Upadhyaya, Y. Kwon, M. Balazinska, *A Latency and Fault-Tolerance Optimizer for Online Parallel Query
    Plans*, SIGMOD 2011: another fault-tolerance technique for each operator. L. Su, Y. Zhou, *Tolerating
    Correlated Failures in Massively Parallel Stream Processing Engines*, ICDE 2016: replicas of some tasks,
    checkpoints for all.
    """

    promise: ClassVar[Promise] = "exactly once"
    alone: ClassVar[str | None] = "it has members itself"
    usual: ClassVar[dict[str, Any]] = {
        "rest": {"kind": "rsm", "checkpoint_interval": "5 s"},
        "stateless": "active_replication",
    }
    survives: ClassVar[frozenset[str]] = cast(
        "frozenset[str]",
        OfMembers(frozenset({"lose_state", "crash_task"}), lambda members: _common([m.survives for m in members])),
    )
    stateless_too: ClassVar[bool] = True
    windows: ClassVar[frozenset[str]] = cast(
        "frozenset[str]",
        OfMembers(
            frozenset({"sliding", "event", "session", "join"}),
            lambda members: _common([m.windows for m in members]),
        ),
    )
    reads_queues: ClassVar[bool] = cast(
        "bool", OfMembers(True, lambda members: all(m.reads_queues for m in members))
    )
    composed_of: ClassVar[tuple[type[Hooks], ...]] = (
        CheckpointFilter,
        UpstreamBuffers,
        TaskCheckpoints,
        StateTransfer,
    )

    bolts: Annotated[
        dict[str, Member], Field(description="strategies of single bolts, by the bolt's name")
    ] = {}
    stateless: Annotated[
        Member | None,
        Field(description="that of all other bolts that keep no state; that of the rest if not given"),
    ] = None
    rest: Annotated[Member, Field(description="the strategy of all other bolts")]

    # -- who is whose ----------------------------------------------------------------------------------------

    @property
    def members(self) -> dict[KeyPath, Strategy]:
        """All of them, by where they are given."""
        single: dict[KeyPath, Strategy] = {("bolts", name): m for name, m in self.bolts.items()}
        others = {} if self.stateless is None else {("stateless",): self.stateless}
        return {("rest",): self.rest, **others, **single}

    def place(self, component: str, keeps_state: bool) -> KeyPath:
        """Where the strategy of a bolt is given."""
        if component in self.bolts:
            return ("bolts", component)
        return ("rest",) if keeps_state or self.stateless is None else ("stateless",)

    def of(self, component: Component) -> Strategy:
        """The strategy of a bolt."""
        return self.members[self.place(component.name, component.keeps_state)]

    # -- what it says of itself ------------------------------------------------------------------------------

    def promises(self) -> Promise:
        kept = [_KEPT.get(member.promises(), (True, True)) for member in self.members.values()]
        once, lossless = (all(each) for each in zip(*kept, strict=True))
        # who goes on with nothing has forgotten what it had from one replica, and takes it from another
        forgets = not lossless and any(member.needs.paths for member in self.members.values())
        return _PROMISES[once and not forgets, lossless]

    @property
    def needs(self) -> Needs:
        return reduce(Needs.together, (member.needs for member in self.members.values()))

    def replicas(self, component: str, keeps_state: bool) -> int:
        return self.members[self.place(component, keeps_state)].replicas(component, keeps_state)

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        bolts = _plain(given.get("bolts"))
        found = [given.get("rest"), given.get("stateless")]
        found += bolts.values() if isinstance(bolts, Mapping) else []
        return max(_most_replicas(_plain(each)) for each in found)

    def named_bolts(self) -> dict[KeyPath, str]:
        return {("bolts", name): name for name in self.bolts}

    def named_hosts(self) -> dict[KeyPath, int]:
        return {(*at, *path): host for at, m in self.members.items() for path, host in m.named_hosts().items()}

    def named_stores(self) -> dict[KeyPath, str]:
        return {(*at, *path): name for at, m in self.members.items() for path, name in m.named_stores().items()}

    def load(self, component: Component) -> Work:
        return self.of(component).load(component)

    def remarks(self, plan: Plan) -> list[str]:
        remarks: dict[str, None] = {}
        for at, member in self.members.items():
            every = (c for c in plan.topology.components if not c.is_spout)
            own = frozenset(c.name for c in every if self.place(c.name, c.keeps_state) == at)
            if own:
                remarks |= dict.fromkeys(member.remarks(replace(plan, only=own)))
        return list(remarks)

    def unstated(self, failures: bool) -> list[str]:
        said = ((".".join(map(str, at)), m.unstated(failures)) for at, m in self.members.items())
        return [f"{text} of {place}" for place, texts in said for text in texts]

    def without_failures(self) -> Strategy:
        bolts = {name: member.without_failures() for name, member in self.bolts.items()}
        stateless = self.stateless and self.stateless.without_failures()
        others = {"rest": self.rest.without_failures(), "stateless": stateless}
        return self.model_copy(update={"bolts": bolts, **others})

    def cycle(self) -> tuple[int, int] | None:
        """That of all members that have one, if it is the same; else that of the rest."""
        cycles = {cycle for m in self.members.values() if (cycle := m.cycle()) is not None}
        return cycles.pop() if len(cycles) == 1 else self.rest.cycle()

    def recovers_within(self, down: int, window: int) -> int:
        return max(member.recovers_within(down, window) for member in self.members.values())

    def protocol(self, job: Job) -> Together:
        return Together(job, self)


def _plain(value: Any) -> Any:
    """A value of a file without its place there."""
    return getattr(value, "value", value)


def _most_replicas(given: Any) -> int:
    """Most replicas of a member: a part, a kind, or keys that nobody has checked."""
    if isinstance(given, Strategy):
        return given.most_replicas(dict(given))
    keys = {"kind": given} if isinstance(given, str) else given
    kind = _plain(keys.get("kind")) if isinstance(keys, Mapping) else None
    if not (isinstance(kind, str) and kind in STRATEGIES):
        return 1
    return STRATEGIES[kind].most_replicas({key: _plain(value) for key, value in keys.items()})


class Together(Protocol):
    """The protocol: each task, at its fault, when it is back, and at the end of its windows, does what its
    member says; what they have in common, buffers and filters, knows of all tasks.
    """

    def __init__(self, job: Job, strategy: Hybrid) -> None:
        super().__init__(job)
        tasks: dict[KeyPath, list[BoltView]] = {("rest",): []}
        for task in job.bolt_tasks:
            place = strategy.place(task.component.name, task.component.keeps_state)
            tasks.setdefault(place, []).append(task)
        shared = Shared(job, replicated=strategy.needs.paths, saved=True)
        self.members = {at: strategy.members[at].member(job, own, shared) for at, own in tasks.items()}
        self.of: dict[TaskView, Protocol] = {task: self.members[at] for at, own in tasks.items() for task in own}

    def _of(self, task: TaskView) -> Protocol:
        return self.of.get(task, self.members["rest",])

    def start(self) -> None:
        for member in self.members.values():
            member.start()

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self._of(task).failed(task, outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self._of(task).ready(task, outage)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        return self._of(task).window_ended(task, parts, now)

"""Hybrid: a strategy for each bolt.

Each task goes by its member: the one that `bolts` names for its bolt, else `stateless`, if that is given
and the bolt keeps no state, else `rest`. Members can be `none`, `rsm`, `active_replication`, and others
that have a `member`. Where they meet (tests/models/test_hybrid.py, test_exactness.py):

- A channel is buffered if its receiver has state and is under `rsm`, whatever its sender is under; from a
  spout only with that member's `spout_buffer`. Each replica of a sender keeps a buffer of its own, and each
  is asked: when it is ready, restored (`rsm`), or has copied its peer.
- If a member is `active_replication` all tasks drop duplicates by path. A checkpoint then has the greatest
  uid processed on each path, too; a task that goes back has had that, and no more, and what waits passes
  the filter again. If the state is lost again meanwhile, what was in the queue does not drop out by that.
- A trim marker has these uids with it: the sender also drops what is not above them, for of a replica that
  is always second nothing is processed, and no number would let it trim.
- A recovery under `rsm` ends when one replica of each sender has come to its end marker. Until its own end
  marker comes, each channel is discarded.
- A replica that copies its peer keeps for each receiver what the peer keeps, under new numbers above all
  that its channel had. One that goes on alone keeps what it has.
- What all replicas of a task had is lost with the last of them, and with a task under `none` what it had.
- `dropped` counts, for the newest fault of a task until its state is back, what it drops as known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from pydantic import AfterValidator, Field

from tideover.models.job.topology import Component
from tideover.models.mechanisms.buffers import Shared, UpstreamBuffers
from tideover.models.mechanisms.checkpoints import RegularCheckpoints
from tideover.models.mechanisms.replicas import CheckpointFilter, StateTransfer
from tideover.models.operators.state import Effects
from tideover.models.remarks import Plan, Work
from tideover.models.runtime.hooks import Needs
from tideover.models.runtime.job import Job
from tideover.models.runtime.views import BoltView, OutageView, SpoutView, TaskView
from tideover.models.strategies.base import STRATEGIES, KeyPath, Promise, Protocol, Strategy
from tideover.sim.registry import kind_of, setting

T = TypeVar("T")


def _may_be_member(strategy: Strategy) -> Strategy:
    if strategy.not_in_hybrid is not None:
        able = ", ".join(sorted(kind for kind, cls in STRATEGIES.items() if cls.not_in_hybrid is None))
        raise ValueError(
            f"{kind_of(strategy)} cannot be the strategy of some bolts only: {strategy.not_in_hybrid}; "
            f"allowed are {able}"
        )
    if strategy.named_bolts():
        raise ValueError("names bolts itself; which are its own is said by bolts, stateless and rest")
    return strategy


Member = Annotated[Strategy, AfterValidator(_may_be_member)]


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


class _ByMembers(Generic[T]):
    def __init__(self, of_class: T, of: Callable[[Any], list[Strategy]]) -> None:
        self._of_class, self._of = of_class, of

    def __set_name__(self, cls: type, name: str) -> None:
        self._name = name

    def __get__(self, strategy: Hybrid | None, cls: type[Hybrid]) -> Any:
        if strategy is None:
            return self._of_class
        each = [getattr(member, self._name) for member in self._of(strategy)]
        return all(each) if isinstance(self._of_class, bool) else frozenset.intersection(*each)


def by_members(
    of_class: T, of: Callable[[Any], list[Strategy]] = lambda mix: [*mix.all_members.values()]
) -> T:
    """Something that a strategy says of itself: what its members share; as a class, ``of_class``."""
    return cast("T", _ByMembers(of_class, of))


_KEPT: dict[Promise, tuple[bool, bool]] = {
    "none": (False, False),
    "at most once": (True, False),
    "at least once": (False, True),
    "exactly once": (True, True),
}
"""Whether there are no duplicates, and whether nothing is lost."""


def weakest(members: Iterable[Strategy]) -> Promise:
    """What is kept of the members' promises. Who goes on with nothing has forgotten what it had from one
    replica of a sender, and takes it from another: so beside replicas it may count twice.
    """
    members = list(members)
    once, lossless = (all(each) for each in zip(*(_KEPT[m.promises()] for m in members), strict=True))
    forgets = not lossless and any(member.needs.paths for member in members)
    return next(promise for promise, kept in _KEPT.items() if kept == (once and not forgets, lossless))


@STRATEGIES.register("hybrid")
class Hybrid(Strategy):
    """As strong as the weakest of its members: some bolts are replicated, say, and the rest goes back to
    checkpoints, each at the price of its own strategy.

    P. Upadhyaya, Y. Kwon, M. Balazinska, *A Latency and Fault-Tolerance Optimizer for Online Parallel Query
    Plans*, SIGMOD 2011: another fault-tolerance technique for each operator. L. Su, Y. Zhou, *Tolerating
    Correlated Failures in Massively Parallel Stream Processing Engines*, ICDE 2016, have replicas of some
    tasks and checkpoints of all, so that the last replica that fails is restored; here it is lost.
    """

    promise = "exactly once"
    not_in_hybrid = "it has members itself"
    typical: ClassVar[dict[str, Any]] = {
        "rest": {"kind": "rsm", "checkpoint_interval": "5 s"},
        "stateless": "active_replication",
    }
    survives = by_members(frozenset({"lose_state", "crash_task"}))
    stateless_too = by_members(True, lambda mix: [mix.stateless or mix.rest, *mix.bolts.values()])
    windows = by_members(frozenset({"sliding", "event", "session", "arrival session", "join"}))
    bounded_queues = by_members(True)
    reads_queues = by_members(True)
    composed_of = (CheckpointFilter, UpstreamBuffers, RegularCheckpoints, StateTransfer)

    bolts: Annotated[
        dict[str, Member],
        Field(default_factory=dict, description="strategies of single bolts, by the bolt's name"),
    ]
    stateless: Member | None = setting(
        "that of all other bolts that keep no state; that of the rest if not given"
    )
    rest: Annotated[Member, Field(description="the strategy of all other bolts")]

    @property
    def all_members(self) -> dict[KeyPath, Strategy]:
        """All of them, by where they are given."""
        found: dict[KeyPath, Strategy] = {("rest",): self.rest}
        if self.stateless is not None:
            found["stateless",] = self.stateless
        return found | {("bolts", name): member for name, member in self.bolts.items()}

    def place(self, component: str, keeps_state: bool) -> KeyPath:
        """Where the strategy of a bolt is given."""
        if component in self.bolts:
            return ("bolts", component)
        return ("rest",) if keeps_state or self.stateless is None else ("stateless",)

    def of(self, component: Component) -> Strategy:
        """The strategy of a bolt."""
        return self.all_members[self.place(component.name, component.keeps_state)]

    def named_bolts(self) -> dict[KeyPath, str]:
        return {("bolts", name): name for name in self.bolts}

    def named_hosts(self) -> dict[KeyPath, int]:
        return self._named(lambda member: member.named_hosts())

    def named_stores(self) -> dict[KeyPath, str]:
        return self._named(lambda member: member.named_stores())

    def _named(self, of: Callable[[Strategy], dict[KeyPath, T]]) -> dict[KeyPath, T]:
        named = ((at, of(member)) for at, member in self.all_members.items())
        return {(*at, *path): what for at, names in named for path, what in names.items()}

    def replicas(self, component: str, keeps_state: bool) -> int:
        return self.all_members[self.place(component, keeps_state)].replicas(component, keeps_state)

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        bolts = _plain(given.get("bolts"))
        found = [given.get("rest"), given.get("stateless")]
        found += bolts.values() if isinstance(bolts, Mapping) else []
        return max(_most_replicas(_plain(each)) for each in found)

    def promises(self) -> Promise:
        return weakest(self.all_members.values())

    @property
    def needs(self) -> Needs:
        return reduce(Needs.joined, (member.needs for member in self.all_members.values()))

    def load(self, component: Component) -> Work:
        return self.of(component).load(component)

    def remarks(self, plan: Plan) -> list[str]:
        remarks: dict[str, None] = {}
        bolts = [c for c in plan.topology.components if not c.is_spout]
        for at, member in self.all_members.items():
            own = frozenset(c.name for c in bolts if self.place(c.name, c.keeps_state) == at)
            if own:
                remarks |= dict.fromkeys(member.remarks(replace(plan, only=own)))
        return list(remarks)

    def unstated(self, failures: bool) -> list[str]:
        said = ((".".join(map(str, at)), m.unstated(failures)) for at, m in self.all_members.items())
        return [f"{text} of {place}" for place, texts in said for text in texts]

    def without_failures(self) -> Strategy:
        bolts = {name: member.without_failures() for name, member in self.bolts.items()}
        stateless = self.stateless and self.stateless.without_failures()
        others = {"rest": self.rest.without_failures(), "stateless": stateless}
        return self.model_copy(update={"bolts": bolts, **others})

    def cycle(self) -> tuple[int, int] | None:
        """That of all members that have one, if it is the same; else that of the rest."""
        cycles = {cycle for m in self.all_members.values() if (cycle := m.cycle()) is not None}
        return cycles.pop() if len(cycles) == 1 else self.rest.cycle()

    def recovers_within(self, down: int, window: int) -> int:
        return max(member.recovers_within(down, window) for member in self.all_members.values())

    def protocol(self, job: Job) -> Protocol:
        return AllMembers(job, self)


class AllMembers(Protocol):
    """Each task, at its fault, when it is back, and at the end of its windows, does what its member says; the
    member of the rest has the spouts. What they share, buffers and a filter, knows of all tasks.
    """

    def __init__(self, job: Job, strategy: Hybrid) -> None:
        super().__init__(job)
        tasks: dict[KeyPath, list[BoltView]] = {("rest",): []}
        for task in self.view.bolts:
            place = strategy.place(task.component.name, task.component.keeps_state)
            tasks.setdefault(place, []).append(task)
        shared = Shared(job, replicated=strategy.needs.paths, saved=True)
        self.members = {at: strategy.all_members[at].member(job, own, shared) for at, own in tasks.items()}
        self.by_task: dict[TaskView, Protocol] = {
            task: self.members[at] for at, own in tasks.items() for task in own
        }

    def of(self, task: TaskView) -> Protocol:
        """The protocol that acts for a task."""
        return self.by_task.get(task, self.members["rest",])

    def start(self) -> None:
        for member in self.members.values():
            member.start()

    def failed(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self.of(task).failed(task, outage)

    def ready(self, task: SpoutView | BoltView, outage: OutageView) -> None:
        self.of(task).ready(task, outage)

    def window_ended(self, task: BoltView, parts: list[Effects], now: int) -> int:
        return self.of(task).window_ended(task, parts, now)

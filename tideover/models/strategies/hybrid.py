"""Hybrid: a strategy for each bolt."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, cast

from tideover.models.job.topology import Component
from tideover.models.mechanisms.buffers.recovery import UpstreamBuffers
from tideover.models.mechanisms.duplicate_filter import CheckpointFilter
from tideover.models.mechanisms.state_transfer import StateTransfer
from tideover.models.mechanisms.task_checkpoints import RegularCheckpoints
from tideover.models.remarks.plan import Plan, Work
from tideover.models.runtime.hooks import Hooks, Needs
from tideover.models.runtime.job import Job
from tideover.models.strategies.base import STRATEGIES, Promise, Protocol, Strategy
from tideover.models.strategies.combining.members import Members, OfMembers, weakest
from tideover.models.strategies.combining.together import Together


@STRATEGIES.register("hybrid")
class Hybrid(Members):
    """As strong as the weakest of its members: some bolts are replicated, say, and the rest goes back to
    checkpoints, each at the price of its own strategy.

    P. Upadhyaya, Y. Kwon, M. Balazinska, *A Latency and Fault-Tolerance Optimizer for Online Parallel Query
    Plans*, SIGMOD 2011: another fault-tolerance technique for each operator. L. Su, Y. Zhou, *Tolerating
    Correlated Failures in Massively Parallel Stream Processing Engines*, ICDE 2016, have replicas of some
    tasks and checkpoints of all, so that the last replica that fails is restored; here it is lost.
    """

    promise: ClassVar[Promise] = "exactly once"
    alone: ClassVar[str | None] = "it has members itself"
    usual: ClassVar[dict[str, Any]] = {
        "rest": {"kind": "rsm", "checkpoint_interval": "5 s"},
        "stateless": "active_replication",
    }
    survives: ClassVar[frozenset[str]] = cast(
        "frozenset[str]",
        OfMembers(
            frozenset({"lose_state", "crash_task"}),
            lambda mix: frozenset.intersection(*(member.survives for member in mix.all_members.values())),
        ),
    )
    stateless_too: ClassVar[bool] = cast(
        "bool",
        OfMembers(
            True,
            lambda mix: all(m.stateless_too for m in (mix.stateless or mix.rest, *mix.bolts.values())),
        ),
    )
    windows: ClassVar[frozenset[str]] = cast(
        "frozenset[str]",
        OfMembers(
            frozenset({"sliding", "event", "session", "arrival session", "join"}),
            lambda mix: frozenset.intersection(*(member.windows for member in mix.all_members.values())),
        ),
    )
    bounded_queues: ClassVar[bool] = cast(
        "bool",
        OfMembers(True, lambda mix: all(member.bounded_queues for member in mix.all_members.values())),
    )
    reads_queues: ClassVar[bool] = cast(
        "bool", OfMembers(True, lambda mix: all(member.reads_queues for member in mix.all_members.values()))
    )
    composed_of: ClassVar[tuple[type[Hooks], ...]] = (
        CheckpointFilter,
        UpstreamBuffers,
        RegularCheckpoints,
        StateTransfer,
    )

    def promises(self) -> Promise:
        return weakest(self.all_members.values())

    @property
    def needs(self) -> Needs:
        return reduce(Needs.together, (member.needs for member in self.all_members.values()))

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
        return Together(job, self)

"""What breaks, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from pydantic import Field, model_validator

from tideover.sim.distributions.base import Distribution
from tideover.sim.draws import Draws, Purpose
from tideover.sim.registry import Part, Registry
from tideover.sim.turn import TurnText
from tideover.sim.units import MS, Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

FAULTS: Registry[Fault] = Registry("failure kind")


class Target(Protocol):
    """What a fault can do to a world."""

    def tasks_of(self, component: str, task: int, replica: int) -> list[Any]:
        """The physical task that is named."""

    def tasks_on(self, host: int) -> list[Any]:
        """All physical tasks on a host, in physical order; the acker too."""

    def tasks_in(self, host: int, worker: int) -> list[Any]:
        """The same of one worker of it."""

    def tasks_in_rack(self, rack: int) -> list[Any]:
        """The same of all hosts of a rack."""

    def lose_state(self, task: Any, outage: Any, keep: bool) -> None:
        """Take a task's state; ``keep``: it serves on at once."""

    def crash(self, task: Any, outage: Any) -> None:
        """Take a task with all it has."""

    def cut(self, outage: Any, between: Between, lose: bool) -> None:
        """Let nothing pass between the two sides until the outage's end; ``lose``: tuples do not wait."""

    def slow_links(self, outage: Any, between: Between, factors: tuple[float, float]) -> None:
        """Let messages between the two sides take so many times as long on the wire, and in cards, until the
        outage's end.
        """

    def pause(self, task: Any, outage: Any) -> None:
        """Stop a task until the outage's end, with all it has."""

    def servers_of(self, store: str | None) -> list[Any]:
        """The servers of a store; None: of the one that has no name."""

    def slow_store(self, server: Any, outage: Any, factor: float) -> None:
        """Let its requests take so many times as long until the outage's end."""

    def stop_store(self, server: Any, outage: Any) -> None:
        """Let its requests wait until the outage's end."""

    def empty_store(self, store: str | None) -> None:
        """Let a store lose all that it has; None: the one that has no name."""

    def slow_down(self, host: int, outage: Any, factor: float) -> None:
        """Let the cores of a host work at a part of their speed until the outage's end."""


class Between(NamedTuple):
    """Two sets of hosts: some, and ``others`` (None: all that are not among them)."""

    hosts: tuple[int, ...]
    others: tuple[int, ...] | None = None

    def part(self, one: int, other: int) -> bool:
        """Whether these two hosts are on different sides."""
        return self._across(one, other) or self._across(other, one)

    def _across(self, here: int, there: int) -> bool:
        beyond = there not in self.hosts if self.others is None else there in self.others
        return here in self.hosts and beyond

    @property
    def words(self) -> str:
        """The same in words."""
        told = f"hosts {', '.join(map(str, self.hosts))}"
        return told if self.others is None else f"{told} and {', '.join(map(str, self.others))}"


class Site(NamedTuple):
    """What a schedule of faults depends on: a run until ``end`` (ns) on so many ``hosts``.

    ``cycle``: first moment and period (ns) of the strategy's interval; None: it has none
    """

    end: int
    hosts: int
    cycle: tuple[int, int] | None = None


class Fault(Part):
    """A fault: at a given time, or again and again after drawn pauses.

    Subclasses say what is hit (``victims``) and what is done to it (``strike``).
    """

    unsaid: ClassVar[frozenset[str]] = frozenset({"times", "period", "turn"})

    kind: ClassVar[str]
    expands: ClassVar[bool] = False
    """Whether it stands for others, whose moments it knows itself (``strikes``)."""
    kills: ClassVar[bool] = True
    """Whether what it hits is down until it is detected and restarted."""
    process_lives: ClassVar[bool] = False
    """Whether that is so though the process lives: nobody misses its heartbeats."""
    at: Annotated[Duration | None, Field(description="when it strikes, e.g. 75 s")] = None
    within: Annotated[
        Duration | None,
        Field(
            description="it strikes at a moment drawn from the span of this length after at, anew in each "
            "replication, the same under every strategy; 0 s: at that very moment"
        ),
    ] = None
    in_interval: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="fraction of the strategy's interval (of checkpoints, say) after which it strikes, "
            "at the first such moment at or after at (with within: after the drawn one)",
        ),
    ] = None
    every: Annotated[
        Distribution | None, Field(description="pauses between strikes, drawn per replication")
    ] = None
    times: Annotated[
        int | None, Field(ge=2, le=100_000, description="how often it strikes (flapping), from at on")
    ] = None
    period: Annotated[
        Duration | None, Field(gt=0, description="distance of these strikes; goes with times")
    ] = None
    turn: Annotated[
        TurnText | None,
        Field(
            description="when in its instant it strikes: before or after what a task does with a rank "
            "(docs/semantics.md), as `after checkpoint of count.1`, or all tasks; default: before all of them"
        ),
    ] = None
    detection: Annotated[Duration, Field(description="from the fault until it is noticed")] = 0
    restart: Annotated[Duration, Field(description="from then until the tasks are ready")] = 0
    while_down: Annotated[
        Literal["drop", "hold"],
        Field(description="arrivals at a task that is down are lost, or wait with their sender"),
    ] = "drop"

    @model_validator(mode="after")
    def _one_schedule(self) -> Fault:
        if (self.times is None) != (self.period is None):
            raise ValueError("times (how often) and period (how far apart) go together")
        if self.times is not None and (self.at is None or self.in_interval is not None):
            raise ValueError("times goes with at and within, not with every or in_interval")
        if self.expands:
            if any(value is not None for value in (self.at, self.every, self.within, self.in_interval)):
                raise ValueError("it has moments of its own; leave out at, every, within and in_interval")
            return self
        if (self.at is None) == (self.every is None):
            raise ValueError("give either at (a moment) or every (a distribution of pauses)")
        if self.every is not None and self.every.mean_ns < MS:
            raise ValueError("pauses (every) must be at least 1 ms on average")
        if self.every is not None and self.in_interval is not None:
            raise ValueError("in_interval goes with at, not with every")
        if self.every is not None and self.within is not None:
            raise ValueError("within goes with at, not with every")
        return self

    @property
    def lasts(self) -> int:
        """From the fault until what it hit is ready again (ns)."""
        return max(self.detection + self.restart, self.out_of_order)

    @property
    def out_of_order(self) -> int:
        """For how long nothing can be launched where it strikes (ns)."""
        return 0

    def breaks(self, host: int, rack: int) -> bool:
        """Whether it makes all of a host in this rack fail."""
        return False

    @property
    def drawn(self) -> bool:
        """Whether it strikes at other moments in each replication."""
        return self.every is not None or bool(self.within) or self.expands

    @property
    def latest(self) -> int | None:
        """The last moment that ``at`` and ``within`` allow (ns), in_interval apart; None with ``every``."""
        return None if self.at is None else self.at + max(0, (self.within or 0) - 1)

    @property
    def where(self) -> str:
        """What is hit, in words."""
        raise NotImplementedError

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        """Settings besides times that let it hit the first task of a component, which is on that host, in a
        scenario without further parts.
        """
        raise NotImplementedError

    def victims(self, target: Target) -> list[Any]:
        """The physical tasks that are hit."""
        raise NotImplementedError

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        """Hit one of them."""
        raise NotImplementedError

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        """Hit all of them: what passes by itself does."""
        for victim in victims:
            self.strike(target, victim, outage)

    @property
    def inner(self) -> dict[str, Fault]:
        """Faults that it stands for, by where each is written."""
        return {}

    def strikes(self, index: int, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        """When it strikes (ns, rising), and as what; ``index`` is the fault's place in the scenario."""
        for moment in self.moments(index, draws, site.end, site.cycle):
            yield moment, self

    def moments(
        self, index: int, draws: Draws, end: int, cycle: tuple[int, int] | None = None
    ) -> Iterator[int]:
        """When it strikes (ns), up to ``end``; ``index`` is the fault's place in the scenario.

        ``cycle``: first moment and period (ns) of the strategy's interval, for ``in_interval``, which raises
        ValueError without.
        """
        if self.at is not None:
            first = self.in_cycle(self.at + self._delay(index, draws), cycle)
            for n in range(self.times or 1):
                yield first + n * (self.period or 0)
            return
        assert self.every is not None
        now, n = 0, 0
        while True:
            bits = draws.bits(f"failures.{index}", Purpose.FAULT, np.array([n], np.int64))
            now += max(1, int(self.every.sample(bits)[0]))
            if now > end:
                return
            yield now
            n += 1

    def _delay(self, index: int, draws: Draws) -> int:
        """How long after ``at`` it strikes (ns): uniform in [0, within)."""
        if not self.within:
            return 0
        bits = draws.bits(f"failures.{index}", Purpose.FAULT, np.zeros(1, np.int64))
        return int(bits[0] >> np.uint64(11)) * self.within >> 53

    def in_cycle(self, at: int, cycle: tuple[int, int] | None) -> int:
        """The first moment at or after ``at`` that lies ``in_interval`` of a period into one (ns); ``at``
        itself if that is not given.
        """
        if self.in_interval is None:
            return at
        if cycle is None:
            raise ValueError("in_interval needs a strategy that does something at regular intervals")
        first, period = cycle
        moment = first + round(self.in_interval * period)
        return moment + max(0, -(-(at - moment) // period)) * period


class PassingFault(Fault):
    """A fault that nobody notices, and that passes after a ``duration``: what it hits stays up."""

    kills: ClassVar[bool] = False

    duration: Annotated[Duration, Field(gt=0, description="how long it lasts, e.g. 30 s")]

    @model_validator(mode="after")
    def _passes(self) -> PassingFault:
        if self.detection or self.restart:
            raise ValueError(
                f"a failure of kind {self.kind} is not detected, and passes: give duration alone"
            )
        return self

    @property
    def lasts(self) -> int:
        return self.duration


class LinkFault(PassingFault):
    """A passing fault of all links between two sets of hosts."""

    hosts: Annotated[tuple[int, ...], Field(min_length=1, description="numbers of the hosts on one side")]
    others: Annotated[
        tuple[int, ...] | None,
        Field(min_length=1, description="those on the other side; default: all that are not in hosts"),
    ] = None

    @model_validator(mode="after")
    def _two_sides(self) -> LinkFault:
        both = set(self.hosts) & set(self.others or ())
        if both:
            raise ValueError(f"host {min(both)} is on both sides; hosts and others must differ")
        return self

    @property
    def between(self) -> Between:
        """The two sides."""
        return Between(self.hosts, self.others)

    @property
    def where(self) -> str:
        return self.between.words

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"hosts": (host,)}

    def victims(self, target: Target) -> list[Any]:
        found = {victim: None for host in self.hosts for victim in target.tasks_on(host)}
        return sorted(found, key=lambda victim: int(victim.number))


class StoreFault(Fault):
    """A fault of a store, that nobody notices."""

    kills: ClassVar[bool] = False

    store: Annotated[
        str | None, Field(description="which of `stores`; if not given: the scenario's `store`")
    ] = None

    @property
    def where(self) -> str:
        return f"store {self.store}" if self.store else "store"

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {}

    def victims(self, target: Target) -> list[Any]:
        return target.servers_of(self.store)


class MachineFault(Fault):
    """A fault that crashes all that runs on some hosts; nothing is launched there before their ``repair``."""

    unsaid: ClassVar[frozenset[str]] = Fault.unsaid | {"repair"}

    repair: Annotated[
        Duration | None,
        Field(description="how long nothing can be launched there; default: it is up again at once"),
    ] = None

    @property
    def out_of_order(self) -> int:
        return self.repair or 0

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.crash(victim, outage)


class TaskFault(Fault):
    """A fault that hits one task: ``component`` (or ``acker``, or ``driver``), ``task`` number, and under
    replication ``replica``.
    """

    component: Annotated[
        str,
        Field(
            description="component that is hit; acker: the acker; driver: that of batches; coordinator: that "
            "of Trident"
        ),
    ]
    task: Annotated[int, Field(ge=0, description="which of the component's tasks")] = 0
    replica: Annotated[int, Field(ge=0, description="which replica of it (active replication)")] = 0

    @property
    def where(self) -> str:
        return self.component

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        return {"component": component}

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_of(self.component, self.task, self.replica)

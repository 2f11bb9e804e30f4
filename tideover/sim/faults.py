"""What breaks, and when: what all failure kinds have in common.

The kinds are in `tideover.sim.fault_kinds`; a new one is a class there. It takes the base that says what
is hit (`TaskFault`, `HostFault`, `StoreFault`, `LinkFault`; `PassingFault` is for what nobody notices), and
gives `where`, `hits` (or `victims`), `strike` and `problems` as far as that does not. `Supervisor` lets them
strike; `scenarios/checks.py` asks for problems. The rules of all kinds (tests/sim/test_faults.py,
tests/models/test_outages.py):

- `lose_state`: state, held ids and acks not yet sent are gone; the task stays up and keeps its queue. If it
  has a downtime, what was queued or in service is served anew when it is ready.
- `crash_task`: also queue, service, line and control markers; of a spout pending roots, retries and
  buffers. It goes on with its next root number.
- `crash_worker`, `crash_host`, `crash_rack`: the same for all tasks there, in physical order, and for an
  acker that lives there (tests/models/test_clusters.py).
- `pause`: the task does nothing for `duration`, then goes on; all that it was to do is later by as much. It
  stays up; timers and stores go on. A crash or restart ends a pause.
- A fault on a task that is down starts detection and restart anew.
- A failure is noticed, and over, when all that it has hit is.
- `turn: after checkpoint of count.1`: it strikes right behind (or before) what this task does with this
  rank at its instant; without a task, behind (before) all of the rank. Otherwise it strikes before all
  actions.
- `within: w` adds a draw in [0, w) by seed, replication and place in the list. `in_interval: x`: at the
  first moment x periods after a beginning of the strategy's cycle, on the grid of a run without failures.
- `partition`: what is on a wire between the sides, and is sent there before the end, arrives at the end;
  with `messages: lose` tuples are destroyed. Acks, stores, requests, trims and copies pass
  (tests/models/test_partitions.py).
- `slow_link`: latencies on such wires, and times at cards, are multiplied until the end
  (test_partitions.py). For `slow_host` see `tideover.models.runtime.context`, for stores
  `tideover.models.job.stores`.
- `planned_restart` takes nothing before it is saved: `tideover.models.runtime.planned_stops`.
- `repair` of a host or rack: nothing is launched there before it is over; a host in reserve takes its place
  at once under `heartbeats`.
- `times`, `period`: it strikes again and again. `cascade`: each other host crashes with `probability`,
  after a draw in [0, `span`). `machines_fail`: each host crashes at the end of a drawn life, and is
  repaired when one of the `crews` is free. `events`: the failures of a file, in the order of their times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from tideover.sim.distributions import Distribution
from tideover.sim.draws import Draws, Purpose
from tideover.sim.kernel import TurnText
from tideover.sim.registry import Part, Registry, setting
from tideover.sim.units import MS, Duration

FAULTS: Registry[Fault] = Registry("failure kind")
ROLES = {
    "acker": "the acker itself",
    "driver": "the driver of micro-batches",
    "coordinator": "the coordinator of Trident's batches",
}
"""What a fault can hit besides components."""
Found = tuple[tuple[str | int, ...], str]
"""The steps of a key, and what is wrong there."""
Draft = Any
"""What could be built of a scenario so far, and what it has: `tideover.scenarios.checks.Draft`."""


class Target(Protocol):
    """What a fault can do to a world. Tasks are physical ones, in physical order, the acker among them; what
    takes an ``outage`` lasts until its end. A store that is None is the one that has no name.

    lose_state   takes a task's state; ``keep``: it serves on at once
    crash        takes a task with all it has
    pause        stops a task, which keeps all it has
    cut          lets nothing pass between the two sides; ``lose``: tuples do not wait
    slow_links   messages between them take so many times as long on the wire, and in cards
    slow_store   requests take so many times as long
    stop_store   requests wait
    empty_store  a store loses all that it has
    slow_down    the cores of a host work at a part of their speed
    """

    def tasks_of(self, component: str, task: int, replica: int) -> list[Any]: ...
    def tasks_in(self, there: Callable[[int, int, int], bool]) -> list[Any]: ...
    def servers_of(self, store: str | None) -> list[Any]: ...
    def lose_state(self, task: Any, outage: Any, keep: bool) -> None: ...
    def crash(self, task: Any, outage: Any) -> None: ...
    def pause(self, task: Any, outage: Any) -> None: ...
    def cut(self, outage: Any, between: Between, lose: bool) -> None: ...
    def slow_links(self, outage: Any, between: Between, factors: tuple[float, float]) -> None: ...
    def slow_store(self, server: Any, outage: Any, factor: float) -> None: ...
    def stop_store(self, server: Any, outage: Any) -> None: ...
    def empty_store(self, store: str | None) -> None: ...
    def slow_down(self, host: int, outage: Any, factor: float) -> None: ...


class Between(NamedTuple):
    """Two sets of hosts: some, and ``others`` (None: all that are not among them)."""

    hosts: tuple[int, ...]
    others: tuple[int, ...] | None = None

    def part(self, one: int, other: int) -> bool:
        """Whether these two hosts are on different sides."""
        if self.others is None:
            return (one in self.hosts) != (other in self.hosts)
        here, there = self.hosts, self.others
        return (one in here and other in there) or (other in here and one in there)


class Site(NamedTuple):
    """What a schedule of faults depends on: a run until ``end`` (ns) on so many ``hosts``.

    ``cycle``: first moment and period (ns) of the strategy's interval; None: it has none
    """

    end: int
    hosts: int
    cycle: tuple[int, int] | None = None


class Fault(Part):
    """A fault: at a given time, or again and again after drawn pauses.

    Subclasses say what is hit (``where`` in words, ``victims``), and what is done to it (``strike``).
    """

    omitted: ClassVar[frozenset[str]] = frozenset({"times", "period", "turn"})

    kind: ClassVar[str]
    expands: ClassVar[bool] = False
    """Whether it stands for others, whose moments it knows itself (``strikes``)."""
    kills: ClassVar[bool] = True
    """Whether what it hits is down until it is detected and restarted."""
    process_lives: ClassVar[bool] = False
    """Whether that is so though the process lives: nobody misses its heartbeats."""
    example: ClassVar[dict[str, Any]] = {}
    """Keys that it needs to have an effect, besides moments and those that say where."""
    at: Duration | None = setting("when it strikes, e.g. 75 s")
    within: Duration | None = setting(
        "it strikes at a moment drawn from the span of this length after at, anew in each "
        "replication, the same under every strategy; 0 s: at that very moment"
    )
    in_interval: float | None = setting(
        "fraction of the strategy's interval (of checkpoints, say) after which it strikes, "
        "at the first such moment at or after at (with within: after the drawn one)",
        gt=0,
        le=1,
    )
    every: Distribution | None = setting("pauses between strikes, drawn per replication")
    times: int | None = setting("how often it strikes (flapping), from at on", ge=2, le=100_000)
    period: Duration | None = setting("distance of these strikes; goes with times", gt=0)
    turn: TurnText | None = setting(
        "when in its instant it strikes: before or after what a task does with a rank "
        "(docs/semantics.md), as `after checkpoint of count.1`, or all tasks; default: before all of them"
    )
    detection: Duration = setting("from the fault until it is noticed", 0)
    restart: Duration = setting("from then until the tasks are ready", 0)
    while_down: Literal["drop", "hold"] = setting(
        "arrivals at a task that is down are lost, or wait with their sender", "drop"
    )

    @model_validator(mode="after")
    def _one_schedule(self) -> Fault:
        at, every, within, inside = (
            value is not None for value in (self.at, self.every, self.within, self.in_interval)
        )
        often = self.times is not None
        rules = {
            "times (how often) and period (how far apart) go together": often == (self.period is not None),
            "times goes with at and within, not with every or in_interval": not often or (at and not inside),
        }
        if self.expands:
            message = "it has moments of its own; leave out at, every, within and in_interval"
            rules[message] = not (at or every or within or inside)
        else:
            rules |= {
                "give either at (a moment) or every (a distribution of pauses)": at != every,
                "pauses (every) must be at least 1 ms on average": not self.every or self.every.mean_ns >= MS,
                "in_interval goes with at, not with every": not (every and inside),
                "within goes with at, not with every": not (every and within),
            }
        if broken := [message for message, holds in rules.items() if not holds]:
            raise ValueError(broken[0])
        return self

    @property
    def lasts(self) -> int:
        """From the fault until what it hit is ready again (ns)."""
        return max(self.detection + self.restart, self.out_of_order)

    @property
    def out_of_order(self) -> int:
        """For how long nothing can be launched where it strikes (ns)."""
        return 0

    def hits(self, rack: int, host: int, worker: int) -> bool:
        """Whether all is hit that runs in this worker of this host of this rack."""
        return False

    def breaks(self, rack: int, host: int) -> bool:
        """Whether the whole host crashes, as a machine."""
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
        raise NotImplementedError

    @classmethod
    def aimed_at(cls, component: str, host: int) -> dict[str, Any]:
        """Settings besides times that let it hit the first task of a component, which is on that host, in a
        scenario without further parts: by default of the keys that say where, and those of ``example``.
        """
        where = {"component": component, "host": host, "hosts": (host,), "rack": 0}
        return {key: value for key, value in where.items() if key in cls.model_fields} | cls.example

    @classmethod
    def lasting(cls, detection: int, restart: int) -> dict[str, Any]:
        """Settings with which it is noticed, and over, after so long (ns); what nobody notices only over."""
        return {"detection": detection, "restart": restart}

    def problems(self, draft: Draft) -> Iterator[Found]:
        """What the scenario does not have, or does not go with; by default what the keys name that say where:
        ``component`` and ``task``, ``host``, ``hosts``, ``others``, ``rack``, ``worker``, ``store``.
        """
        yield from _unknown(self, draft)

    def victims(self, target: Target) -> list[Any]:
        """The physical tasks that are hit: by default where it ``hits``."""
        if type(self).hits is Fault.hits and not self.expands:
            raise NotImplementedError(f"failure kind {self.kind} gives neither hits nor victims")
        return target.tasks_in(self.hits)

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        """Hit one of them; by default it crashes."""
        target.crash(victim, outage)

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        """Hit all of them: what nobody notices does."""
        for victim in victims:
            self.strike(target, victim, outage)

    @property
    def inner(self) -> dict[str, Fault]:
        """Faults that it stands for, by where each is written."""
        return {}

    def strikes(self, index: int | str, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        """When it strikes (ns, rising), and as what; it draws by ``index``, its place in the scenario."""
        for moment in self.moments(index, draws, site.end, site.cycle):
            yield moment, self

    def moments(
        self, index: int | str, draws: Draws, end: int, cycle: tuple[int, int] | None = None
    ) -> Iterator[int]:
        """When it strikes (ns), up to ``end``. ``cycle``: first moment and period (ns) of the strategy's
        interval, for ``in_interval``, which raises ValueError without.
        """
        if self.at is not None:
            delay = 0
            if self.within:  # uniform in [0, within)
                delay = draws.moment(f"failures.{index}", Purpose.FAULT, self.within)
            first = self.in_cycle(self.at + delay, cycle)
            yield from (first + n * (self.period or 0) for n in range(self.times or 1))
            return
        assert self.every is not None
        now = 0
        for n in itertools.count():
            bits = draws.bits(f"failures.{index}", Purpose.FAULT, np.array([n], np.int64))
            now += max(1, int(self.every.sample(bits)[0]))
            if now > end:
                return
            yield now

    def in_cycle(self, at: int, cycle: tuple[int, int] | None) -> int:
        """The first moment (ns) from ``at`` on that lies ``in_interval`` of a period into one, if given."""
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
    def _passes(self) -> Self:
        if self.detection or self.restart:
            raise ValueError(
                f"a failure of kind {self.kind} is not detected, and passes: give duration alone"
            )
        return self

    @property
    def lasts(self) -> int:
        return self.duration

    @classmethod
    def lasting(cls, detection: int, restart: int) -> dict[str, Any]:
        return {"duration": detection + restart or MS}


class TaskFault(Fault):
    """A fault that hits one task: ``component`` (or one of `ROLES`), ``task`` number, and under replication
    ``replica``.
    """

    component: Annotated[
        str,
        Field(
            description="component that is hit; acker: the acker; driver: that of batches; coordinator: that "
            "of Trident"
        ),
    ]
    task: int = setting("which of the component's tasks", 0, ge=0)
    replica: int = setting("which replica of it (active replication)", 0, ge=0)

    @property
    def numbers(self) -> range:
        """The component's tasks that are hit."""
        return range(self.task, self.task + 1)

    @property
    def where(self) -> str:
        return self.component

    def victims(self, target: Target) -> list[Any]:
        return [
            victim for task in self.numbers for victim in target.tasks_of(self.component, task, self.replica)
        ]


class HostFault(Fault):
    """A fault that hits what is on one host."""

    host: Annotated[int, Field(ge=0, description="number of the host")]

    @property
    def where(self) -> str:
        return f"host {self.host}"

    def hits(self, rack: int, host: int, worker: int) -> bool:
        return host == self.host


class MachineFault(Fault):
    """A fault that crashes all that runs on some hosts; nothing is launched there before their ``repair``."""

    omitted: ClassVar[frozenset[str]] = Fault.omitted | {"repair"}

    repair: Duration | None = setting(
        "how long nothing can be launched there; default: it is up again at once"
    )

    @property
    def out_of_order(self) -> int:
        return self.repair or 0

    def breaks(self, rack: int, host: int) -> bool:
        return self.hits(rack, host, 0)


class LinkFault(PassingFault):
    """A passing fault of all links between two sets of hosts."""

    hosts: Annotated[tuple[int, ...], Field(min_length=1, description="numbers of the hosts on one side")]
    others: tuple[int, ...] | None = setting(
        "those on the other side; default: all that are not in hosts", min_length=1
    )

    @model_validator(mode="after")
    def _two_sides(self) -> Self:
        both = set(self.hosts) & set(self.others or ())
        if both:
            raise ValueError(f"host {min(both)} is on both sides; hosts and others must differ")
        return self

    @property
    def between(self) -> Between:
        return Between(self.hosts, self.others)

    @property
    def where(self) -> str:
        told = f"hosts {', '.join(map(str, self.hosts))}"
        return told if self.others is None else f"{told} and {', '.join(map(str, self.others))}"

    def hits(self, rack: int, host: int, worker: int) -> bool:
        return host in self.hosts

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        count = draft.host_total
        if count is not None and self.others is None and set(self.hosts) >= set(range(count)):
            message = f"has all hosts (0 to {count - 1}) on one side; leave at least one to the other"
            yield ("hosts",), message


class StoreFault(Fault):
    """A fault of a store, that nobody notices."""

    kills: ClassVar[bool] = False

    store: str | None = setting("which of `stores`; if not given: the scenario's `store`")

    @property
    def where(self) -> str:
        return f"store {self.store}" if self.store else "store"

    def victims(self, target: Target) -> list[Any]:
        return target.servers_of(self.store)


def _unknown(fault: Any, draft: Draft) -> Iterator[Found]:
    """What a fault's keys name by which kinds say where they strike, and the scenario does not have."""
    given = {
        key: getattr(fault, key, None) for key in ("component", "task", "host", "rack", "worker", "store")
    }
    name, task = given["component"], given["task"] or 0
    if name is not None and name not in ROLES and (unknown := draft.unknown_component(name)):
        yield ("component",), unknown
    elif name is not None and (found := draft.tasks_of(name)) is not None:
        there, tasks = found
        last = task + getattr(fault, "together", 1)
        if task >= there:
            yield ("task",), f"{name} has no task {task}; {tasks}"
        elif last > there:
            most = f"must be at most {there - task}, not {last - task}"
            yield ("together",), f"{most}: {name} has no more tasks; {tasks}"
    if given["host"] is not None and (unknown := draft.unknown_host(given["host"])):
        yield ("host",), unknown
    for key in ("hosts", "others"):
        for i, host in enumerate(getattr(fault, key, None) or ()):
            if unknown := draft.unknown_host(host):
                yield (key, i), unknown
    for what in ("rack", "worker"):
        number, there = given[what], getattr(draft.hosts, f"{what}s", 1)
        if number is not None and number >= there and not draft.hosts_unknown:
            of = "each host has" if what == "worker" else "there are"
            yield (
                (what,),
                f"there is no {what} {number}; {of} {there} of them (hosts.{what}s), numbered from 0",
            )
    if given["store"] is not None and (unknown := draft.unknown_store(given["store"])):
        yield ("store",), unknown

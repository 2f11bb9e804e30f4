"""What breaks, and when: failure kinds, each registered under the name that a scenario uses.

Who adds one: it takes the base that says what is hit (`TaskFault`, `MachineFault`, `StoreFault`, `LinkFault`;
`PassingFault` is for what nobody notices), and gives `where`, `victims` and `strike` as far as that does not.
The rules of all kinds (tests/sim/test_faults.py, tests/models/test_outages.py):

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
- `repair` of a host or rack: nothing is launched there before it is over; a host in reserve takes its place
  at once under `heartbeats`.
- `times`, `period`: it strikes again and again. `cascade`: each other host crashes with `probability`,
  after a draw in [0, `span`). `machines_fail`: each host crashes at the end of a drawn life, and is
  repaired when one of the `crews` is free. `events`: the failures of a file, in the order of their times.
"""

from __future__ import annotations

import csv
import heapq
import itertools
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from tideover.sim.distributions import Constant, Distribution, Exponential
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.kernel import TurnText
from tideover.sim.registry import Part, Registry
from tideover.sim.text_files import Unreadable, read_text
from tideover.sim.units import DAY, MS, Duration

FAULTS: Registry[Fault] = Registry("failure kind")


class Target(Protocol):
    """What a fault can do to a world. Tasks are physical ones, in physical order, the acker among them; what
    takes an ``outage`` lasts until its end. A store that is None is the one that has no name.
    """

    def tasks_of(self, component: str, task: int, replica: int) -> list[Any]: ...
    def tasks_on(self, host: int) -> list[Any]: ...
    def tasks_in(self, host: int, worker: int) -> list[Any]: ...
    def tasks_in_rack(self, rack: int) -> list[Any]: ...
    def servers_of(self, store: str | None) -> list[Any]: ...

    def lose_state(self, task: Any, outage: Any, keep: bool) -> None:
        """Take a task's state; ``keep``: it serves on at once."""

    def crash(self, task: Any, outage: Any) -> None:
        """Take a task with all it has."""

    def pause(self, task: Any, outage: Any) -> None:
        """Stop a task, with all it has."""

    def cut(self, outage: Any, between: Between, lose: bool) -> None:
        """Let nothing pass between the two sides; ``lose``: tuples do not wait."""

    def slow_links(self, outage: Any, between: Between, factors: tuple[float, float]) -> None:
        """Let messages between them take so many times as long on the wire, and in cards."""

    def slow_store(self, server: Any, outage: Any, factor: float) -> None:
        """Let its requests take so many times as long."""

    def stop_store(self, server: Any, outage: Any) -> None:
        """Let its requests wait."""

    def empty_store(self, store: str | None) -> None:
        """Let a store lose all that it has."""

    def slow_down(self, host: int, outage: Any, factor: float) -> None:
        """Let the cores of a host work at a part of their speed."""


class Between(NamedTuple):
    """Two sets of hosts: some, and ``others`` (None: all that are not among them)."""

    hosts: tuple[int, ...]
    others: tuple[int, ...] | None = None

    def part(self, one: int, other: int) -> bool:
        """Whether these two hosts are on different sides."""
        if self.others is None:
            return (one in self.hosts) != (other in self.hosts)
        return any(
            here in self.hosts and there in self.others for here, there in ((one, other), (other, one))
        )


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
        scenario without further parts: by default of the keys that say where, and those of ``example``.
        """
        where = {"component": component, "host": host, "hosts": (host,), "rack": 0}
        return {key: value for key, value in where.items() if key in cls.model_fields} | cls.example

    def victims(self, target: Target) -> list[Any]:
        """The physical tasks that are hit; none by what stands for other failures."""
        if self.expands:
            return []
        raise NotImplementedError

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        """Hit one of them; by default it crashes."""
        target.crash(victim, outage)
        target.crash(victim, outage)

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
            delay = 0
            if self.within:  # uniform in [0, within)
                delay = draws.moment(f"failures.{index}", Purpose.FAULT, self.within)
            first = self.in_cycle(self.at + delay, cycle)
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
        told = f"hosts {', '.join(map(str, self.hosts))}"
        return told if self.others is None else f"{told} and {', '.join(map(str, self.others))}"

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

    def victims(self, target: Target) -> list[Any]:
        return target.servers_of(self.store)


class MachineFault(Fault):
    """A fault that crashes all that runs on some hosts; nothing is launched there before their ``repair``."""

    omitted: ClassVar[frozenset[str]] = Fault.omitted | {"repair"}

    repair: Annotated[
        Duration | None,
        Field(description="how long nothing can be launched there; default: it is up again at once"),
    ] = None

    @property
    def out_of_order(self) -> int:
        return self.repair or 0


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

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_of(self.component, self.task, self.replica)


@FAULTS.register("crash_host")
class CrashHost(MachineFault):
    """Every task on the host crashes at once, the acker too if it lives there."""

    host: Annotated[int, Field(ge=0, description="number of the host")]

    @property
    def where(self) -> str:
        return f"host {self.host}"

    def breaks(self, host: int, rack: int) -> bool:
        return host == self.host

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_on(self.host)


@FAULTS.register("cascade")
class Cascade(CrashHost):
    """A host crashes, and each of the ``others`` does too, with a ``probability``, some time within ``span``.

    Failures that come together: D. Ford et al., *Availability in globally distributed storage systems*, OSDI
    2010, section 4 (about 37 % of the failures of nodes were parts of bursts).
    """

    others: Annotated[
        tuple[int, ...] | None, Field(description="hosts that may follow; default: all others")
    ] = None
    probability: Annotated[float, Field(ge=0, le=1, description="that one of them follows")] = 0.5
    span: Annotated[Duration, Field(description="those that follow do so within this time")] = 0

    def strikes(self, index: int, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        others = self.others if self.others is not None else range(site.hosts)
        shared = ("detection", "restart", "while_down", "repair")
        fields = {name: getattr(self, name) for name in shared}
        found: list[tuple[int, Fault]] = []
        for n, moment in enumerate(self.moments(index, draws, site.end, site.cycle)):
            found.append((moment, CrashHost(at=moment, host=self.host, **fields)))
            for host in others:
                bits = draws.bits(f"failures.{index}.{host}", Purpose.FAULT, np.array([2 * n, 2 * n + 1]))
                follows, delay = uniform01(bits).tolist()
                if host != self.host and follows < self.probability:
                    later = moment + int(delay * self.span)
                    found.append((later, CrashHost(at=later, host=host, **fields)))
        yield from sorted(found, key=lambda strike: strike[0])


@FAULTS.register("crash_rack")
class CrashRack(MachineFault):
    """Every host of the rack crashes at once: its switch or its power is gone."""

    rack: Annotated[int, Field(ge=0, description="number of the rack")]

    @property
    def where(self) -> str:
        return f"rack {self.rack}"

    def breaks(self, host: int, rack: int) -> bool:
        return rack == self.rack

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_in_rack(self.rack)


@FAULTS.register("crash_task")
class CrashTask(TaskFault):
    """State, queue, the tuple in service and everything else in the task's memory are gone until it is
    restarted.
    """

    omitted: ClassVar[frozenset[str]] = TaskFault.omitted | {"together"}

    together: Annotated[
        int,
        Field(ge=1, le=1024, description="so many tasks of the component die at once, from `task` on"),
    ] = 1

    def victims(self, target: Target) -> list[Any]:
        tasks = range(self.task, self.task + self.together)
        return [victim for task in tasks for victim in target.tasks_of(self.component, task, self.replica)]


@FAULTS.register("crash_worker")
class CrashWorker(Fault):
    """Every task in the worker crashes at once, the acker too if it lives there (in worker 0 of its host)."""

    host: Annotated[int, Field(ge=0, description="number of the host")]
    worker: Annotated[int, Field(ge=0, description="number of the worker on that host")] = 0

    @property
    def where(self) -> str:
        return f"worker {self.worker} of host {self.host}"

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_in(self.host, self.worker)


@FAULTS.register("events")
class Events(Fault):
    """The failures of a CSV file: columns ``time`` and ``kind``, and keys of the kinds as needed.

    ``time,kind,component,host,restart`` on the first line, then ``75 s,crash_task,count,,4 s`` and so on; an
    empty cell gives nothing. A relative path starts from the scenario's folder.
    """

    expands: ClassVar[bool] = True

    file: Annotated[str, Field(description="CSV file with the columns time, kind, and keys of failures")]

    @field_validator("file")
    @classmethod
    def _readable(cls, file: str, info: ValidationInfo) -> str:
        path = str((info.context or {}).get("directory", Path()) / file)
        read_events(path)
        return path

    @property
    def where(self) -> str:
        return Path(self.file).name

    @property
    def inner(self) -> dict[str, Fault]:
        return {f"{self.where}:{line}": fault for line, fault in read_events(self.file)}

    def strikes(self, index: int, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        found = [(fault.at or 0, fault) for fault in self.inner.values()]
        yield from sorted(found, key=lambda strike: strike[0])


@lru_cache(maxsize=64)
def read_events(file: str) -> tuple[tuple[int, Fault], ...]:
    """Lines, and the failures that stand there; ValueError says which line and column is wrong."""
    path = Path(file)
    try:
        rows = list(csv.reader(read_text(path).splitlines()))
    except Unreadable as error:
        raise ValueError(f"cannot read {path.name!r}: it {error}; a CSV file is needed") from None
    except csv.Error as error:
        raise ValueError(f"{path.name}: is no CSV file: {error}") from None
    columns = [cell.strip() for cell in rows[0]] if rows else []
    if columns[:2] != ["time", "kind"]:
        raise ValueError(f"{path.name}:1: the first line must begin with time,kind")
    found = []
    for line, row in enumerate(rows[1:], 2):
        if row:
            cells = [cell.strip() for cell in row]
            if len(cells) > len(columns):
                raise ValueError(f"{path.name}:{line}: has {len(cells)} cells for {len(columns)} columns")
            given = {name: cell for name, cell in zip(columns, cells, strict=False) if cell}
            found.append((line, _fault(f"{path.name}:{line}", given)))
    if not found:
        raise ValueError(f"{path.name}: at least one row is needed")
    return tuple(found)


def _fault(place: str, given: dict[str, str]) -> Fault:
    kind = given.pop("kind", "")
    known = [name for name, part in FAULTS.items() if not part.expands]
    if kind not in known:
        raise ValueError(f"{place}: kind: {kind[:40]!r} is none of {', '.join(known)}")
    if "time" not in given:
        raise ValueError(f"{place}: time: is missing; {Fault.model_fields['at'].description}")
    values = {"at" if name == "time" else name: cell for name, cell in given.items()}
    try:
        return FAULTS[kind].model_validate(values, context={"border": True})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        first = min(found, key=lambda one: one["type"] != "extra_forbidden")  # else its own name is missing
        column = str(first["loc"][0]) if first["loc"] else ""
        where = f"{place}: {'time' if column == 'at' else column}" if column else place
        fields = FAULTS[kind].model_fields
        message = str(first.get("ctx", {}).get("error", first["msg"]))
        message = message[:1].lower() + message[1:]
        if first["type"] == "extra_forbidden":
            message = f"unknown column; known: {', '.join('time' if n == 'at' else n for n in fields)}"
        elif first["type"] == "missing":
            message = f"is missing; {fields[column].description}"
        raise ValueError(f"{where}: {message}") from None


@FAULTS.register("lose_state")
class LoseState(TaskFault):
    """Counts, held ids and acks not yet sent vanish; queue and process live on (Stableford's experiment).

    With a detection or restart time the task is down for so long, but keeps its queue.
    """

    process_lives: ClassVar[bool] = True

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.lose_state(victim, outage, keep=self.detection + self.restart == 0)


@FAULTS.register("lose_store")
class LoseStore(StoreFault):
    """All that strategies had in a store is gone, and what is being written there does not count; it serves
    on, empty, at once. Nobody notices before somebody reads: a task that is restored then begins with an
    empty state, and gets what came after the checkpoint that is gone.
    """

    @model_validator(mode="after")
    def _at_once(self) -> LoseStore:
        if self.detection or self.restart:
            raise ValueError("a failure of kind lose_store is not detected: leave out detection and restart")
        return self

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.empty_store(self.store)


LIFETIME = 200 * DAY
"""Ten failures a day in 2,000 machines."""
_BLOCK = 32
"""Draws of a host at a time."""


@FAULTS.register("machines_fail")
class MachinesFail(Fault):
    """Every host crashes after a ``lifetime`` of its own, and begins another when it is repaired.

    By default a machine fails once in 200 days on average: ten failures a day in 2,000 machines. Lives are
    exponential (a rate) or what else there is; ``crews`` repair one machine each, first come, first served.
    A machine is down for detection and restart, and for as long as it waits and is repaired.
    """

    expands: ClassVar[bool] = True

    lifetime: Annotated[
        Distribution, Field(description="from a repair, or the start, to the next failure of a host")
    ] = Exponential(mean=LIFETIME)
    repair: Annotated[Distribution, Field(description="how long the repair of a host takes")] = Constant(
        value=0
    )
    crews: Annotated[
        int | None, Field(ge=1, description="machines that are repaired at a time; default: any number")
    ] = None

    @model_validator(mode="after")
    def _lives(self) -> MachinesFail:
        if self.lifetime.mean_ns < MS:
            raise ValueError("a lifetime must be at least 1 ms on average")
        return self

    @property
    def where(self) -> str:
        return "machines"

    def strikes(self, index: int, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        def drawn(spread: Distribution, what: str, host: int) -> Iterator[int]:
            for first in itertools.count(0, _BLOCK):
                numbers = np.arange(first, first + _BLOCK, dtype=np.int64)
                bits = draws.bits(f"failures.{index}.{what}.{host}", Purpose.FAULT, numbers)
                yield from np.maximum(spread.sample(bits), 1).tolist()

        lives = [drawn(self.lifetime, "lifetime", host) for host in range(site.hosts)]
        none = self.repair.mean_ns == 0
        repairs = [
            itertools.repeat(0) if none else drawn(self.repair, "repair", h) for h in range(site.hosts)
        ]
        coming = [(next(life), host) for host, life in enumerate(lives)]
        heapq.heapify(coming)
        free = [0] * (self.crews or site.hosts)  # when each crew is
        fields = {name: getattr(self, name) for name in ("detection", "restart", "while_down")}
        while coming and coming[0][0] <= site.end:
            moment, host = heapq.heappop(coming)
            begun = max(moment, heapq.heappop(free))
            over = begun + next(repairs[host])
            heapq.heappush(free, over)
            yield moment, CrashHost(at=moment, host=host, repair=over - moment, **fields)
            heapq.heappush(coming, (over + next(lives[host]), host))


@FAULTS.register("partition")
class Partition(LinkFault):
    """For ``duration`` nothing passes between the two sides: ``messages`` wait, as TCP's do, or are lost, as
    Storm's workers drop what they cannot send (`Client` of its Netty transport).

    Both sides live on. If a detector listens on the other side, it does not hear the processes of these
    hosts, and takes them for dead after its timeout. Acks, checkpoints and requests are not held up. Bailis
    and Kingsbury: *The network is reliable*, CACM 57, 2014.
    """

    messages: Annotated[
        Literal["hold", "lose"],
        Field(description="what becomes of tuples on the way, and sent meanwhile; control messages wait"),
    ] = "hold"

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.cut(outage, self.between, self.messages == "lose")


@FAULTS.register("pause")
class Pause(PassingFault, TaskFault):
    """The task's process does nothing for ``duration``, and then goes on where it was: SIGSTOP and SIGCONT.

    It keeps all it has; what arrives meanwhile waits in its queue. Nobody notices, unless it is silent for
    longer than a detector's timeout: then it counts as dead, and another process takes its place. Under
    ``micro_batch`` it is the executor that is stopped.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.pause(victim, outage)


@FAULTS.register("slow_host")
class SlowHost(PassingFault):
    """Each core of the host works at ``factor`` of its speed for ``duration``; then all is as before.

    A neighbour on the same machine, a throttled processor, a failing disk. Nothing is lost, and nobody
    notices. Spouts keep their beat. If several hold at once, the slowest does. Under ``micro_batch`` tasks
    run in executors, and are not slower.
    """

    example: ClassVar[dict[str, Any]] = {"factor": 0.5}

    host: Annotated[int, Field(ge=0, description="number of the host")]
    factor: Annotated[float, Field(gt=0, lt=1, description="part of its speed that a core has, e.g. 0.5")]

    @property
    def where(self) -> str:
        return f"host {self.host}"

    def victims(self, target: Target) -> list[Any]:
        return target.tasks_on(self.host)

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.slow_down(self.host, outage, self.factor)


@FAULTS.register("slow_link")
class SlowLink(LinkFault):
    """Messages between the two sides take ``latency_factor`` times as long on the wire, and each card that
    they go through is busy with them for ``transfer_factor`` times as long.

    A congested switch, a detour, a cable that loses packets (H. Gunawi et al.: *Fail-slow at scale*, FAST
    2018, has them all). It holds for what comes to the wire, or to a card, within ``duration``; what is there
    goes on as it was, and nothing overtakes. Of several at once the greatest factor holds. Acks, heartbeats
    and requests take no time all the same.
    """

    example: ClassVar[dict[str, Any]] = {"latency_factor": 10.0}

    latency_factor: Annotated[
        float, Field(ge=1, le=1_000_000, description="how many times as long the latency is, e.g. 10")
    ] = 1.0
    transfer_factor: Annotated[
        float,
        Field(
            ge=1,
            le=1_000_000,
            description="how many times as long a message takes in a network card (nic), e.g. 10: a tenth of "
            "the bandwidth",
        ),
    ] = 1.0

    @model_validator(mode="after")
    def _is_slow(self) -> SlowLink:
        if max(self.latency_factor, self.transfer_factor) == 1:
            raise ValueError("nothing is slow: give latency_factor or transfer_factor, more than 1")
        return self

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.slow_links(outage, self.between, (self.latency_factor, self.transfer_factor))


@FAULTS.register("slow_store")
class SlowStore(StoreFault, PassingFault):
    """Requests that begin within ``duration`` take ``factor`` times as long; the one in service goes on as it
    was. Of several that hold at once the newest does.
    """

    factor: Annotated[float, Field(gt=1, le=1e6, description="how many times as long a request takes")] = 10.0

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.slow_store(victim, outage, self.factor)


@FAULTS.register("store_down")
class StoreDown(StoreFault, PassingFault):
    """For ``duration`` requests wait; one that was in service is made again, and begins anew. What has been
    written is kept.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.stop_store(victim, outage)

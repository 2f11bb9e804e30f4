"""The kinds of failures: crashes, the failures of a file, losses of memory, machines that fail all the time,
and what passes by itself.

Scenarios name them, `Supervisor` lets them strike. A new kind is a class here.
"""

from __future__ import annotations

import csv
import heapq
import itertools
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, field_validator, model_validator

from tideover.sim.distributions import Constant, Distribution, Exponential
from tideover.sim.draws import Draws, Purpose, uniform01
from tideover.sim.faults import (
    FAULTS,
    Draft,
    Fault,
    Found,
    HostFault,
    LinkFault,
    MachineFault,
    PassingFault,
    Site,
    StoreFault,
    Target,
    TaskFault,
)
from tideover.sim.registry import setting
from tideover.sim.text_files import Unreadable, read_text
from tideover.sim.units import DAY, MS, Duration, S, parse_duration


@FAULTS.register("crash_host")
class CrashHost(HostFault, MachineFault):
    """Every task on the host crashes at once, the acker too if it lives there."""


@FAULTS.register("cascade")
class Cascade(CrashHost):
    """A host crashes, and each of the ``others`` does too, with a ``probability``, some time within ``span``.

    Failures that come together: D. Ford et al., *Availability in globally distributed storage systems*, OSDI
    2010, section 4 (about 37 % of the failures of nodes were parts of bursts).
    """

    others: tuple[int, ...] | None = setting("hosts that may follow; default: all others")
    probability: float = setting("that one of them follows", 0.5, ge=0, le=1)
    span: Duration = setting("those that follow do so within this time", 0)

    def strikes(self, index: int | str, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
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

    def hits(self, rack: int, host: int, worker: int) -> bool:
        return rack == self.rack


@FAULTS.register("crash_task")
class CrashTask(TaskFault):
    """State, queue, the tuple in service and everything else in the task's memory are gone until it is
    restarted.
    """

    omitted: ClassVar[frozenset[str]] = TaskFault.omitted | {"together"}

    together: int = setting("so many tasks of the component die at once, from `task` on", 1, ge=1, le=1024)

    @property
    def numbers(self) -> range:
        return range(self.task, self.task + self.together)


@FAULTS.register("crash_worker")
class CrashWorker(HostFault):
    """Every task in the worker crashes at once, the acker too if it lives there (in worker 0 of its host)."""

    worker: int = setting("number of the worker on that host", 0, ge=0)

    @property
    def where(self) -> str:
        return f"worker {self.worker} of host {self.host}"

    def hits(self, rack: int, host: int, worker: int) -> bool:
        return (host, worker) == (self.host, self.worker)


@FAULTS.register("events")
class Events(Fault):
    """The failures of a CSV file: columns ``time`` and ``kind``, and keys of the kinds as needed.

    ``time,kind,component,host,restart`` on the first line, then ``75 s,crash_task,count,,4 s`` and so on; an
    empty cell gives nothing, several hosts have spaces between them. A row draws (``within``, what follows in
    a ``cascade``) by its line. A relative path starts from the scenario's folder.
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

    def strikes(self, index: int | str, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        found = [
            strike
            for line, fault in read_events(self.file)
            for strike in fault.strikes(f"{index}.{line}", draws, site)
        ]
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


_NO_COLUMNS = ("every", "in_interval", "turn", "parallelism")
"""Keys that the failures of a file do not have: each strikes at its time, and no cell has a table."""


def _fault(place: str, given: dict[str, str]) -> Fault:
    kind = given.pop("kind", "")
    known = [name for name, part in FAULTS.items() if not part.expands]
    if kind not in known:
        raise ValueError(f"{place}: kind: {kind[:40]!r} is none of {', '.join(known)}")
    if "time" not in given:
        raise ValueError(f"{place}: time: is missing; {Fault.model_fields['at'].description}")
    columns = [
        "time" if name == "at" else name for name in FAULTS[kind].model_fields if name not in _NO_COLUMNS
    ]
    known_columns = f"unknown column; known: {', '.join(columns)}"
    if no := given.keys() & {"at", *_NO_COLUMNS}:
        raise ValueError(f"{place}: {min(no)}: {known_columns}")
    values: dict[str, str | list[str]] = {
        "at" if name == "time" else name: cell.split() if name in ("hosts", "others") else cell
        for name, cell in given.items()
    }
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
            message = known_columns
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

    @classmethod
    def lasting(cls, detection: int, restart: int) -> dict[str, Any]:
        return {}

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.empty_store(self.store)

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        if draft.strategy is not None and not draft.strategy.store_may_lose:
            message = (
                f"lose_store does not go with {draft.strategy.kind}: what disks and standbys still have of a "
                "changelog that is gone is not simulated"
            )
            yield ("kind",), message


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

    lifetime: Distribution = setting(
        "from a repair, or the start, to the next failure of a host", Exponential(mean=LIFETIME)
    )
    repair: Distribution = setting("how long the repair of a host takes", Constant(value=0))
    crews: int | None = setting("machines that are repaired at a time; default: any number", ge=1)

    @model_validator(mode="after")
    def _lives(self) -> MachinesFail:
        if self.lifetime.mean_ns < MS:
            raise ValueError("a lifetime must be at least 1 ms on average")
        return self

    @property
    def where(self) -> str:
        return "machines"

    def strikes(self, index: int | str, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
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

    messages: Literal["hold", "lose"] = setting(
        "what becomes of tuples on the way, and sent meanwhile; control messages wait", "hold"
    )

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.cut(outage, self.between, self.messages == "lose")

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        if self.messages == "lose":
            if draft.strategy is not None and not draft.strategy.loses_messages:
                why = f"{draft.strategy.kind} counts on links that lose nothing"
                yield ("messages",), f"{why}: leave it out, and messages wait"
            elif draft.bounded:
                yield ("messages",), "does not go with bounded queues: this is not simulated"


@FAULTS.register("pause")
class Pause(PassingFault, TaskFault):
    """The task's process does nothing for ``duration``, and then goes on where it was: SIGSTOP and SIGCONT.

    It keeps all it has; what arrives meanwhile waits in its queue. Nobody notices, unless it is silent for
    longer than the timeout of ``heartbeats`` or of a ``consumer_group``: then it counts as dead, and another
    process, or another member, takes its place. Under ``micro_batch`` it is the executor that is stopped, and
    with a consumer group the member with all its tasks.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.pause(victim, outage)


class Stop(NamedTuple):
    """One of the stops of a planned restart: of a ``host``, or (None) of the whole job, ``down`` ns long."""

    host: int | None
    down: int


@FAULTS.register("planned_restart")
class PlannedRestart(Fault):
    """An operator stops the whole job, or one after the other what runs on some ``hosts``, and starts it
    again: a new version, a new kernel, a machine that is moved.

    Before anything goes down a strategy that can saves what is there by then (its rules say how); others
    lose what they lose in a crash, but for what ``drain`` lets them finish. Whoever stops it knows of it:
    nothing has to be detected, unless the `detector` has it otherwise.

    Apache Flink: ``stop`` with a savepoint (``StopWithSavepointTerminationManager``), Apache Spark: a query
    that is stopped between two batches, Apache Storm: ``rebalance -w`` (`drain`).
    """

    omitted: ClassVar[frozenset[str]] = Fault.omitted | {"hosts", "parallelism"}

    down: Distribution = setting(
        "how long what was stopped is down, drawn for each stop", Constant(value=30 * S)
    )
    hosts: tuple[int, ...] | None = setting(
        "hosts that are stopped one after the other; default: the whole job is", min_length=1
    )
    pause: Duration = setting("from when a host is back until the next one is stopped", 60 * S)
    drain: Duration = setting(
        "how long spouts are silent before anything goes down, so that what is under way is finished; not "
        "where a log is read",
        0,
    )
    parallelism: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict,
        description="of some bolts: how many tasks go on from the savepoint, each with the keys and the part "
        "of `state` that are its own then; up to `max_parallelism`",
    )
    _stops: tuple[Stop, ...] = PrivateAttr(())

    @field_validator("down", mode="before")
    @classmethod
    def _of_a_cell(cls, down: Any) -> Any:
        return Constant(value=parse_duration(down)) if isinstance(down, str) else down

    @model_validator(mode="after")
    def _is_known(self) -> PlannedRestart:
        if self.detection or self.restart:
            raise ValueError(
                "a planned_restart is known, and lasts for `down`: leave detection and restart out"
            )
        if self.hosts is not None and len(set(self.hosts)) < len(self.hosts):
            raise ValueError("hosts: each is stopped once; name it once")
        if self.hosts is not None and self.parallelism:
            raise ValueError("parallelism changes where the whole job is stopped: leave hosts out")
        return self

    @classmethod
    def lasting(cls, detection: int, restart: int) -> dict[str, Any]:
        return {"down": Constant(value=detection + restart)}

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Its stops, in their order: of one that strikes as drawn, else as long as they are on average."""
        mean = round(self.down.mean_ns)
        return self._stops or tuple(Stop(host, mean) for host in self.hosts or (None,))

    @property
    def where(self) -> str:
        return "job" if self.hosts is None else f"hosts {', '.join(map(str, self.hosts))}"

    @property
    def lasts(self) -> int:
        return sum(self.drain + stop.down for stop in self.stops) + self.pause * (len(self.stops) - 1)

    def hits(self, rack: int, host: int, worker: int) -> bool:
        return self.hosts is None or host in self.hosts

    def strikes(self, index: int | str, draws: Draws, site: Site) -> Iterator[tuple[int, Fault]]:
        hosts = self.hosts or (None,)
        for n, moment in enumerate(self.moments(index, draws, site.end, site.cycle)):
            numbers = np.arange(n * len(hosts), (n + 1) * len(hosts), dtype=np.int64)
            bits = draws.bits(f"failures.{index}.down", Purpose.FAULT, numbers)
            downs = np.maximum(self.down.sample(bits), 0).tolist()
            fault = self.model_copy()
            fault._stops = tuple(Stop(host, down) for host, down in zip(hosts, downs, strict=True))
            yield moment, fault

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        if self.drain and draft.strategy is not None and draft.strategy.needs.log:
            message = f"{draft.strategy.kind} reads a log, in which all that comes waits: leave it out"
            yield ("drain",), message
        if self.parallelism and draft.detector is not None and not draft.detector.rescales:
            message = f"does not go with detector: {draft.detector.kind}; leave it, or the detector, out"
            yield ("parallelism",), message
        for name, working in self.parallelism.items():
            if unknown := draft.unknown_component(name):
                yield ("parallelism", name), unknown
            elif (bolt := draft.topology.get(name)) and not hasattr(bolt, "max_parallelism"):
                yield ("parallelism", name), "is a spout, whose tasks are the partitions of a log, for good"
            elif any(getattr(draft.topology.get(up), "spout", None) for up in getattr(bolt, "from_", ())):
                message = "reads a spout, whose log has a partition for each of its tasks, for good"
                yield ("parallelism", name), message
            elif bolt and working > (bolt.max_parallelism or 0):
                yield ("parallelism", name), f"needs topology.{name}.max_parallelism, at least {working}"


@FAULTS.register("slow_host")
class SlowHost(HostFault, PassingFault):
    """Each core of the host works at ``factor`` of its speed for ``duration``; then all is as before.

    A neighbour on the same machine, a throttled processor, a failing disk. Nothing is lost, and nobody
    notices. Spouts keep their beat. If several hold at once, the slowest does. Under ``micro_batch``,
    ``batch_rerun`` and ``trident`` batches take their time as a whole, and it is not slower.
    """

    example: ClassVar[dict[str, Any]] = {"factor": 0.5}

    factor: Annotated[float, Field(gt=0, lt=1, description="part of its speed that a core has, e.g. 0.5")]

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

    latency_factor: float = setting("how many times as long the latency is, e.g. 10", 1.0, ge=1, le=1_000_000)
    transfer_factor: float = setting(
        "how many times as long a message takes in a network card (nic), e.g. 10: a tenth of the bandwidth",
        1.0,
        ge=1,
        le=1_000_000,
    )

    @model_validator(mode="after")
    def _is_slow(self) -> SlowLink:
        if max(self.latency_factor, self.transfer_factor) == 1:
            raise ValueError("nothing is slow: give latency_factor or transfer_factor, more than 1")
        return self

    def begin(self, target: Target, victims: list[Any], outage: Any) -> None:
        target.slow_links(outage, self.between, (self.latency_factor, self.transfer_factor))

    def problems(self, draft: Draft) -> Iterator[Found]:
        yield from super().problems(draft)
        cards = any(machine.nic is not None for machine in getattr(draft.hosts, "machines", {}).values())
        if self.transfer_factor > 1 and not cards:
            yield ("transfer_factor",), "has no effect: no machine has a network card (hosts.machines.….nic)"


@FAULTS.register("slow_store")
class SlowStore(StoreFault, PassingFault):
    """Requests that begin within ``duration`` take ``factor`` times as long; the one in service goes on as it
    was. Of several that hold at once the newest does.
    """

    factor: float = setting("how many times as long a request takes", 10.0, gt=1, le=1e6)

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.slow_store(victim, outage, self.factor)


@FAULTS.register("store_down")
class StoreDown(StoreFault, PassingFault):
    """For ``duration`` requests wait; one that was in service is made again, and begins anew. What has been
    written is kept.
    """

    def strike(self, target: Target, victim: Any, outage: Any) -> None:
        target.stop_store(victim, outage)

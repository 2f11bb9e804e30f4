"""What a job consists of, as a scenario says it: components, their queues, links, machines. Durations are
integer nanoseconds, sizes integer bytes, rates tuples per second: units are parsed at the border.

Bounded queues: how many messages wait before a task, and what their senders do when there is no room.

The rules, where a queue has a bound (tests/models/test_bounded_queues.py, test_full_queues.py,
test_bounded_queues.py; on cards and cores test_queues_on_hosts.py):

- A bolt task's receive queue has `length` places for tuples that wait. With `block` a tuple takes a place
  when it leaves its sender, and gives it back when its service first begins, or when it is lost. With
  `drop` an arrival that finds no place is lost, which makes its root's timeout neither false nor due to a
  fault.
- With `credits` each channel has `length` places at the receiver; the sender knows of one that is given
  back the mean latency of their link later, ahead of what leaves it then.
- What a task makes goes through its *line*, in the order in which it was made. A message leaves when its
  parent has departed, the one ahead has left, and there is room; the head of the line blocks all behind it.
  State, acks and counts change at the departure, blocked or not. Control messages stand in the line in
  their order and take no place.
- A task whose line has more than `send` tuples is *blocked*: it begins no service, no control marker has
  its turn, a spout is not called and sends no end markers; it uses no core.
- Places go to the first messages of lines by (moment of asking, sender). Within an instant tasks act in
  physical order, again and again, until nothing moves.
- A crash destroys the line; nothing leaves a task that is down or stopped; a lost state leaves it.
- Between hosts with cards a message comes to the card when it leaves the line, with its place. That a place
  is free is told over no card.
- What waits in a log takes no place. What is set aside keeps its place until its service begins; what is
  put back into a queue, or copied from another, takes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tideover.models.job.arrivals import Arrivals
from tideover.models.job.groupings import Grouping
from tideover.models.job.spouts import Source, Spout
from tideover.models.job.stores import Backend
from tideover.models.operators.base import Bolt
from tideover.sim.distributions import Constant, Distribution
from tideover.sim.registry import Part
from tideover.sim.units import MAX_RUN, Bandwidth, Duration, Rate, S, Size, parse_time_of_day

WhenFull = Literal["block", "drop", "credits"]


class QueueSettings(Part):
    """The receive queue of a component's tasks, and the send queue of those tasks.

    block    a message takes a place when it leaves its sender, which waits until there is one
    drop     a message that finds the queue full is lost
    credits  as block, but ``length`` places for each channel, and the sender learns of a free one a link's
             latency later (Flink)

    What waits in a log takes no place: a task that reads one has it behind its own queue.
    """

    length: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="messages that may wait before a task; default: any number"),
    ] = None
    when_full: Annotated[
        WhenFull | None, Field(description="what its senders do when it is full; default: block")
    ] = None
    send: Annotated[
        int | None,
        Field(
            ge=0, le=10**9, description="messages that a task may have to send and still go on; default: 0"
        ),
    ] = None


@dataclass(frozen=True)
class Bounds:
    """What holds for the tasks of a component; ``length`` None: any number may wait."""

    length: int | None
    when_full: WhenFull
    send: int

    @property
    def holds_back(self) -> bool:
        return self.length is not None and self.when_full != "drop"


Cores = Annotated[
    int | None, Field(ge=1, le=1024, description="cores that its tasks share; default: one for each task")
]
Nic = Annotated[
    Bandwidth | None, Field(description="bandwidth of its network card, in and out each; default: no limit")
]
Slots = Annotated[
    int | None, Field(ge=1, le=1_000_000, description="most tasks that it takes; default: no limit")
]


class MachineType(Part):
    """A sort of machine, and how many there are of it. What is left out has no limit."""

    count: Annotated[int, Field(ge=1, le=100_000, description="how many there are")]
    cores: Cores = None
    nic: Nic = None
    slots: Slots = None
    price: Annotated[
        float | None,
        Field(ge=0, le=1e9, allow_inf_nan=False, description="of one for an hour, in any currency"),
    ] = None


class Host(NamedTuple):
    """One machine. None: no limit, or (type, price) nothing known.

    number   from 0, in the order of the types
    rack     number of its rack, from 0
    cores    that its tasks share
    nic      bandwidth of its card, in and out each (bytes/s)
    slots    most tasks that it takes
    price    per hour
    reserve  it takes no task until another host has failed
    """

    number: int
    type: str | None = None
    rack: int = 0
    cores: int | None = None
    nic: int | None = None
    slots: int | None = None
    price: float | None = None
    reserve: bool = False


def bounds_of(
    topology: Mapping[str, SpoutConfig | BoltConfig], default: QueueSettings | None
) -> dict[str, Bounds]:
    """Bounds by component: what it does not say itself is said by ``default``."""
    found, other = {}, default or QueueSettings()
    for name, config in topology.items():
        own = config.queue or QueueSettings()
        length = other.length if own.length is None else own.length
        send = other.send if own.send is None else own.send
        found[name] = Bounds(length, own.when_full or other.when_full or "block", send or 0)
    return found


Parallelism = Annotated[int, Field(ge=1, le=1024, description="number of tasks")]
TupleSize = Annotated[Size, Field(description="size of a tuple that is emitted")]
OwnHosts = Annotated[tuple[int, ...] | None, Field(description="host of each task; default: round robin")]

MOST_LUMP = 1_000_000
PEAK, DRAWN = "peak", "drawn"
"""What ``run.fails_at`` may be besides a time of day."""


class SpoutConfig(Part):
    """A component that emits roots."""

    omitted: ClassVar[frozenset[str]] = frozenset({"event_delay", "queue", "source"})

    spout: Annotated[Spout, Field(description="what is emitted")]
    arrivals: Annotated[
        Arrivals, Field(description="when the spout is called; short: rate, or pause and emit_cost")
    ]
    parallelism: Parallelism = 1
    tuple_size: TupleSize = 256
    hosts: OwnHosts = None
    queue: Annotated[
        QueueSettings | None,
        Field(description="only send: how much its tasks may have to send; default: as in queues"),
    ] = None
    source: Annotated[
        Source | None,
        Field(
            description="queue that it reads: arrivals are then those of each partition; default: it makes "
            "what it emits"
        ),
    ] = None
    event_delay: Annotated[
        Distribution,
        Field(
            description="how long before its first emission (or its way into the queue) the event of a tuple "
            "took place, for windows by event; default: 0 s"
        ),
    ] = Constant(value=0)

    @property
    def processes(self) -> int:
        """How many arrival processes there are: one for each task, or for each partition."""
        partitions = None if self.source is None else self.source.partitions
        return self.parallelism if partitions is None else partitions

    @property
    def most_tasks(self) -> int:
        """How many tasks there are."""
        return self.parallelism


class BoltConfig(Part):
    """A component that consumes streams: what it does, from where, and how long a tuple takes."""

    omitted: ClassVar[frozenset[str]] = frozenset({"max_parallelism", "queue", "state"})

    bolt: Annotated[Bolt, Field(description="what is done to a tuple")]
    from_: Annotated[
        dict[str, Grouping], Field(description="what is read, and how it is spread over the tasks")
    ]
    service: Annotated[Distribution, Field(description="time that one tuple takes, e.g. 0.2 ms")]
    state: Annotated[
        Backend | None, Field(description="where its tasks keep state beside that of the bolt itself")
    ] = None
    parallelism: Parallelism = 1
    max_parallelism: Annotated[
        int | None,
        Field(
            ge=1,
            le=1024,
            description="tasks that there are after a planned_restart with `parallelism`, at most, and "
            "groups of keys that they get; default: parallelism, for good",
        ),
    ] = None
    tuple_size: TupleSize = 256
    hosts: OwnHosts = None
    queue: Annotated[
        QueueSettings | None,
        Field(description="how much may wait before its tasks, and to be sent; default: as in queues"),
    ] = None

    @property
    def keeps_state(self) -> bool:
        return self.bolt.ends is not None or self.state is not None

    @property
    def most_tasks(self) -> int:
        """How many tasks there are, those that do nothing as yet among them."""
        return self.max_parallelism or self.parallelism


class Links(Part):
    """Latency between hosts. A pair is written ``"0-1"`` and holds for both directions.

    ``latency``: between different hosts (a distribution with spread is jitter); ``local``: within one host.
    What a message between hosts costs besides stands in the other keys; its bytes go through the cards of
    both hosts, if their machines have a ``nic``.
    """

    omitted: ClassVar[frozenset[str]] = frozenset(
        {"header", "serialise", "serialise_cost", "deserialise", "deserialise_cost"}
    )
    per_tuple: ClassVar[frozenset[str]] = frozenset({"serialise", "deserialise"})

    latency: Annotated[
        Distribution, Field(description="between different hosts; spread is jitter; default: 0 s")
    ]
    local: Annotated[Distribution, Field(description="within one host; default: 0 s")]
    pairs: Annotated[
        dict[str, Distribution],
        Field(default_factory=dict, description='of single pairs of hosts, as in {"0-1": 5 ms}'),
    ]
    header: Annotated[Size, Field(description="bytes of a message between hosts besides its tuple")] = 0
    serialise: Annotated[
        Duration,
        Field(description="service that each message to another host takes of the bolt that sends it"),
    ] = 0
    serialise_cost: Annotated[Duration, Field(description="the same, for each of its bytes")] = 0
    deserialise: Annotated[
        Duration,
        Field(description="service that a tuple from another host takes on top, where it is received"),
    ] = 0
    deserialise_cost: Annotated[Duration, Field(description="the same, for each of its bytes")] = 0


class Store(Part):
    """The store for checkpoints: one request after the other, each ``latency`` plus bytes / ``bandwidth``
    (bytes/s).
    """

    latency: Annotated[Duration, Field(description="time of a request besides its bytes")] = 1_000_000
    bandwidth: Annotated[Bandwidth, Field(description="bytes per second, read or written")] = 100 * 2**20


class Run(Part):
    """How long, how often, with which luck."""

    omitted: ClassVar[frozenset[str]] = frozenset({"calm", "fails_at", "starts_at"})

    duration: Annotated[Duration, Field(le=MAX_RUN, description="simulated time, e.g. 240 s")]
    warmup: Annotated[Duration, Field(description="time at the start that is not measured")] = 0
    seed: Annotated[
        int, Field(ge=0, lt=2**63, description="chooses the luck; equal seeds give equal results")
    ] = 1
    replications: Annotated[int, Field(ge=1, le=100_000, description="runs, each with its own luck")] = 1
    log_resolution: Annotated[
        Duration | None,
        Field(description="report recoveries as logs of this resolution show them; default: exact"),
    ] = None
    lag_window: Annotated[
        Duration | None,
        Field(
            gt=0,
            description="report catch-up as a metric shows it that holds the greatest backlog of this window "
            "and the one before (Kafka's records-lag-max: 30 s); default: exact",
        ),
    ] = None
    calm: Annotated[
        Duration | None,
        Field(
            ge=S,
            description="also report when each outage ended, and when the latency was normal again for this "
            "long",
        ),
    ] = None
    starts_at: Annotated[
        str | None,
        Field(
            description="time of day at which the run begins, as in 17:50, for arrivals of kind day; "
            "default: 00:00"
        ),
    ] = None
    fails_at: Annotated[
        str | None,
        Field(
            description="instead of starts_at: time of day of the first `at` in failures, as in 18:00; peak: "
            "when the load is greatest; drawn: anew in each replication, the same under every strategy"
        ),
    ] = None
    lump: Annotated[
        int, Field(ge=1, le=MOST_LUMP, description="real tuples that one simulated tuple stands for")
    ] = 1
    lump_rate: Annotated[
        Rate | None,
        Field(description="choose lump so that no spout component emits more simulated tuples than this"),
    ] = None

    @field_validator("starts_at", "fails_at")
    @classmethod
    def _of_a_day(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is not None and not (info.field_name == "fails_at" and text in (PEAK, DRAWN)):
            parse_time_of_day(text)
        return text

    @model_validator(mode="after")
    def _one_of_two(self) -> Run:
        if self.starts_at is not None and self.fails_at is not None:
            raise ValueError("give either starts_at (when the run begins) or fails_at (when something fails)")
        if self.lump > 1 and self.lump_rate is not None:
            raise ValueError("give either lump (a number) or lump_rate (which chooses it)")
        return self

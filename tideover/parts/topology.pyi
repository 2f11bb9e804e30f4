# Made by `python tests/parts_stubs.py`; change the classes instead.

from collections.abc import Mapping, Sequence
from typing import Literal

from tideover.models.job import arrivals, components, groupings, sources, spouts, stores
from tideover.models.job.arrivals import Arrivals
from tideover.models.job.groupings import Grouping
from tideover.models.job.sources import Source
from tideover.models.job.spouts import Spout
from tideover.models.job.stores import Backend
from tideover.models.operators import kinds
from tideover.models.operators import window as windows
from tideover.models.operators.base import Bolt
from tideover.parts.typed import Duration, Percent, Rate, Size
from tideover.sim.distributions import Distribution

class Kafka(sources.Kafka):
    """Records stay in the log when they are read; a spout that comes back goes on from its committed offset.

    J. Kreps, N. Narkhede, J. Rao, *Kafka: a Distributed Messaging System for Log Processing*, NetDB 2011.

    partitions: how many; task p mod parallelism reads p; default: one a task
    poll_cost: time that the spout takes to read a record
    retention: age from which records are deleted; default: they are kept
    commit_interval: distance of the moments at which a spout commits its offset
    """

    def __init__(
        self,
        *,
        partitions: int | None = None,
        poll_cost: Duration = "10 us",
        retention: Duration | None = None,
        commit_interval: Duration = "5 s",
    ) -> None: ...

class Kestrel(sources.Kestrel):
    """An item that was read is gone when its root is done (without acks: when it is emitted); if that takes
    longer than ``timeout``, it is given out again, be the spout alive or not.

    Twitter's Kestrel with its reliable reads (open, confirm, abort), and Storm's spout for it
    (``KestrelThriftSpout``: ``auto_abort_msec``); E-Storm's study has it before its topologies, with 30 s (X.
    Liu et al., *E-Storm: Replication-based State Management in Distributed Stream Processing Systems*, ICPP
    2017).

    partitions: how many; task p mod parallelism reads p; default: one a task
    poll_cost: time that the spout takes to read a record
    retention: age from which records are deleted; default: they are kept
    timeout: time from which on an item that is not done is given out again
    sweep_interval: distance of the moments at which such items are looked for
    """

    def __init__(
        self,
        *,
        partitions: int | None = None,
        poll_cost: Duration = "10 us",
        retention: Duration | None = None,
        timeout: Duration = "30 s",
        sweep_interval: Duration = "1 s",
    ) -> None: ...

class QueueSettings(components.QueueSettings):
    """The receive queue of a component's tasks, and the send queue of those tasks.

    block    a message takes a place when it leaves its sender, which waits until there is one
    drop     a message that finds the queue full is lost
    credits  as block, but ``length`` places for each channel, and the sender learns of a free one a link's
             latency later (Flink)

    What waits in a log takes no place: a task that reads one has it behind its own queue.

    length: messages that may wait before a task; default: any number
    when_full: what its senders do when it is full; default: block
    send: messages that a task may have to send and still go on; default: 0
    """

    def __init__(
        self,
        *,
        length: int | None = None,
        when_full: Literal["block", "drop", "credits"] | None = None,
        send: int | None = None,
    ) -> None: ...

class Memory(stores.Memory):
    """A map in the task's memory; an access costs next to nothing.

    entries: entries of the state of one task
    entry_size: bytes of an entry, in a store or on its way
    accesses: entries that each tuple looks up and changes
    access_cost: time that one access takes the task
    """

    def __init__(
        self,
        *,
        entries: int = 1024,
        entry_size: Size = "64 B",
        accesses: int = 1,
        access_cost: Duration = "0 s",
    ) -> None: ...

class RocksDB(stores.RocksDB):
    """An embedded store on the task's host, as Flink's: each access serialises the entry, and may read a
    file.

    entries: entries of the state of one task
    entry_size: bytes of an entry, in a store or on its way
    accesses: entries that each tuple looks up and changes
    access_cost: time that one access takes the task
    incremental: a snapshot writes only the entries that have changed since the last one
    """

    def __init__(
        self,
        *,
        entries: int = 1024,
        entry_size: Size = "64 B",
        accesses: int = 1,
        access_cost: Duration = "5 us",
        incremental: bool = False,
    ) -> None: ...

class BoltConfig(components.BoltConfig):
    """A component that consumes streams: what it does, from where, and how long a tuple takes.

    bolt: what is done to a tuple
    from_: what is read, and how it is spread over the tasks
    service: time that one tuple takes, e.g. 0.2 ms
    state: where its tasks keep state beside that of the bolt itself
    parallelism: number of tasks
    tuple_size: size of a tuple that is emitted
    hosts: host of each task; default: round robin
    queue: how much may wait before its tasks, and to be sent; default: as in queues
    """

    def __init__(
        self,
        *,
        bolt: Bolt,
        from_: Mapping[str, Grouping | str],
        service: Distribution | Duration,
        state: Backend | None = None,
        parallelism: int = 1,
        tuple_size: Size = "256 B",
        hosts: Sequence[int] | None = None,
        queue: QueueSettings | Duration | None = None,
    ) -> None: ...

class SpoutConfig(components.SpoutConfig):
    """A component that emits roots.

    spout: what is emitted
    arrivals: when the spout is called; short: rate, or pause and emit_cost
    parallelism: number of tasks
    tuple_size: size of a tuple that is emitted
    hosts: host of each task; default: round robin
    queue: only send: how much its tasks may have to send; default: as in queues
    source: queue that it reads: arrivals are then those of each partition; default: it makes what it emits
    event_delay: how long before its first emission (or its way into the queue) the event of a tuple took
        place, for windows by event; default: 0 s
    """

    def __init__(
        self,
        *,
        spout: Spout,
        arrivals: Arrivals,
        parallelism: int = 1,
        tuple_size: Size = "256 B",
        hosts: Sequence[int] | None = None,
        queue: QueueSettings | Duration | None = None,
        source: Source | None = None,
        event_delay: Distribution | Duration = "constant",
    ) -> None: ...

class Keys(spouts.Keys):
    """One of ``keys`` keys; the i-th most frequent has a weight of i ** -``exponent`` (0: all alike).

    keys: number of different keys
    exponent: exponent of Zipf's law; 0: uniform
    order: drawn, or one key after the other: then tasks are loaded alike
    """

    def __init__(
        self,
        *,
        keys: int = 1,
        exponent: float = 0.0,
        order: Literal["random", "in_turn"] = "random",
    ) -> None: ...

class Sentences(spouts.Sentences):
    """One of Stableford's five sentences, drawn uniformly (`tideover.models.operators.kinds`)."""

    def __init__(self) -> None: ...

class Values(spouts.Values):
    """The numbers of ``values`` in order, all under one key; ``repeat`` starts again at the end.

    values: the numbers, in the order of emission
    repeat: start again at the end of the list
    stamps: when the event of each took place, for windows by event, as in [3 s, 5 s]; default: by event_delay
    """

    def __init__(
        self,
        *,
        values: Sequence[int],
        repeat: bool = False,
        stamps: Sequence[Duration] | None = None,
    ) -> None: ...

class Burst(arrivals.Burst):
    """``rate``, but ``peak`` for the last ``length`` of every ``every``.

    rate: rate between the bursts
    peak: rate in a burst
    length: length of a burst
    every: distance of two bursts
    """

    def __init__(self, *, rate: Rate, peak: Rate, length: Duration, every: Duration = "60 s") -> None: ...

class Day(arrivals.Day):
    """A rate by time of day, the same every day: ``by_hour`` with ``peak``, or a CSV ``file``.

    Value h is the rate at h o'clock; between two values it goes in a straight line, from the last one of a
    day to the first of the next, too; with ``interpolation: steps`` a value holds until the next one. The
    greatest value is ``peak``, before any growth: ``months`` of ``growth``, compounded. A file has the
    columns ``hour`` (0 to 23, all of them) or ``time`` (HH:MM, rising), and ``rate_per_s``; its path starts
    from the scenario's folder. ``run.starts_at`` or ``run.fails_at`` say at which time of day a run begins;
    without them it is midnight.

    by_hour: 24 numbers, the rates at 0 to 23 o'clock in proportion to one another
    file: CSV file with the columns hour (0 to 23) or time (HH:MM), and rate_per_s
    peak: rate of each task, or partition, where the curve is highest; default: the file's
    interpolation: a straight line from one value to the next, or steps
    growth: by how much every rate grows in a month
    months: how many months of growth have passed
    scale: every rate is multiplied by it
    """

    def __init__(
        self,
        *,
        by_hour: Sequence[float] | None = None,
        file: str | None = None,
        peak: Rate | None = None,
        interpolation: Literal["linear", "steps"] = "linear",
        growth: Percent = "0 %",
        months: float = 0.0,
        scale: float = 1.0,
    ) -> None: ...

class Periodic(arrivals.Periodic):
    """Calls at a constant distance: 1 / ``rate``, or ``pause`` + ``emit_cost``.

    Stableford's spout sleeps 10 ms and then emits, which costs 0.53 ms: about 95 tuples/s.

    rate: calls per time, e.g. 10/s
    pause: sleep before each call; instead of rate
    emit_cost: time that a call takes, added to pause
    fixed_offset: start of the calls; default: drawn within one period, per replication
    """

    def __init__(
        self,
        *,
        rate: Rate | None = None,
        pause: Duration | None = None,
        emit_cost: Duration = "0 s",
        fixed_offset: Duration | None = None,
    ) -> None: ...

class Poisson(arrivals.Poisson):
    """Independent exponential gaps with mean 1 / ``rate``, keyed by the call's number.

    rate: calls per time on average, e.g. 100/s
    """

    def __init__(self, *, rate: Rate) -> None: ...

class Ramp(arrivals.Ramp):
    """``start`` until ``begin``, then in a straight line to ``end`` over ``over``, and ``end`` from then on.

    start: rate before the ramp
    end: rate after the ramp
    begin: when the ramp begins
    over: how long the ramp takes
    """

    def __init__(
        self,
        *,
        start: Rate,
        end: Rate,
        begin: Duration = "0 s",
        over: Duration = "60 s",
    ) -> None: ...

class Saturating(arrivals.Saturating):
    """A call whenever the spout may make one: ``emit_cost`` after the last, or after what held it back.

    Something has to hold it back: bounded queues, or a cap on what is pending.

    emit_cost: time that a call takes
    """

    def __init__(self, *, emit_cost: Duration) -> None: ...

class TraceOfRates(arrivals.TraceOfRates):
    """Rates from a CSV file with the columns ``time_s`` (rising, the first 0) and ``rate_per_s`` (>= 0).

    Each rate holds from its time to the next; the last one for ever, unless ``repeat`` is the distance in
    seconds at which all of it begins again. In a scenario a relative path starts from the scenario's folder.

    file: CSV file with the columns time_s, rate_per_s
    repeat: seconds after which the trace begins again
    scale: every rate of the trace is multiplied by it
    """

    def __init__(self, *, file: str, repeat: float | None = None, scale: float = 1.0) -> None: ...

class Distinct(kinds.Distinct):
    """At the end of a window emits each key that has come in it, once, in order, with value 1, and clears.

    window: the window: 30 s, or {length, trigger}, or {tuples}; {length, slide}
    """

    def __init__(self, *, window: windows.Window | Duration) -> None: ...

class Filter(kinds.Filter):
    """Each tuple is handed on with probability ``keep``, always the same for the same tuple.

    keep: probability that a tuple is handed on
    """

    def __init__(self, *, keep: float) -> None: ...

class Forward(kinds.Forward):
    """One tuple in, the same out: a queue with a service time."""

    def __init__(self) -> None: ...

class Generic(kinds.Generic):
    """Each tuple makes ``selectivity`` tuples on average: the whole part always, one more with the rest as
    probability.

    selectivity: tuples out per tuple in, on average
    """

    def __init__(self, *, selectivity: float = 1.0) -> None: ...

class RunningCount(kinds.RunningCount):
    """Adds up the tuples' values by key from the beginning; at the end of each window emits all sums as they
    are by then, in order of key, and goes on with them.

    window: the window: 30 s, or {length, trigger}, or {tuples}; {length, slide}
    """

    def __init__(self, *, window: windows.Window | Duration) -> None: ...

class SplitWords(kinds.SplitWords):
    """A tuple for each word of the sentence, in order."""

    def __init__(self) -> None: ...

class Window(windows.Window):
    """A tumbling window: ``length`` of time, ended by a tick or by a marker that the spouts send; or a
    number of ``tuples``. With ``slide`` (or ``slide_tuples``) one ends each slide, and a tuple is in all that
    overlap it; it leaves, and is acked, with the first window that ends without it.

    ``by`` event, tuples fall into windows by when their events took place. Each ``watermark_interval`` the
    task looks how far events have come: the watermark is the newest event of each input less ``lag``, the
    least of all. Windows that end at or before it are put out; a tuple that comes with an event at or before
    it is late (Storm's ``WaterMarkEventGenerator``; Akidau et al., *The dataflow model*, VLDB 2015, 2.3).

    With ``gap`` windows are sessions: of a key, all that comes (``by`` event: all events of it) with at most
    so much between one and the next. By arrival the task looks each ``watermark_interval``, or each ``gap``
    if that is shorter, which have ended (Flink's ``ProcessingTimeSessionWindows``, whose timers do not wait
    for a look).

    length: length in time, e.g. 30 s
    tuples: length in tuples
    gap: sessions instead: a key's ends when nothing of it comes (by event: when no event of it follows) for
        so long
    slide: a window of this length ends each slide, e.g. 10 s; default: one after the other
    slide_tuples: the same of a window of tuples, as a number of them
    trigger: what ends a window of time: the task's clock, or the spouts' marker
    by: what puts a tuple into a window of time: when it comes, or when its event took place
    lag: by event: how much later than newer ones an event may come
    watermark_interval: by event, and of sessions: how often the task looks how far events have come, or which
        sessions have ended
    late: by event: what becomes of a late tuple: nothing, or it leaves on a stream of its own
    idle_after: by event: an input that has been silent for so long holds windows back no more; default: it
        does
    saved: what checkpoints have of it: all that it holds, or only which tuples have left it, and which it has
        put out (Storm's stateful windows without persistence)
    """

    def __init__(
        self,
        *,
        length: Duration | None = None,
        tuples: int | None = None,
        gap: Duration | None = None,
        slide: Duration | None = None,
        slide_tuples: int | None = None,
        trigger: Literal["tick", "marker"] = "tick",
        by: Literal["arrival", "event"] = "arrival",
        lag: Duration = "0 s",
        watermark_interval: Duration = "1 s",
        late: Literal["drop", "aside"] = "drop",
        idle_after: Duration | None = None,
        saved: Literal["contents", "ids"] = "contents",
    ) -> None: ...

class WindowedCount(kinds.WindowedCount):
    """Adds up the tuples' values by key; at the end of a window emits all sums, in order of key, and clears.

    window: the window: 30 s, or {length, trigger}, or {tuples}; {length, slide}
    """

    def __init__(self, *, window: windows.Window | Duration) -> None: ...

class WindowedJoin(kinds.WindowedJoin):
    """Joins the two streams that it reads by key: at the end of a window emits each key that both have in it,
    in order, with the number of pairs (of tuples with values: the sum of the products), and clears.

    One tuple stands for all pairs of its key.

    window: the window: 30 s, or {length, trigger}, or {tuples}; {length, slide}
    """

    def __init__(self, *, window: windows.Window | Duration) -> None: ...

class Direct(groupings.Direct):
    """The emitter names the task: here the key is read as its number (modulo the number of tasks)."""

    def __init__(self) -> None: ...

class All(groupings.All):
    """A copy to each task; each copy is a tuple of its own in the tree."""

    def __init__(self) -> None: ...

class Fields(groupings.Fields):
    """The key's number modulo the number of tasks: tuples with equal fields meet in one task.

    fields: fields that make the key, e.g. [word]
    """

    def __init__(self, *, fields: Sequence[str]) -> None: ...

class Shuffle(groupings.Shuffle):
    """A task drawn uniformly for each tuple."""

    def __init__(self) -> None: ...

class Global(groupings.Global):
    """Everything to the task with the lowest number."""

    def __init__(self) -> None: ...

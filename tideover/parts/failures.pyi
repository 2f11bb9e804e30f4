# Made by `python tests/parts_stubs.py`; change the classes instead.

from collections.abc import Sequence
from typing import Literal

from tideover.parts.typed import Duration
from tideover.sim import faults
from tideover.sim.distributions import Distribution

class Cascade(faults.Cascade):
    """A host crashes, and each of the ``others`` does too, with a ``probability``, some time within ``span``.

    Failures that come together: D. Ford et al., *Availability in globally distributed storage systems*, OSDI
    2010, section 4 (about 37 % of the failures of nodes were parts of bursts).

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    repair: how long nothing can be launched there; default: it is up again at once
    host: number of the host
    others: hosts that may follow; default: all others
    probability: that one of them follows
    span: those that follow do so within this time
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        repair: Duration | None = None,
        host: int,
        others: Sequence[int] | None = None,
        probability: float = 0.5,
        span: Duration = "0 s",
    ) -> None: ...

class CrashHost(faults.CrashHost):
    """Every task on the host crashes at once, the acker too if it lives there.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    repair: how long nothing can be launched there; default: it is up again at once
    host: number of the host
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        repair: Duration | None = None,
        host: int,
    ) -> None: ...

class CrashRack(faults.CrashRack):
    """Every host of the rack crashes at once: its switch or its power is gone.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    repair: how long nothing can be launched there; default: it is up again at once
    rack: number of the rack
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        repair: Duration | None = None,
        rack: int,
    ) -> None: ...

class CrashTask(faults.CrashTask):
    """State, queue, the tuple in service and everything else in the task's memory are gone until it is
    restarted.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    component: component that is hit; acker: the acker; driver: that of batches; coordinator: that of Trident
    task: which of the component's tasks
    replica: which replica of it (active replication)
    together: so many tasks of the component die at once, from `task` on
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        component: str,
        task: int = 0,
        replica: int = 0,
        together: int = 1,
    ) -> None: ...

class CrashWorker(faults.CrashWorker):
    """Every task in the worker crashes at once, the acker too if it lives there (in worker 0 of its host).

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    host: number of the host
    worker: number of the worker on that host
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        host: int,
        worker: int = 0,
    ) -> None: ...

class Events(faults.Events):
    """The failures of a CSV file: columns ``time`` and ``kind``, and keys of the kinds as needed.

    ``time,kind,component,host,restart`` on the first line, then ``75 s,crash_task,count,,4 s`` and so on; an
    empty cell gives nothing. A relative path starts from the scenario's folder.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    file: CSV file with the columns time, kind, and keys of failures
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        file: str,
    ) -> None: ...

class LoseState(faults.LoseState):
    """Counts, held ids and acks not yet sent vanish; queue and process live on (Stableford's experiment).

    With a detection or restart time the task is down for so long, but keeps its queue.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    component: component that is hit; acker: the acker; driver: that of batches; coordinator: that of Trident
    task: which of the component's tasks
    replica: which replica of it (active replication)
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        component: str,
        task: int = 0,
        replica: int = 0,
    ) -> None: ...

class LoseStore(faults.LoseStore):
    """All that strategies had in a store is gone, and what is being written there does not count; it serves
    on, empty, at once. Nobody notices before somebody reads: a task that is restored then begins with an
    empty state, and gets what came after the checkpoint that is gone.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    store: which of `stores`; if not given: the scenario's `store`
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        store: str | None = None,
    ) -> None: ...

class MachinesFail(faults.MachinesFail):
    """Every host crashes after a ``lifetime`` of its own, and begins another when it is repaired.

    By default a machine fails once in 200 days on average: ten failures a day in 2,000 machines. Lives are
    exponential (a rate) or what else there is; ``crews`` repair one machine each, first come, first served.
    A machine is down for detection and restart, and for as long as it waits and is repaired.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    lifetime: from a repair, or the start, to the next failure of a host
    repair: how long the repair of a host takes
    crews: machines that are repaired at a time; default: any number
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        lifetime: Distribution | Duration = "exponential",
        repair: Distribution | Duration = "constant",
        crews: int | None = None,
    ) -> None: ...

class Partition(faults.Partition):
    """For ``duration`` nothing passes between the two sides: ``messages`` wait, as TCP's do, or are lost, as
    Storm's workers drop what they cannot send (`Client` of its Netty transport).

    Both sides live on. If a detector listens on the other side, it does not hear the processes of these
    hosts, and takes them for dead after its timeout. Acks, checkpoints and requests are not held up. Bailis
    and Kingsbury: *The network is reliable*, CACM 57, 2014.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    duration: how long it lasts, e.g. 30 s
    hosts: numbers of the hosts on one side
    others: those on the other side; default: all that are not in hosts
    messages: what becomes of tuples on the way, and sent meanwhile; control messages wait
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        duration: Duration,
        hosts: Sequence[int],
        others: Sequence[int] | None = None,
        messages: Literal["hold", "lose"] = "hold",
    ) -> None: ...

class Pause(faults.Pause):
    """The task's process does nothing for ``duration``, and then goes on where it was: SIGSTOP and SIGCONT.

    It keeps all it has; what arrives meanwhile waits in its queue. Nobody notices, unless it is silent for
    longer than a detector's timeout: then it counts as dead, and another process takes its place. Under
    ``micro_batch`` it is the executor that is stopped.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    component: component that is hit; acker: the acker; driver: that of batches; coordinator: that of Trident
    task: which of the component's tasks
    replica: which replica of it (active replication)
    duration: how long it lasts, e.g. 30 s
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        component: str,
        task: int = 0,
        replica: int = 0,
        duration: Duration,
    ) -> None: ...

class SlowHost(faults.SlowHost):
    """Each core of the host works at ``factor`` of its speed for ``duration``; then all is as before.

    A neighbour on the same machine, a throttled processor, a failing disk. Nothing is lost, and nobody
    notices. Spouts keep their beat. If several hold at once, the slowest does. Under ``micro_batch`` tasks
    run in executors, and are not slower.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    duration: how long it lasts, e.g. 30 s
    host: number of the host
    factor: part of its speed that a core has, e.g. 0.5
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        duration: Duration,
        host: int,
        factor: float,
    ) -> None: ...

class SlowLink(faults.SlowLink):
    """Messages between the two sides take ``latency_factor`` times as long on the wire, and each card that
    they go through is busy with them for ``transfer_factor`` times as long.

    A congested switch, a detour, a cable that loses packets (H. Gunawi et al.: *Fail-slow at scale*, FAST
    2018, has them all). It holds for what comes to the wire, or to a card, within ``duration``; what is there
    goes on as it was, and nothing overtakes. Of several at once the greatest factor holds. Acks, heartbeats
    and requests take no time all the same.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    duration: how long it lasts, e.g. 30 s
    hosts: numbers of the hosts on one side
    others: those on the other side; default: all that are not in hosts
    latency_factor: how many times as long the latency is, e.g. 10
    transfer_factor: how many times as long a message takes in a network card (nic), e.g. 10: a tenth of the
        bandwidth
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        duration: Duration,
        hosts: Sequence[int],
        others: Sequence[int] | None = None,
        latency_factor: float = 1.0,
        transfer_factor: float = 1.0,
    ) -> None: ...

class SlowStore(faults.SlowStore):
    """Requests that begin within ``duration`` take ``factor`` times as long; the one in service goes on as it
    was. Of several that hold at once the newest does.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    duration: how long it lasts, e.g. 30 s
    store: which of `stores`; if not given: the scenario's `store`
    factor: how many times as long a request takes
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        duration: Duration,
        store: str | None = None,
        factor: float = 10.0,
    ) -> None: ...

class StoreDown(faults.StoreDown):
    """For ``duration`` requests wait; one that was in service is made again, and begins anew. What has been
    written is kept.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    times: how often it strikes (flapping), from at on
    period: distance of these strikes; goes with times
    turn: when in its instant it strikes: before or after what a task does with a rank (docs/semantics.md), as
        `after checkpoint of count.1`, or all tasks; default: before all of them
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    duration: how long it lasts, e.g. 30 s
    store: which of `stores`; if not given: the scenario's `store`
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        times: int | None = None,
        period: Duration | None = None,
        turn: str | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        duration: Duration,
        store: str | None = None,
    ) -> None: ...

# Made by `python tests/parts_stubs.py`; change the classes instead.

from typing import Literal

from tideover.parts.typed import Duration
from tideover.sim.distributions.base import Distribution
from tideover.sim.faults import crash_host, crash_rack, crash_task, crash_worker, lose_state, pause, slow_host

class CrashHost(crash_host.CrashHost):
    """Every task on the host crashes at once, the acker too if it lives there.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    host: number of the host
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        host: int,
    ) -> None: ...

class CrashRack(crash_rack.CrashRack):
    """Every host of the rack crashes at once: its switch or its power is gone.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    rack: number of the rack
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        rack: int,
    ) -> None: ...

class CrashTask(crash_task.CrashTask):
    """State, queue, the tuple in service and everything else in the task's memory are gone until it is
    restarted.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    component: component that is hit; acker: the acker; driver: that of micro-batches
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
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        component: str,
        task: int = 0,
        replica: int = 0,
    ) -> None: ...

class CrashWorker(crash_worker.CrashWorker):
    """Every task in the worker crashes at once, the acker too if it lives there (in worker 0 of its host).

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
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
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        host: int,
        worker: int = 0,
    ) -> None: ...

class LoseState(lose_state.LoseState):
    """Counts, held ids and acks not yet sent vanish; queue and process live on (Stableford's experiment).

    With a detection or restart time the task is down for so long, but keeps its queue.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    component: component that is hit; acker: the acker; driver: that of micro-batches
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
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        component: str,
        task: int = 0,
        replica: int = 0,
    ) -> None: ...

class Pause(pause.Pause):
    """The task's process does nothing for ``duration``, and then goes on where it was: SIGSTOP and SIGCONT.

    It keeps all it has; what arrives meanwhile waits in its queue. Nobody notices. Under ``micro_batch`` it
    is the executor that is stopped.

    at: when it strikes, e.g. 75 s
    within: it strikes at a moment drawn from the span of this length after at, anew in each replication, the
        same under every strategy; 0 s: at that very moment
    in_interval: fraction of the strategy's interval (of checkpoints, say) after which it strikes, at the
        first such moment at or after at (with within: after the drawn one)
    every: pauses between strikes, drawn per replication
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    component: component that is hit; acker: the acker; driver: that of micro-batches
    task: which of the component's tasks
    replica: which replica of it (active replication)
    duration: for how long it is stopped, e.g. 5 s
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        component: str,
        task: int = 0,
        replica: int = 0,
        duration: Duration,
    ) -> None: ...

class SlowHost(slow_host.SlowHost):
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
    detection: from the fault until it is noticed
    restart: from then until the tasks are ready
    while_down: arrivals at a task that is down are lost, or wait with their sender
    host: number of the host
    factor: part of its speed that a core has, e.g. 0.5
    duration: for how long it is slow, e.g. 30 s
    """

    def __init__(
        self,
        *,
        at: Duration | None = None,
        within: Duration | None = None,
        in_interval: float | None = None,
        every: Distribution | Duration | None = None,
        detection: Duration = "0 s",
        restart: Duration = "0 s",
        while_down: Literal["drop", "hold"] = "drop",
        host: int,
        factor: float,
        duration: Duration,
    ) -> None: ...

"""The seam for strategies: what a strategy is told, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from tideover.models.saved_state import newest_window
from tideover.sim.registry import Part, Registry
from tideover.sim.train import Ints, Train

if TYPE_CHECKING:
    from tideover.models.advice.plan import Plan
    from tideover.models.machine import Machine
    from tideover.models.outage import Outage
    from tideover.models.stream import Sent
    from tideover.models.task import BoltTask, SpoutTask
    from tideover.models.topology import Component
    from tideover.models.windows import Held
    from tideover.models.world import World
    from tideover.sim.link import Channel

STRATEGIES: Registry[Strategy] = Registry("strategy")

Promise = Literal["at most once", "at least once", "exactly once"]
KeyPath = tuple[str | int, ...]
"""Where a value stands among a strategy's keys: ``("components", 0)``."""
NOTHING: Ints = np.zeros(0, np.int64)


class Work(NamedTuple):
    """What a strategy adds to the work of a component's tasks in normal operation.

    per_tuple  what one tuple takes on top of its service (ns)
    saving     the fraction of the time that goes to saving state
    """

    per_tuple: float = 0
    saving: float = 0


class Strategy(Part):
    """Parameters of a strategy, as a scenario names them, and all that others know of it.

    Subclasses register themselves with ``@STRATEGIES.register(name)`` and give ``protocol``, which makes the
    running protocol for one simulation. A strategy describes itself: what it promises and survives, the work
    that it adds (``load``), its ``remarks`` on a run that is planned, the copies, bolts and hosts that its
    keys speak of. Nobody else asks for its class or its keys.
    """

    kind: ClassVar[str]
    promise: ClassVar[Promise] = "at most once"
    survives: ClassVar[frozenset[str]] = frozenset()
    """Failure kinds after which the promise holds (of one task, with nothing else failing)."""

    disturbs: ClassVar[bool] = False
    """Whether windows can come out wrong without a failure (a false timeout, replicas that disagree)."""
    routed: ClassVar[bool] = False
    """Whether tuples carry the logical path by which they came."""
    acker_at: ClassVar[int | None] = None
    """Host of the acker, if there is one and it has a host."""
    event_time: ClassVar[bool] = False
    """Whether windows go by event time: markers in the data end them, whatever their trigger."""
    log_source: ClassVar[bool] = False
    """Whether a spout stands for producers and a durable log: what it sends waits there to be read."""
    fails_together: ClassVar[bool] = False
    """Whether a fault of one bolt task takes all of them (the job) down."""
    sends_again: ClassVar[bool] = False
    """Whether those who read a window are rolled back with it, so that it is sent to them again."""
    batched: ClassVar[bool] = False
    """Whether the protocol serves tuples in batches: it hands them to the tasks when they are done, keeps the
    tasks busy, and takes the faults of bolts upon itself; what passes between bolts takes no time on links.
    """

    roles: ClassVar[frozenset[str]] = frozenset()
    """What it has besides tasks that a failure can name as its component: acker, driver."""

    counts_tuples: ClassVar[tuple[str, ...]] = ()
    """Keys that count single tuples, where they are given: they do not go with lumps (``run.lump``)."""
    spouts_wait: ClassVar[tuple[str, ...]] = ()
    """Keys by which, where they are given, spouts wait as long as too much is under way."""
    gives_up: ClassVar[tuple[str, ...]] = ()
    """Durations after which a root that is not done is given up, and emitted again."""

    after_failures: ClassVar[frozenset[str]] = frozenset()
    """Parameters that make no difference as long as nothing fails; they have defaults."""
    costs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """What it does to state in normal operation, and the keys that say how long that takes."""
    recovery_costs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """The same after a failure."""

    def protocol(self, world: World) -> Protocol:
        """The strategy at work in ``world``."""
        raise NotImplementedError

    def undisturbed(self) -> Strategy:
        """What the failure-free twin runs: the costs of normal operation, without replicas, timeouts or
        recovery.
        """
        return STRATEGIES["none"]()

    def replicas(self, component: str) -> int:
        """Copies of each task of a bolt, the first included."""
        return 1

    @classmethod
    def most_replicas(cls, given: Mapping[str, Any]) -> int:
        """Most copies of any task, the first included, by the parameters that are given, as they are: some
        may be missing, or be none of those that are allowed.
        """
        return 1

    def named_bolts(self) -> dict[KeyPath, str]:
        """The bolts that the parameters name, by where they do."""
        return {}

    def named_hosts(self) -> dict[KeyPath, int]:
        """The hosts that the parameters name, by where they do."""
        return {}

    def given(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """Those of its keys that have a value (not None), and the value."""
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    def load(self, component: Component) -> Work:
        """What the strategy adds to the work of a bolt's tasks."""
        return Work()

    def remarks(self, plan: Plan) -> list[str]:
        """What an expert would remark on a run under this strategy before it: each one sentence, that begins
        with what it is about and a colon. `tideover.models.advice` has texts that strategies share.
        """
        return []

    def cycle(self) -> tuple[int, int] | None:
        """What recurs in normal operation (checkpoints, say): its first moment and its period, ns; None:
        nothing does.
        """
        return None


class Protocol:
    """A strategy at work. Everything here does nothing: what remains is amnesia.

    Hooks that control events call: ``start``, ``failed``, ``ready``, ``barrier``, ``acker_failed``,
    ``acker_ready``.
    Hooks that the data plane calls while it moves: ``emitted``, ``processed``, ``window_ended``, ``receive``,
    ``admit``, ``control_mark``, ``destroyed``; these may touch only their own task, what is downstream of it,
    and the protocol's records.

    A protocol reads the world, and acts by its verbs: ``task.enqueue`` (queue a marker), ``task.post`` (send
    later), ``task.occupy`` (keep busy), ``world.retry`` (emit roots again), ``world.restore_effects``,
    ``world.store.request``, ``kernel.every`` and ``kernel.at``. It measures nothing: the world records what
    its verbs do.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    def overhead_ns(self, component: Component) -> int:
        """Time that each tuple of ``component`` costs on top of its service."""
        return 0

    def machines(self) -> list[Machine]:
        """What can fail besides tasks."""
        return []

    def start(self) -> None:
        """All tasks exist, the clock stands at 0."""

    def emitted(self, spout: SpoutTask, train: Train, sent: list[Sent]) -> None:
        """A spout has emitted roots, first attempts and retries."""

    def processed(self, task: BoltTask, train: Train, sent: list[Sent]) -> None:
        """A bolt is done with a train of tuples, and has sent their children."""

    def window_ended(self, task: BoltTask, held: list[Held], now: int) -> int:
        """A window of these tuples was emitted at ``now``; returns how long the task is kept busy by it
        (ns).
        """
        return 0

    def receive(self, task: BoltTask, channel: Channel, train: Train) -> Train:
        """What of one channel's arrivals is let through."""
        return train

    def admit(self, task: BoltTask, train: Train) -> Train:
        """What of a task's arrivals, merged, goes into its queue."""
        return train

    def passed(self, task: BoltTask, train: Train) -> None:
        """A task is done with numbered messages, markers among them (only if the protocol numbers
        channels).
        """

    def control_mark(self, task: BoltTask, mark: Train, now: int) -> int:
        """A control marker (mark < 0) of this protocol was reached in the queue; returns how long it keeps
        the task (ns).
        """
        return 0

    def barrier(self, task: BoltTask, message: Train) -> None:
        """The turn of a message with mark BARRIER has come in the queue (a control event: its sender has to
        see to it that there is one when it arrives).
        """

    def moved(self, now: int) -> None:
        """The data plane was moved to ``now``."""

    def destroyed(self, outage: int, roots: Ints, attempt: Ints | None) -> None:
        """Tuples or state of these attempts (None: 0) of roots were destroyed; ``outage`` is the fault
        that did it.
        """

    def failed(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        """A fault has struck ``task`` now."""

    def ready(self, task: BoltTask | SpoutTask, outage: Outage) -> None:
        """``task`` is up again, empty. Held arrivals are let in here."""
        task_inputs_open(task)

    def paused(self, task: BoltTask, outage: Outage) -> None:
        """``task`` is stopped until the outage's end (only if the strategy takes the faults of bolts)."""

    def acker_failed(self) -> None:
        """The acker has crashed."""

    def acker_ready(self) -> None:
        """The acker is up again, empty."""

    def copies(self) -> Ints:
        """Roots that can still be emitted again as a whole."""
        return NOTHING

    def kept_effects(self) -> list[tuple[Component, Ints]]:
        """Effects of which there is a copy that can be brought back (buffers, checkpoints): components and
        uids.
        """
        return []

    def replayed(self, task: BoltTask, train: Train, outage: int) -> np.ndarray | None:
        """Mask of the tuples that were replayed because of the outage; None: none of them."""
        return None

    def settled(self, outage: Outage) -> bool:
        """Whether everything that was to be replayed because of the outage was."""
        return True

    def beat(self) -> int:
        """Period (ns) of what interrupts the flow in normal operation, and may come at another moment after a
        failure: a batch, a snapshot that stalls its task; 0: nothing does.
        """
        return 0

    def running_since(self, task: BoltTask) -> int | None:
        """Since when ``task`` runs in a batch (ns), if tuples are done in batches and it does so now."""
        return None

    def awaited(self, task: BoltTask, number: int) -> bool:
        """Whether window ``number`` of ``task`` is still to come, for all that it needs is safe in a log."""
        return self.world.strategy.log_source and number > newest_window(task, task)


def task_inputs_open(task: BoltTask | SpoutTask) -> None:
    """Let in what was held while the task was down."""
    release = getattr(task, "release_held", None)
    if release is not None:
        release()
